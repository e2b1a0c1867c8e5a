"""One Spark and one real broker for all contenders of the WordCount testbed, run after run."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.bench.hone.calibration import LARGE_ROWS, SMALL_ROWS, BatchCost, Room, cost, still_falling
from headgate.bench.hone.checkpoint import KEEP_ALL, committed_ends, read_batches
from headgate.bench.hone.flow import SentenceFlow
from headgate.bench.hone.latency import feeder_lag, figures
from headgate.bench.hone.programme import CONTENDERS, Contender, Workload
from headgate.bench.hone.skew import PARTITIONS, Traffic
from headgate.bench.hone.word_count import read_sentences, word_count
from headgate.bench.race import Say
from headgate.engine.session import session
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery


PROBED = ("spark", "lbf")
"""One contender of each source tells what its batches cost: which records are in them makes no difference to that."""

BATCHES = 10
LEAST_ROUNDS, MOST_ROUNDS = 3, 8
"""Rounds of so many batches go on until a JVM has stopped getting faster; the last two count."""

START_S, DRAIN_S = 60.0, 120.0
"""How long to wait for a first batch, and for the last records once nothing more is sent."""

WARM_UP_RECORDS = 1
"""In every partition before the traffic, so that a first batch starts everything up."""

_LOOK_S = 0.2


class Testbed:
    """Runs WordCount on traffic and tells what became of every record."""

    def __init__(self, spark: SparkSession, address: str, folder: Path) -> None:
        from headgate.sources.kafka.source import KafkaSource

        spark.dataSource.register(KafkaSource)
        self._spark = spark
        self._address = address
        self._folder = folder

    def costs(self, workload: Workload, say: Say) -> dict[str, BatchCost]:
        """Of each source: batches back to back over a topic that is full already."""
        with self._flow() as flow:
            flow.fill((BATCHES + 2) * LARGE_ROWS, workload.max_words)
            found: dict[tuple[str, int], list[float]] = {}
            for turn in range(MOST_ROUNDS):
                if turn >= LEAST_ROUNDS and not still_falling(found):
                    break
                for name in PROBED if turn % 2 else PROBED[::-1]:
                    for rows in (SMALL_ROWS, LARGE_ROWS):
                        took_s = self._batch_s(CONTENDERS[name], workload, flow, rows)
                        say(f"{workload.name}, {CONTENDERS[name].title}: {rows:,} records in {took_s:.3f} s")
                        found.setdefault((name, rows), []).append(took_s)
        middle_s = {key: statistics.fmean(times_s[-2:]) for key, times_s in found.items()}
        return {name: cost(middle_s[name, SMALL_ROWS], middle_s[name, LARGE_ROWS]) for name in PROBED}

    def run(
        self, contender: Contender, workload: Workload, room: Room, traffic: Traffic, measure_s: float
    ) -> dict[str, Any]:
        """The figures of one run; records count that came within `measure_s` after the traffic has settled."""
        planned_s, end_s = traffic.stamps_s(), traffic.settle_s + measure_s
        due = np.array([WARM_UP_RECORDS + np.searchsorted(stamps, end_s) for stamps in planned_s])
        with self._flow() as flow, self._query(contender, workload, flow, room.rows, room.trigger_s) as (query, folder):
            flow.fill(WARM_UP_RECORDS * PARTITIONS, workload.max_words)
            if not self._wait(query, folder, flow.topic, np.full(PARTITIONS, WARM_UP_RECORDS), START_S):
                raise HeadgateError(f"{contender.title}: no batch within {START_S:g} s")
            origin_s = flow.start(traffic, self._folder)
            self._wait(query, folder, flow.topic, due, traffic.seconds + DRAIN_S)
            ended_s, progress = time.time(), query.recentProgress
            flow.stop()
            query.stop()
            batches, stamps_s = read_batches(folder, flow.topic, PARTITIONS), flow.stamps_s()
        found = figures(stamps_s, batches, origin_s + traffic.settle_s, origin_s + end_s, ended_s)
        came_s = [stamps[WARM_UP_RECORDS:] - origin_s for stamps in stamps_s]
        lag = feeder_lag(planned_s, came_s, traffic.settle_s, end_s, ended_s - origin_s)
        return found | lag | _batch_times(progress, room.trigger_s)

    def _batch_s(self, contender: Contender, workload: Workload, flow: SentenceFlow, rows: int) -> float:
        with self._query(contender, workload, flow, rows, 0.0) as (query, _):
            give_up_s = time.monotonic() + DRAIN_S
            while len(progress := _with_rows(query.recentProgress)) < BATCHES:
                self._check(query)
                if time.monotonic() > give_up_s:
                    raise HeadgateError(f"{contender.title}: not even {BATCHES} batches within {DRAIN_S:g} s")
                time.sleep(_LOOK_S)
        return statistics.median(_seconds(each) for each in progress[BATCHES // 3 :])

    @contextmanager
    def _flow(self) -> Iterator[SentenceFlow]:
        flow = SentenceFlow(self._address)
        try:
            yield flow
        finally:
            flow.stop()
            flow.delete()

    @contextmanager
    def _query(
        self, contender: Contender, workload: Workload, flow: SentenceFlow, rows: int, trigger_s: float
    ) -> Iterator[tuple[StreamingQuery, Path]]:
        """The query and its checkpoint, as long as the block runs."""
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as checkpoint:
            sentences = read_sentences(self._spark, contender, self._address, flow.topic, rows)
            writer = word_count(sentences, workload.grouping).writeStream.format("noop").outputMode("update")
            writer = writer.trigger(processingTime=f"{round(1000 * trigger_s)} milliseconds")
            query = writer.option("checkpointLocation", checkpoint).start()
            try:
                yield query, Path(checkpoint)
            finally:
                query.stop()

    def _wait(self, query: StreamingQuery, checkpoint: Path, topic: str, due: Any, seconds: float) -> bool:
        """Until every partition is committed as far as it is due; False if it is not within that time."""
        give_up_s = time.monotonic() + seconds
        while time.monotonic() < give_up_s:
            self._check(query)
            if np.all(committed_ends(checkpoint, topic, PARTITIONS) >= due):
                return True
            time.sleep(_LOOK_S)
        return False

    @staticmethod
    def _check(query: StreamingQuery) -> None:
        if not query.isActive:
            raise HeadgateError(f"the query ended: {query.exception()}")


def _batch_times(progress: Sequence[Any], trigger_s: float) -> dict[str, Any]:
    times_s = np.array([_seconds(each) for each in _with_rows(progress)])
    if not times_s.size:
        return {"batches": 0}
    p50, p95 = (float(value) for value in np.quantile(times_s, [0.5, 0.95]))
    return {
        "batches": len(times_s), "batch_p50_s": p50, "batch_p95_s": p95,
        "overruns": float((times_s > trigger_s).mean()),
    }  # fmt: skip


def _with_rows(progress: Sequence[Any]) -> list[Any]:
    return [each for each in progress if each.numInputRows > 0]


def _seconds(progress: Any) -> float:
    return float(progress.durationMs["triggerExecution"]) / 1000


@contextmanager
def opened() -> Iterator[Testbed]:
    """A broker and a Spark with both sources."""
    from headgate.bench.kafka.broker import LocalBroker
    from headgate.bench.kafka.jars import connector_jars

    os.environ.setdefault("HEADGATE_SPARK_LOG", "OFF")  # stopping a query in mid-batch makes Spark complain
    conf = KEEP_ALL | {
        "spark.jars": ",".join(map(str, connector_jars())),
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
    }
    with (
        tempfile.TemporaryDirectory(prefix="headgate-hone-", ignore_cleanup_errors=True) as folder,
        LocalBroker(f"{folder}/kafka") as broker,
    ):
        spark = session("headgate-hone", conf=conf)
        try:
            yield Testbed(spark, broker.address, Path(folder))
        finally:
            spark.stop()
