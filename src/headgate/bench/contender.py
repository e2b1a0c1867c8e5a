"""Runs contenders' cells in this process: ``python -m headgate.bench.contender SETTINGS.json``, tasks on stdin.

Each contender has a Spark application of its own, one after another in the same JVM.

Stock contenders use the same session settings and the same source with an open gate, so that the only difference is who
decides when a batch starts and which one gets the cores. What Headgate has learned about a query's cost goes from cell
to cell, as it does from run to run of a query that keeps its checkpoint.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.bench.latency_figures import latency_figures
from headgate.bench.orphans import end_with_parent
from headgate.bench.plan import BenchQuery, Cell, Contender, Outcome
from headgate.bench.steady import CompilerWatch, still_falling
from headgate.bench.workers import start_workers
from headgate.cli.live import LiveView
from headgate.core.traffic import parse_traffic
from headgate.engine import internals, model_store
from headgate.engine.session import local_cores, local_slots, session
from headgate.errors import HeadgateError
from headgate.headgate import DEFAULT_SLO, Headgate
from headgate.metrics.summary import QuerySummary
from headgate.workloads.queries import QUERIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.bench.kafka.flow import KafkaFlow

DRAIN_DEADLINES, DRAIN_S = 2, 5.0
"""How long to wait for the results of what arrived within the measured time: a peer whose trigger is the deadline waits
one deadline until its batch begins, and the batch may take another."""

_LOOK_S = 0.2
"""How often to look whether all rows are done: small beside the minute and more that this takes."""


class Reading(NamedTuple):
    """What was spent and done up to one instant: figures that are divided by each other must end together."""

    at_s: float
    cpu_s: float
    rows: dict[str, int]
    """Records with a result, by query."""


class Bench:
    """One Spark, one Headgate, cell after cell."""

    def __init__(self, contender: Contender, hg: Headgate, workspace: str, kafka: str | None = None) -> None:
        self.contender = contender
        self._kafka = kafka
        self._flows: dict[str, KafkaFlow] = {}
        self.hg = hg
        self.phase = "starting"
        self._workspace = Path(workspace)
        self._cells = 0

    def run(self, cell: Cell) -> Outcome:
        """Start the queries, let them settle, measure, wait for what had arrived by then, and stop them."""
        self._cells += 1
        self.hg.recorder.reset()
        begun_at_s: dict[str, float] = {}
        try:
            for query in cell.queries:
                self.phase = f"{cell.title} starting {query.name}"
                begun_at_s[query.name] = time.time()
                self._start(cell, query)
            return self._measure(cell, begun_at_s) if cell.rows is None else self._work_off(cell, cell.rows)
        finally:
            for running in list(self.hg.queries.values()):
                running.stop()
            for flow in self._flows.values():
                flow.stop()
            self._flows.clear()
            internals.clear_heap(self.hg.spark)  # or the next cell would pay for the state of this one

    def _measure(self, cell: Cell, begun_at_s: dict[str, float]) -> Outcome:
        self._settle(cell)
        begun_at_s |= self._first_arrivals_s()
        done_rows = self._rows()
        self.hg.recorder.reset()
        begin, begin_at_s = self._reading(), time.time()
        broken = self._pause(cell.measure_s, f"{cell.title} measuring,", cell if cell.give_up else None)
        end, end_at_s = self._reading(), time.time()
        self.phase = f"{cell.title} waiting for the last records"
        if not broken:
            self._drain(cell, end_at_s)
        if not all(flow.alive for flow in self._flows.values()):
            raise HeadgateError("the process that fills the Kafka topic has ended: nothing was measured")
        begun_at_s |= self._first_arrivals_s()  # of a first batch that took longer than the settling time
        found, queries = self.hg.recorder.summaries(), {}
        for query in cell.queries:  # one that finished no batch has counted nothing
            name, begun_s = query.name, begun_at_s[query.name]
            summary = found.get(name) or QuerySummary(name, query.deadline_s, DEFAULT_SLO)
            origin_s = self._flows[query.rate].origin_s if self._kafka else begun_s
            finished = done_rows.get(name, 0) + summary.datasets
            now_s = time.time()
            waited_s = max(query.deadline_s, now_s - end_at_s)
            left = _left_late_rows(query, cell.seed, origin_s, begun_s, now_s - waited_s, finished)
            window = {"rows_in_window": end.rows.get(name, 0) - begin.rows.get(name, 0)}
            queries[name] = summary.to_json() | self._more(summary, left, waited_s) | window
        spent = end.cpu_s - begin.cpu_s, end.at_s - begin.at_s
        return Outcome(self.contender.name, self.contender.title, *spent, queries, broken, begin_at_s)

    def _work_off(self, cell: Cell, rows: int) -> Outcome:
        """Wait until every query has done `rows` records; what has not by the end of the cell has no ``done_s``."""
        cpu_s, begun_at_s, done_at_s = self._cpu_s(), time.time(), dict[str, float]()
        while len(done_at_s) < len(cell.queries) and time.time() < begun_at_s + cell.measure_s:
            self.phase = f"{cell.title} {len(done_at_s)} of {len(cell.queries)} queries have done {rows:,} rows"
            time.sleep(_LOOK_S)
            reached = {name for name, done_rows in self._rows().items() if done_rows >= rows}
            done_at_s = {name: self.hg.recorder.batches(name)[-1].finished_at_s for name in reached} | done_at_s
        cpu_s, ended_at_s = self._cpu_s() - cpu_s, time.time()
        first_at_s = min((b.oldest_at_s for b in self.hg.recorder.batches() if b.oldest_at_s), default=begun_at_s)
        done_s = {name: at_s - first_at_s for name, at_s in done_at_s.items()}
        counts = self._rows()
        queries = {q.name: {"rows": counts.get(q.name, 0), "done_s": done_s.get(q.name)} for q in cell.queries}
        took_s = ended_at_s - first_at_s
        return Outcome(self.contender.name, self.contender.title, cpu_s, took_s, queries, began_at_s=first_at_s)

    def _start(self, cell: Cell, query: BenchQuery) -> None:
        spec = QUERIES[query.name]
        reports = self._from_kafka(cell, query) if self._kafka else self._from_trace(cell, query)
        writer = spec.build(reports).writeStream.format("noop").outputMode(spec.output_mode).queryName(query.name)
        writer = writer.option("checkpointLocation", str(self._checkpoint(query.name)))
        trigger_s = query.trigger_s if query.trigger_s is not None else self.contender.trigger_s(query, cell.queries)
        if trigger_s:
            writer = writer.trigger(processingTime=f"{trigger_s * 1e3:.0f} milliseconds")
        self.hg.start(writer, deadline=query.deadline_s)

    def _from_trace(self, cell: Cell, query: BenchQuery) -> DataFrame:
        source = self.hg.readStream.format("headgate-trace").option("workload", "linear-road")
        if query.max_rows is not None:
            source = source.option("maxRowsPerTrigger", str(query.max_rows))
        if cell.rows is not None:
            source = source.option("rows", str(cell.rows))
        return source.option("rate", query.rate).option("seed", str(cell.seed)).load()

    def _from_kafka(self, cell: Cell, query: BenchQuery) -> DataFrame:
        """Queries with the same traffic share a topic, as consumers of one feed do."""
        from headgate.bench.kafka.feeder import reports_of
        from headgate.bench.kafka.flow import KafkaFlow

        assert self._kafka is not None
        if query.rate not in self._flows:
            self._flows[query.rate] = KafkaFlow(self._kafka, query.rate, cell.seed, self._workspace)
        source = self.hg.readStream.format("headgate-kafka").option("kafka.bootstrap.servers", self._kafka)
        if query.max_rows is not None:
            source = source.option("maxOffsetsPerTrigger", str(query.max_rows))
        return reports_of(source.option("subscribe", self._flows[query.rate].topic).load())

    def _first_arrivals_s(self) -> dict[str, float]:
        """When the traffic of each query really began, as far as its first batch is still known."""
        return {b.query: b.oldest_at_s for b in self.hg.recorder.batches() if b.batch_id == 0 and b.oldest_at_s}

    def _reading(self) -> Reading:
        return Reading(time.monotonic(), self._cpu_s(), self._rows())

    def _cpu_s(self) -> float:
        """CPU seconds of this process and everything it started for the queries: JVM, planning processes, workers."""
        return _cpu_s({flow.pid for flow in self._flows.values()})

    def _checkpoint(self, name: str) -> Path:
        """A fresh folder that begins with what the cell before has learned."""
        before, folder = (self._workspace / f"{number}" / name for number in (self._cells - 1, self._cells))
        learned = Path(model_store.FOLDER) / "model.json"
        if (before / learned).exists():
            (folder / learned).parent.mkdir(parents=True)
            shutil.copy(before / learned, folder / learned)
        return folder

    def _settle(self, cell: Cell) -> None:
        """At least the cell's settling time; a warm-up goes on until batch times and the compiler are quiet."""
        end_s = time.monotonic() + cell.longest_settle_s
        compiler = CompilerWatch()
        self._pause(cell.settle_s, f"{cell.title} warming up, not counted,")
        while time.monotonic() < end_s:
            compiler.look(time.monotonic(), internals.compile_s(self.hg.spark))
            if not (still_falling(self.hg.recorder.batches(), time.time()) or compiler.busy):
                return
            self._pause(2.0, f"{cell.title} warming up until batch times stop falling,")

    def _pause(self, seconds: float, what: str, cell: Cell | None = None) -> bool:
        """Wait; with `cell`, only until one of its promises is certainly broken, and tell whether one was."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            self.phase = f"{what} {left_s:.0f} s left"
            time.sleep(min(0.5, left_s))
            if cell is not None and self._broken(cell):
                return True
        return False

    def _broken(self, cell: Cell) -> bool:
        """Whether some query has more late records already than the whole measured time allows."""
        found = self.hg.recorder.summaries()
        for query in cell.queries:
            expected = parse_traffic(query.rate, cell.seed).mean_rate * cell.measure_s
            # Twice as many: random traffic may bring more records than its mean.
            if query.name in found and found[query.name].violations > 2 * (1 - DEFAULT_SLO) * expected:
                return True
        return False

    def _rows(self) -> dict[str, int]:
        """Records with a result. Not Spark's count of rows: a join of a stream with itself reads each record twice."""
        return {name: summary.datasets for name, summary in self.hg.recorder.summaries().items()}

    def _drain(self, cell: Cell, end_at_s: float) -> None:
        """Records that arrived within the measured time but have no result yet count too: wait for their batch."""
        for query in cell.queries:
            give_up_s = end_at_s + DRAIN_DEADLINES * query.deadline_s + DRAIN_S
            while time.time() < give_up_s and not self._done_since(query.name, end_at_s):
                time.sleep(0.1)

    def _done_since(self, query: str, at_s: float) -> bool:
        return any(record.opened_at_s >= at_s for record in self.hg.recorder.batches(query)[-3:])

    def _more(self, summary: QuerySummary, left: int, waited_s: float) -> dict[str, Any]:
        """`left` records have waited for longer than their deadline, and at least for `waited_s`, without a result."""
        batches = [batch for batch in self.hg.recorder.batches(summary.query) if batch.latency is not None]
        sizes = [batch.latency.rows for batch in batches if batch.latency]
        maxima_s = [batch.latency.max_s for batch in batches if batch.latency]
        span_s = batches[-1].finished_at_s - batches[0].finished_at_s if batches else 0.0
        return {
            "rows": summary.datasets,
            "rows_per_s": sum(sizes[1:]) / span_s if span_s > 0 else 0.0,
            "left_rows": summary.left_rows,
            "batch_times": [(rows, round(b.duration_s, 4)) for rows, b in zip(sizes, batches, strict=True)],
            **latency_figures(summary.latencies, maxima_s, left, waited_s),
            **(_with_left(summary, left) if left else {}),
        }


