"""Batches start when Headgate says so, hold what it says, and every record is in exactly one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headgate import Headgate
from tests.spark.conftest import Collected, counter, named, until

pytestmark = pytest.mark.spark


def test_every_record_of_a_native_source_is_in_exactly_one_batch(hg: Headgate, collected: Collected) -> None:
    query = hg.start(named(counter(hg, "2000", rows=12_000), "native", collected), deadline="2s")
    until(lambda: sum(map(len, collected.batches.values())) >= 12_000)
    assert [row[1] for row in collected.rows] == list(range(12_000))
    until(lambda: query.summary is not None and query.summary.rows == 12_000)
    assert query.summary is not None and query.summary.datasets == 12_000


def test_latest_holds_batches_for_most_of_the_deadline(hg: Headgate) -> None:
    query = hg.start(named(counter(hg, "500"), "held"), deadline="3s", admission="latest")
    until(lambda: len(query.batches) >= 6, 90)
    held = query.batches[4]
    assert held.code in ("due", "late")
    assert held.held_s.get("buffer", 0.0) > 0.5
    assert held.latency is not None and held.latency.max_s > 1.0
    assert held.rows > 500


def test_slack_is_stolen_on_idle_cores(hg: Headgate) -> None:
    query = hg.start(named(counter(hg, "500"), "early"), deadline="20s")
    until(lambda: sum(batch.code == "early" for batch in query.batches) >= 3, 90)
    last = query.batches[-1]
    assert last.latency is not None and last.latency.max_s < 10.0
    assert last.rows < 500 * 12


def test_any_dataframe_is_gated_in_time(hg: Headgate, collected: Collected) -> None:
    rate = hg.spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    query = hg.start(named(hg.gate(rate), "foreign", collected), deadline="4s", admission="latest")
    until(lambda: len([batch for batch in query.batches if batch.held_s.get("buffer", 0) > 0.5]) >= 2, 120)
    held = next(batch for batch in query.batches if batch.held_s.get("buffer", 0) > 0.5)
    assert held.estimated
    # Spark's rate source hands out whole seconds: what arrived while the gate was closed is in the batch.
    assert held.rows >= 200
    query.stop()
    values = sorted(row[1] for row in collected.rows)
    assert values == list(range(len(values)))


def test_gates_in_a_join_share_one_decision(hg: Headgate, collected: Collected) -> None:
    left = counter(hg, "300", rows=1_500).withWatermark("timestamp", "1 second")
    right = counter(hg, "300", rows=1_500).withWatermark("timestamp", "1 second").withColumnRenamed("timestamp", "at")
    within = F.expr("at >= timestamp - interval 2 seconds and at <= timestamp + interval 2 seconds")
    joined = left.join(right.withColumnRenamed("value", "other"), (F.col("value") == F.col("other")) & within)
    query = hg.start(named(joined.select("value"), "joined", collected), deadline="3s")
    until(lambda: len(collected.rows) >= 1_500, 120)
    assert sorted(row[0] for row in collected.rows) == list(range(1_500))
    until(lambda: any(batch.rows > 1_500 / 4 for batch in query.batches))  # a batch is recorded after its sink has it


def test_a_self_join_reads_the_same_trace_twice(hg: Headgate, collected: Collected) -> None:
    reports = counter(hg, "300", rows=900).withWatermark("timestamp", "1 second")
    other = reports.select(F.col("value").alias("other"), F.col("timestamp").alias("at"))
    joined = reports.join(other, F.expr("value = other and at = timestamp"))
    hg.start(named(joined.select("value"), "self", collected), deadline="3s")
    until(lambda: len(collected.rows) >= 900, 120)
    assert sorted(row[0] for row in collected.rows) == list(range(900))


def test_a_union_with_itself_has_one_gate(hg: Headgate, collected: Collected) -> None:
    records = counter(hg, "300", rows=600)
    both = records.where("value % 2 = 0").union(records.where("value % 2 = 1"))
    hg.start(named(both, "union", collected), deadline="2s")
    after = hg.start(named(records, "after"), deadline="2s")
    until(lambda: len(collected.rows) >= 600 and after.batches, 60)
    assert sorted(row[1] for row in collected.rows) == list(range(600))


def test_one_gated_dataframe_serves_several_queries_each_with_its_own_deadline(hg: Headgate) -> None:
    records = counter(hg, "200")
    short = hg.start(named(records, "short"), deadline="2s", admission="latest")
    long = hg.start(named(records, "long"), deadline="9s", admission="latest")
    until(lambda: len(short.batches) >= 5 and len(long.batches) >= 5, 120)
    assert {batch.deadline_s for batch in short.batches} == {2.0}
    assert max(batch.rows for batch in long.batches[3:]) > 1.5 * max(batch.rows for batch in short.batches[3:])


def test_without_a_deadline_a_query_runs_in_the_slack(hg: Headgate) -> None:
    hg.start(named(counter(hg, "500"), "promised"), deadline="3s")
    free = hg.start(named(counter(hg, "500"), "free"))
    until(lambda: sum(batch.code in ("slack", "patience") for batch in free.batches) >= 3, 90)
    assert free.summary is not None and free.summary.deadline_s is None and free.summary.violations == 0


def test_observe_leaves_the_trigger_alone(hg: Headgate) -> None:
    writer = named(counter(hg, "500"), "observed").trigger(processingTime="1 second")
    query = hg.start(writer, deadline="5s", admission="observe")
    until(lambda: len(query.batches) >= 4)
    assert {batch.code for batch in query.batches} == {"observe"}


def test_available_now_reads_what_is_there_and_ends(hg: Headgate, collected: Collected, tmp_path: Path) -> None:
    for value in range(3):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{value}.json").write_text(json.dumps({"v": value}) + "\n")
    files = (
        hg.readStream.format("headgate-files").option("fileFormat", "json").schema("v int").load(str(tmp_path / "in"))
    )
    query = hg.start(named(files, "now", collected).trigger(availableNow=True), deadline="5s")
    assert query.awaitTermination(60)
    assert sorted(row[0] for row in collected.rows) == [0, 1, 2]


def test_files_are_read_once_with_a_deadline(hg: Headgate, collected: Collected, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    files = hg.readStream.format("headgate-files").option("fileFormat", "json").schema("v int").load(str(folder))
    query = hg.start(named(files, "files", collected), deadline="3s")
    for value in range(12):
        part = folder / f".{value}.json"
        part.write_text(json.dumps({"v": value}) + "\n")
        part.rename(folder / f"{value}.json")
        until(lambda value=value: len(collected.rows) > value - 6)  # type: ignore[misc]
    until(lambda: len(collected.rows) == 12)
    assert sorted(row[0] for row in collected.rows) == list(range(12))
    until(lambda: query.summary is not None and query.summary.datasets == 12)


def test_a_table_can_be_the_sink(hg: Headgate, tmp_path: Path) -> None:
    writer = (
        named(counter(hg, "200", rows=400).select("value"), "tabled")
        .format("parquet")
        .option("path", str(tmp_path / "t"))
    )
    query = hg.start(writer, deadline="2s", to_table="headgate_tabled")
    try:
        until(lambda: query.summary is not None and query.summary.rows == 400)
        assert hg.spark.table("headgate_tabled").count() == 400
    finally:
        query.stop()
        hg.spark.sql("drop table headgate_tabled")


def test_two_headgates_in_one_process(spark: SparkSession, hg: Headgate, tmp_path: Path) -> None:
    with Headgate(spark, records=tmp_path / "other.jsonl", policy="fair") as other:
        mine = hg.start(named(counter(hg, "200"), "mine"), deadline="3s")
        theirs = other.start(named(counter(other, "200"), "theirs"), deadline="3s")
        until(lambda: mine.batches and theirs.batches)
    assert not theirs.spark_query.isActive
    assert mine.spark_query.isActive


def test_records_are_a_file_for_pandas(hg: Headgate, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    query = hg.start(named(counter(hg, "500"), "filed"), deadline="2s")
    until(lambda: len(query.batches) >= 3)
    table = pandas.read_json(tmp_path / "batches.jsonl", lines=True)
    assert {"query", "rows", "code", "reason", "predicted_s", "duration_s", "latency_p99_s", "held_s"} <= set(
        table.columns
    )
    assert (table["latency_rows"] == table["rows"]).all()
    assert table["spark_triggerExecution_ms"].gt(0).all()
