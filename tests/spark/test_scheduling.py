"""Priorities reach Spark's scheduler: they change which job gets the cores."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import Headgate
from headgate.core.policies import POLICIES, Share
from headgate.engine.internals import Pools, pool_name
from tests.spark.conftest import Collected, counter, named, until

pytestmark = pytest.mark.spark

TASKS, TASK_S = 24, 0.1


def _job(spark: SparkSession, query: str, finished_s: dict[str, float], begun_s: float) -> None:
    context = spark.sparkContext
    context.setLocalProperty("spark.scheduler.pool", pool_name(query))
    context.parallelize(range(TASKS), TASKS).foreach(lambda _: time.sleep(TASK_S))
    finished_s[query] = time.monotonic() - begun_s


def race(spark: SparkSession, shares: dict[str, Share]) -> dict[str, float]:
    """Two equal jobs at once; returns when each has finished."""
    from pyspark import InheritableThread

    for query in ("one", "two"):
        _job(spark, query, {}, 0.0)  # Python workers are up and both pools exist
    pools = Pools(spark)
    pools.apply(shares)
    finished_s: dict[str, float] = {}
    begun_s = time.monotonic()
    threads = [InheritableThread(target=_job, args=(spark, query, finished_s, begun_s)) for query in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pools.apply({query: Share() for query in ("one", "two")})
    return finished_s


def test_min_share_decides_who_is_served_first(spark: SparkSession) -> None:
    equal = race(spark, {})
    assert abs(equal["one"] - equal["two"]) < 0.3 * max(equal.values())
    favoured = race(spark, {"two": Share(min_share=2, weight=100)})
    assert favoured["two"] < 0.75 * favoured["one"]
    turned = race(spark, {"one": Share(min_share=2, weight=100)})
    assert turned["one"] < 0.75 * turned["two"]


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_runs_queries_side_by_side(spark: SparkSession, tmp_path: Path, policy: str) -> None:
    sinks = {name: Collected() for name in ("tight", "relaxed")}
    with Headgate(spark, policy=policy, records=tmp_path / "batches.jsonl") as hg:
        hg.start(named(counter(hg, "500", rows=2_000), "tight", sinks["tight"]), deadline="1s")
        hg.start(named(counter(hg, "500", rows=2_000), "relaxed", sinks["relaxed"]), deadline="4s")
        until(lambda: all(len(sink.rows) >= 2_000 for sink in sinks.values()), 90)
    for sink in sinks.values():
        assert [row[1] for row in sink.rows] == list(range(2_000))


def test_the_policy_is_applied_while_batches_run(spark: SparkSession, tmp_path: Path) -> None:
    """Two slow queries overlap; the pool of the one that is due first must have all cores meanwhile."""
    seen: list[dict[str, Share]] = []

    def slow(df: object, batch_id: int) -> None:
        time.sleep(1.0)

    with Headgate(spark, policy="edf", admission="observe", records=tmp_path / "batches.jsonl") as hg:
        apply = hg._pools.apply

        def noted(shares: dict[str, Share]) -> None:
            seen.append(shares)
            apply(shares)

        hg._pools.apply = noted  # type: ignore[method-assign]
        for name, deadline in (("later", "9s"), ("sooner", "2s")):
            hg.start(counter(hg, "300").writeStream.queryName(name).foreachBatch(slow), deadline=deadline)
        until(lambda: any(shares["sooner"].min_share == 2 for shares in seen if "sooner" in shares), 60)
    both = [shares for shares in seen if len(shares) == 2 and shares["sooner"].min_share]
    assert all(shares["later"].min_share == 0 for shares in both)


def test_the_callers_own_pool_is_left_alone(hg: Headgate) -> None:
    hg.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "mine")
    try:
        hg.start(named(counter(hg, "300"), "pooled"), deadline="2s")
        assert hg.spark.sparkContext.getLocalProperty("spark.scheduler.pool") == "mine"
    finally:
        hg.spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]


def test_threads_have_their_own_pools(hg: Headgate) -> None:
    """Starting from several threads at once is safe."""
    errors: list[BaseException] = []

    def start(name: str) -> None:
        try:
            hg.start(named(counter(hg, "300"), name), deadline="3s")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=start, args=(f"thread-{index}",)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    until(lambda: all(query.batches for query in hg.queries.values()) and len(hg.queries) == 3, 90)