def _left_late_rows(
    query: BenchQuery, seed: int, origin_s: float, begun_at_s: float, until_s: float, finished_rows: int
) -> int:
    """Records that came before `until_s` and have no result.

    The traffic began at `origin_s`; the query reads what came from `begun_at_s` on, the oldest first.
    """
    if query.max_rows is not None:  # a limited source is meant to fall behind
        return 0
    traffic = parse_traffic(query.rate, seed)
    due_rows = traffic.count_before(max(0.0, until_s - origin_s))
    due_rows -= traffic.count_before(max(0.0, begun_at_s - origin_s))
    return max(0, due_rows - finished_rows)


def _with_left(summary: QuerySummary, left: int) -> dict[str, Any]:
    """Records without a result are late too."""
    violations = summary.violations + left
    rate = violations / (summary.datasets + left)
    return {
        "left_late_rows": left, "violations": violations, "violation_rate": rate,
        "keeps_promise": rate <= 1 - summary.slo,
    }  # fmt: skip


def _cpu_s(without: Collection[int]) -> float:
    import psutil

    me = psutil.Process(os.getpid())
    return sum(_cpu_of(process) for process in [me, *me.children(recursive=True)] if process.pid not in without)


def _cpu_of(process: Any) -> float:
    import psutil

    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    # Workers that have ended count in their parent's children_* times.
    return float(times.user + times.system + times.children_user + times.children_system)


