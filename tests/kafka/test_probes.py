"""``gate(df)`` before Spark's own sources: watched, so that the gate knows what waits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import Headgate
from tests.kafka.conftest import MakeTopic, read_with_spark
from tests.kafka.test_kafka_source import SECRET, login
from tests.spark.conftest import Collected, named, until

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_sparks_kafka_source_is_watched(hg: Headgate, spark: SparkSession, topic: MakeTopic) -> None:
    made, sink = topic(2), Collected()
    made.produce(range(50))
    query = hg.start(named(hg.gate(read_with_spark(spark, made)), "watched", sink), deadline="3s")
    until(lambda: len(sink.rows) == 50)
    for turn in range(6):
        made.produce(range(100 * turn, 100 * turn + 100))
        time.sleep(0.5)
    until(lambda: len(sink.rows) == 650)
    until(lambda: query.summary is not None and query.summary.rows == 650)
    known = [batch for batch in query.batches if not batch.estimated]
    assert sum(batch.latency.rows for batch in known if batch.latency) >= 500
    assert all(0 <= batch.latency.max_s < 10 for batch in known if batch.latency)
    until(lambda: hg.status()[0].backlog_rows == 0)
    query.stop()


def test_a_limit_of_its_own_does_not_stop_it(hg: Headgate, spark: SparkSession, topic: MakeTopic) -> None:
    made, sink = topic(1), Collected()
    made.produce(range(400))
    df = hg.gate(read_with_spark(spark, made, maxOffsetsPerTrigger=100))
    query = hg.start(named(df, "limited", sink), deadline="2s")
    until(lambda: len(sink.rows) == 400)
    made.produce(range(250))
    until(lambda: len(sink.rows) == 650)
    query.stop()


def test_sparks_file_source_is_watched(hg: Headgate, spark: SparkSession, tmp_path: Path) -> None:
    folder, sink = tmp_path / "in", Collected()
    folder.mkdir()

    def add(name: str, rows: int) -> None:
        (tmp_path / name).write_text("".join(f'{{"id": {n}}}\n' for n in range(rows)))
        (tmp_path / name).rename(folder / name)

    add("a.json", 10)
    df = hg.gate(spark.readStream.schema("id long").json(str(folder)))
    query = hg.start(named(df, "folder", sink), deadline="2s")
    until(lambda: len(sink.rows) == 10)
    add("b.json", 20)
    add("c.json", 30)
    until(lambda: len(sink.rows) == 60)
    until(lambda: query.summary is not None and query.summary.rows == 60)
    assert any(not batch.estimated for batch in query.batches)
    query.stop()


def test_the_probes_credentials_are_never_shown(
    hg: Headgate, spark: SparkSession, topic: MakeTopic, capfd: pytest.CaptureFixture[str]
) -> None:
    made, sink = topic(1), Collected()
    made.produce(range(20))
    df = hg.gate(read_with_spark(spark, made, **login(made)))
    df.explain(True)
    query = hg.start(named(df, "secret", sink), deadline="2s")
    until(lambda: len(sink.rows) == 20)
    query.spark_query.explain(True)
    until(lambda: query.spark_query.lastProgress is not None)
    told = [str(query.spark_query.lastProgress), str(df), repr(hg.status())]
    query.stop()
    out, err = capfd.readouterr()
    assert "Physical Plan" in out
    for text in (*told, out, err):
        assert SECRET not in text


def test_a_probe_that_fails_costs_the_probe_only(
    hg: Headgate, spark: SparkSession, topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headgate.engine import internals

    monkeypatch.setattr(internals, "watchable", lambda df: {"kind": "kafka", "options": {"nothing": "of use"}})
    made, sink = topic(1), Collected()
    query = hg.start(named(hg.gate(read_with_spark(spark, made)), "unwatched", sink), deadline="1s")
    made.produce(range(20))
    until(lambda: len(sink.rows) == 20)
    until(lambda: query.summary is not None and query.summary.estimated)
    query.stop()
