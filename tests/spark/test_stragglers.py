"""Spark tells how long each task took, and the slowest is told by what it read."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812

from headgate import Headgate
from headgate.cli import explain
from headgate.core.tasks import TaskTimes
from headgate.engine.query import GatedQuery
from tests.spark.conftest import Collected, counter, named, until

pytestmark = pytest.mark.spark

SLEPT_S = 1.5


def times_of(query: GatedQuery) -> list[TaskTimes]:
    return [batch.tasks for batch in query.batches if batch.tasks is not None]


def test_the_file_that_held_the_batch_up_is_named(hg: Headgate, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for value, name in enumerate(("fast", "slow")):
        (folder / f"{name}.json").write_text(json.dumps({"v": value}) + "\n")
    files = hg.readStream.format("headgate-files").option("fileFormat", "json").schema("v int").load(str(folder))
    nap = F.udf(lambda value: time.sleep(SLEPT_S * value), "string")
    query = hg.start(named(files.select(nap("v")), "napping"), deadline="10s")
    until(lambda: query.batches)
    times = query.batches[0].tasks
    assert times is not None
    assert (times.count, times.slowest_read) == (2, "slow.json")
    assert times.slowest_s - times.median_s > 0.6 * SLEPT_S
    query.stop()
    told = explain.describe(explain.read(tmp_path / "batches.jsonl")[0])
    assert "2 tasks: slowest" in told and told.endswith("x): slow.json")


def test_every_batch_of_a_native_source_has_its_times(hg: Headgate) -> None:
    query = hg.start(named(counter(hg, "500"), "timed"), deadline="2s")
    until(lambda: len(query.batches) >= 6)
    for batch in query.batches:
        assert batch.tasks is not None
        assert batch.tasks.slowest_read == batch.shares[0] and batch.tasks.slowest_read.startswith("rows[")
        assert 0 < batch.tasks.slowest_s <= batch.duration_s


def test_the_source_is_meant_and_not_the_stage_that_it_feeds(hg: Headgate) -> None:
    counts = counter(hg, "400000", rows=1_200_000).groupBy((F.col("value") % 7).alias("k")).count()
    query = hg.start(named(counts, "counted").outputMode("update"), deadline="3s")
    until(lambda: any(times.count == 2 for times in times_of(query)), 90)
    assert all(times.slowest_read.startswith("rows[") for times in times_of(query))


def test_tasks_of_sparks_own_source_are_told_by_their_number(hg: Headgate) -> None:
    rate = hg.spark.readStream.format("rate").option("rowsPerSecond", 300).option("numPartitions", 3).load()
    query = hg.start(named(hg.gate(rate), "numbered"), deadline="2s")
    until(lambda: times_of(query))
    assert {times.count for times in times_of(query)} == {3}
    assert {times.slowest_read for times in times_of(query)} <= {"task 0", "task 1", "task 2"}


def test_jobs_of_foreach_batch_count(hg: Headgate, collected: Collected) -> None:
    query = hg.start(named(counter(hg, "500"), "each", collected), deadline="2s")
    until(lambda: len(times_of(query)) >= 2)
    assert times_of(query)[-1].slowest_read.startswith("rows[")


def test_two_queries_at_once_are_told_apart(hg: Headgate) -> None:
    slow = F.udf(lambda value: time.sleep(0.3), "string")
    fast = hg.start(named(counter(hg, "200"), "fast"), deadline="1s")
    late = hg.start(named(counter(hg, "1").select(slow("value")), "late"), deadline="4s")
    until(lambda: len(times_of(fast)) >= 10 and len(times_of(late)) >= 2, 90)
    assert min(times.slowest_s for times in times_of(late)) >= 0.3
    assert min(times.slowest_s for times in times_of(fast)) < 0.3
    for query in (fast, late):
        assert all(batch.tasks is None or batch.tasks.slowest_read in batch.shares for batch in query.batches)