def _use_cores(cores: int) -> None:
    """Fewer cores for this process and all that it starts: a JVM's own threads should not have the others either."""
    if not hasattr(os, "sched_setaffinity"):
        raise HeadgateError(
            "fewer cores than the machine has can be measured on Linux only: leave the part scaling out"
        )
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


KEEP_HEAP = "-XX:MaxHeapFreeRatio=100"
"""A heap that is cleared between cells would be made small each time, and grow again at the cost of the next cell."""


def session_settings(contender: Contender) -> dict[str, Any]:
    """What differs between contenders' sessions: the scheduler, and slots to spare or not. Partitions stay the same."""
    conf = {"spark.scheduler.mode": contender.mode, "spark.driver.extraJavaOptions": KEEP_HEAP}
    return {"master": "local[*]" if contender.plain_slots else None, "conf": conf}


@contextlib.contextmanager
def opened(contender: Contender, cores: int | None, *, show: bool, kafka: str | None) -> Iterator[Bench]:
    """Spark, Headgate and, if people watch, the live view."""
    with tempfile.TemporaryDirectory(prefix="headgate-bench-", ignore_cleanup_errors=True) as workspace:
        if cores is not None and cores < local_cores():
            _use_cores(cores)
        spark = session(f"headgate-{contender.name}", **session_settings(contender))
        start_workers(spark, local_slots(str(spark.sparkContext.master)) or 1)
        # Headgate's own run is kept for `headgate explain`; there is nothing to explain about a stock trigger.
        records = None if contender.trigger_share is None and show else f"{workspace}/batches.jsonl"
        policy = contender.policy if contender.mode == "FAIR" else None
        hg = Headgate(spark, policy=policy, admission=contender.admission, records=records)
        bench = Bench(contender, hg, workspace, kafka)
        try:
            with LiveView(hg.status, lambda: bench.phase) if show else contextlib.nullcontext():
                yield bench
        finally:
            hg.stop()
            spark.stop()


def main() -> int:
    end_with_parent()
    settings = json.loads(Path(sys.argv[1]).read_text())
    tasks = map(json.loads, sys.stdin)
    for _, own in itertools.groupby(tasks, key=lambda task: int(task["application"])):
        first = next(own)
        with opened(Contender(**first["contender"]), **settings) as bench:
            for task in itertools.chain([first], own):
                _answer(task, bench.run(Cell.from_json(task["cell"])))
    return 0


def _answer(task: dict[str, Any], outcome: Outcome) -> None:
    part = Path(task["answer"] + ".part")
    part.write_text(json.dumps(asdict(outcome)))
    part.rename(task["answer"])


if __name__ == "__main__":
    sys.exit(main())
