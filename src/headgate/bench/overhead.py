"""What Headgate costs: the same source and query with and without it, turn by turn in one Spark.

*Without* is the trace source read by plain Spark (no gate, no pools, no listener of ours). Both take batches at once
(trigger 0; Headgate with the rule ``observe``), so that the difference is Headgate's own work.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from headgate.bench.race import Race, Say
from headgate.engine.session import session
from headgate.headgate import Headgate

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

SMALL = {"workload": "linear-road", "rate": "1000"}
"""A light load: the fixed cost of a batch is nearly all there is."""

SATURATED = {"workload": "linear-road", "rate": "50000000", "vehicles": "30000", "maxRowsPerTrigger": "200000"}
"""More than can be read: batches of 200,000 rows back to back."""


def compare(repeats: int, seconds: float, warm_up_s: float, say: Say) -> list[dict[str, Any]]:
    """Measure batch time at a light load and throughput at saturation, `repeats` turns each."""
    os.environ.setdefault("HEADGATE_SPARK_LOG", "OFF")  # stopping a query in mid-batch makes Spark complain
    spark = session("headgate-overhead")
    batch_ms = Race("batch time at 1,000 rows/s", "ms", "without")
    rows_s = Race("throughput at saturation", "rows/s", "without")
    try:
        for race, options, figure in ((batch_ms, SMALL, _batch_ms), (rows_s, SATURATED, _rows_per_s)):
            for run in (_with_headgate, _without):
                run(spark, options, warm_up_s)
            ours = partial(_figure, figure, _with_headgate, spark, options, seconds)
            race.run(ours, partial(_figure, figure, _without, spark, options, seconds), repeats, 0, say)
    finally:
        spark.stop()
    return [batch_ms.to_json(), rows_s.to_json()]


def _figure(
    figure: Callable[[list[Any]], float], run: Callable[[SparkSession, dict[str, str], float], list[Any]],
    spark: SparkSession, options: dict[str, str], seconds: float,
) -> float:  # fmt: skip
    return figure(run(spark, options, seconds))


def _with_headgate(spark: SparkSession, options: dict[str, str], seconds: float) -> list[Any]:
    with Headgate(spark, policy="fair", admission="observe") as hg:
        reader = hg.readStream.format("headgate-trace").options(**options)
        return _run(reader.load(), lambda writer: hg.start(writer, deadline="1s"), seconds)


def _without(spark: SparkSession, options: dict[str, str], seconds: float) -> list[Any]:
    from headgate.sources.trace import TraceSource

    spark.dataSource.register(TraceSource)
    reader = spark.readStream.format("headgate-trace").options(**options)
    return _run(reader.load(), lambda writer: writer.start(), seconds)


def _run(df: DataFrame, start: Callable[[DataStreamWriter], Any], seconds: float) -> list[Any]:
    """Run the query for a while; returns Spark's own progress reports of the second half."""
    with tempfile.TemporaryDirectory(prefix="headgate-overhead-", ignore_cleanup_errors=True) as checkpoint:
        writer = _query(df).writeStream.format("noop").option("checkpointLocation", checkpoint).queryName("overhead")
        query = start(writer)
        time.sleep(seconds)
        progress = [p for p in query.recentProgress if p.numInputRows > 0]
        query.stop()
    return progress[len(progress) // 2 :]


def _query(df: DataFrame) -> DataFrame:
    return df.where("speed < 40").select("vehicle", "speed", "segment")


def _batch_ms(progress: list[Any]) -> float:
    return float(statistics.median(p.durationMs["triggerExecution"] for p in progress))


def _rows_per_s(progress: list[Any]) -> float:
    return float(
        sum(p.numInputRows for p in progress) / (sum(p.durationMs["triggerExecution"] for p in progress) / 1e3)
    )


def coordinator_load(queries: int, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """CPU share of the coordinator's thread while `queries` light queries run for real."""
    spark = session("headgate-coordinator")
    try:
        with Headgate(spark) as hg:
            for index in range(queries):
                source = hg.readStream.format("headgate-trace").options(workload="counter", rate="50").load()
                hg.start(source.writeStream.format("noop").queryName(f"q{index}"), deadline=f"{10 + index}s")
                say(f"started {index + 1} of {queries}")
            time.sleep(seconds / 2)
            hg.recorder.reset()
            cpu_s, begun_s = hg.coordinator_cpu_s(), time.monotonic()
            time.sleep(seconds)
            share = (hg.coordinator_cpu_s() - cpu_s) / (time.monotonic() - begun_s)
            batches = sum(summary.batches for summary in hg.recorder.summaries().values())
            return {"queries": queries, "seconds": seconds, "batches": batches, "coordinator_cpu_share": share}
    finally:
        spark.stop()
