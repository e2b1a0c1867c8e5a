"""Every mistake is one line with the parameter, the value and the remedy; nothing hangs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import BadParameter, Headgate, UnsupportedSpark
from headgate.engine import internals
from tests.spark.conftest import counter, named, until

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("deadline", ["soon", "-1s", 0, "5 parsecs"])
def test_deadline(hg: Headgate, deadline: object) -> None:
    with pytest.raises(BadParameter, match="deadline="):
        hg.start(named(counter(hg), "q"), deadline=deadline)  # type: ignore[arg-type]


@pytest.mark.parametrize("slo", [0, 1, 1.5, -0.1, "high", True])
def test_slo(hg: Headgate, slo: object) -> None:
    with pytest.raises(BadParameter, match=r"slo=.*0\.99"):
        hg.start(named(counter(hg), "q"), deadline="5s", slo=slo)  # type: ignore[arg-type]


def test_duplicate_name(hg: Headgate) -> None:
    hg.start(named(counter(hg), "same"), deadline="5s")
    with pytest.raises(BadParameter, match="queryName='same'"):
        hg.start(named(counter(hg), "same"), deadline="5s")


def test_a_name_is_free_again_after_its_query_has_stopped(hg: Headgate) -> None:
    hg.start(named(counter(hg), "again"), deadline="5s").stop()
    query = hg.start(named(counter(hg), "again"), deadline="5s")
    until(lambda: query.batches)


def test_a_gate_after_a_watermark(hg: Headgate) -> None:
    rate = hg.spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    with pytest.raises(BadParameter, match=r"hg\.gate\(source\)\.withWatermark"):
        hg.gate(rate)


def test_a_static_dataframe(hg: Headgate) -> None:
    with pytest.raises(BadParameter, match=r"spark\.readStream"):
        hg.gate(hg.spark.range(3))


def test_a_query_without_a_gate(hg: Headgate) -> None:
    with pytest.raises(BadParameter, match=r"hg\.gate\("):
        hg.start(hg.spark.readStream.format("rate").load().writeStream.format("noop"), deadline="5s")


def test_more_gated_sources_than_spark_keeps_in_order(hg: Headgate) -> None:
    rates = [hg.spark.readStream.format("rate").option("rowsPerSecond", n).load() for n in (1, 2, 3)]
    gated = hg.gate(rates[0]).union(hg.gate(rates[1])).union(hg.gate(rates[2]))
    with pytest.raises(BadParameter, match=r"6 sources.*hg\.gate\(first\.union"):
        hg.start(named(gated, "many"), deadline="5s")


def test_a_query_that_fails_at_once_does_not_delay_the_next(hg: Headgate) -> None:
    broken = hg.readStream.format("headgate-trace").schema("wrong string").load()
    hg.start(named(broken, "broken"), deadline="5s")
    begun_s = time.monotonic()
    query = hg.start(named(counter(hg), "sound"), deadline="5s")
    assert time.monotonic() - begun_s < 20
    until(lambda: query.batches)
    assert "broken" not in hg.queries


def test_a_trigger_beside_a_deadline(hg: Headgate) -> None:
    with pytest.raises(BadParameter, match=r"trigger=.*observe"):
        hg.start(named(counter(hg), "q").trigger(processingTime="10 seconds"), deadline="5s")


def test_unknown_policy_and_rule(spark: SparkSession, hg: Headgate) -> None:
    with pytest.raises(BadParameter, match="policy='lottery'"):
        Headgate(spark, policy="lottery")
    with pytest.raises(BadParameter, match="admission='never'"):
        Headgate(spark, admission="never")
    with pytest.raises(BadParameter, match="admission='never'"):
        hg.start(named(counter(hg), "q"), deadline="5s", admission="never")


def test_unwritable_folders(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="socket_dir="):
        Headgate(spark, socket_dir=str(tmp_path / "missing"), records=tmp_path / "b.jsonl")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadParameter, match="records="):
        Headgate(spark, records=tmp_path / "file" / "b.jsonl")


@pytest.mark.parametrize(
    "version,fine", [("4.2.0", True), ("4.3.0-SNAPSHOT", True), ("5.0.0", True), ("4.1.9", False), ("3.5.4", False)]
)
def test_an_old_spark(version: str, fine: bool) -> None:
    if fine:
        internals.check_version(version)
    else:
        with pytest.raises(UnsupportedSpark, match=r"4\.2 or newer.*pip install"):
            internals.check_version(version)


def test_a_connect_session() -> None:
    class SparkSession:
        """Stands where PySpark's Connect session would; only its module tells."""

    SparkSession.__module__ = "pyspark.sql.connect.session"
    with pytest.raises(UnsupportedSpark, match="Spark Connect"):
        internals.check_spark(SparkSession())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "option,value,words",
    [
        ("rate", "fast", "rate="),
        ("workload", "chess", "workload="),
        ("seed", "x", "seed="),
        ("maxRowsPerTrigger", "0", "maxRowsPerTrigger="),
    ],
)
def test_source_options(hg: Headgate, option: str, value: str, words: str) -> None:
    with pytest.raises(Exception, match=words):
        query = hg.start(named(counter(hg, **{option: value}), "q"), deadline="5s")
        query.awaitTermination(60)


def test_a_schema_that_does_not_fit(hg: Headgate) -> None:
    reader = hg.readStream.format("headgate-trace").schema("wrong string")
    with pytest.raises(Exception, match="schema="):
        hg.start(named(reader.load(), "q"), deadline="5s").awaitTermination(60)


def test_files_without_a_schema(hg: Headgate, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="schema"):
        hg.readStream.format("headgate-files").option("fileFormat", "json").load(str(tmp_path))


def test_pools_that_cannot_be_set_leave_fair(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(self: object) -> None:
        raise UnsupportedSpark("Spark's scheduler pool has no field 'minShare'")

    monkeypatch.setattr(internals.Pools, "probe", fail)
    with pytest.raises(UnsupportedSpark, match=r"policy='edf'.*minShare.*remain: fair"):
        Headgate(spark, policy="edf")
    with Headgate(spark, records=tmp_path / "b.jsonl") as hg:
        assert hg.policy == "fair"
        query = hg.start(named(counter(hg), "q"), deadline="3s")
        until(lambda: query.batches)
