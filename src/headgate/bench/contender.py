"""Runs one contender in this process: ``python -m headgate.bench.contender PLAN.json OUTCOME.json``.

Stock contenders use the same session settings and the same source with an open gate, so that the only difference is who
decides when a batch starts and which one gets the cores.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.bench.plan import BenchQuery, Outcome, Plan
from headgate.cli.live import LiveView
from headgate.engine.session import session
from headgate.headgate import DEFAULT_SLO, Headgate
from headgate.metrics.summary import QuerySummary
from headgate.workloads.queries import QUERIES

if TYPE_CHECKING:
    from headgate.engine.query import GatedQuery

DRAIN_S = 5.0
"""Beyond a query's deadline, how long to wait for the records that arrived within the measured time."""


def run(plan: Plan, workspace: str) -> Outcome:
    """Start the queries, wait until they are warm, measure, and wait for what had arrived by then."""
    spark = session(f"headgate-{plan.contender.name}", master=None if plan.cores is None else f"local[{plan.cores}]")
    phase = ["starting Spark"]
    # Headgate's own run is kept for `headgate explain`; there is nothing to explain about a stock trigger.
    records = None if plan.contender.trigger == "none" else f"{workspace}/batches.jsonl"
    hg = Headgate(spark, policy=plan.contender.policy, admission=plan.contender.admission, records=records)
    try:
        with LiveView(hg.status, lambda: f"{plan.title or plan.contender.title}: {phase[0]}"):
            return _measure(plan, hg, phase, workspace)
    finally:
        hg.stop()
        spark.stop()


def _measure(plan: Plan, hg: Headgate, phase: list[str], workspace: str) -> Outcome:
    for query in plan.queries:
        phase[0] = f"starting {query.name}"
        _start(plan, hg, query, workspace)
    _pause(plan.warm_up_s, phase, "warming up, not counted,")
    hg.recorder.reset()
    cpu_s, begun_s = _cpu_s(), time.monotonic()
    _pause(plan.measure_s, phase, "measuring,")
    cpu_s, measured_s = _cpu_s() - cpu_s, time.monotonic() - begun_s
    phase[0] = "waiting for the last records"
    _drain(plan, hg, time.time())
    return Outcome(plan.contender.name, plan.contender.title, cpu_s, measured_s, _results(plan, hg))


def _start(plan: Plan, hg: Headgate, query: BenchQuery, workspace: str) -> GatedQuery:
    spec = QUERIES[query.name]
    source = hg.readStream.format("headgate-trace").option("workload", "linear-road")
    reports = source.option("rate", query.rate).option("seed", str(plan.seed)).load()
    writer = spec.build(reports).writeStream.format("noop").outputMode(spec.output_mode).queryName(query.name)
    writer = writer.option("checkpointLocation", f"{workspace}/{query.name}")
    if plan.contender.trigger == "deadline":
        writer = writer.trigger(processingTime=f"{query.deadline_s * 1e3:.0f} milliseconds")
    return hg.start(writer, deadline=query.deadline_s)


def _pause(seconds: float, phase: list[str], what: str) -> None:
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        phase[0] = f"{what} {left_s:.0f} s left"
        time.sleep(min(0.5, left_s))


def _drain(plan: Plan, hg: Headgate, end_at_s: float) -> None:
    """Records that arrived within the measured time but have no result yet count too: wait for their batch."""
    for query in plan.queries:
        give_up_s = end_at_s + query.deadline_s + DRAIN_S
        while time.time() < give_up_s and not _done_since(hg, query.name, end_at_s):
            time.sleep(0.1)


def _done_since(hg: Headgate, query: str, at_s: float) -> bool:
    return any(record.opened_at_s >= at_s for record in hg.recorder.batches(query)[-3:])


def _results(plan: Plan, hg: Headgate) -> dict[str, dict[str, Any]]:
    """Per query, in the plan's order; a query that finished no batch has counted nothing."""
    found = hg.recorder.summaries()
    summaries = [found.get(q.name) or QuerySummary(q.name, q.deadline_s, DEFAULT_SLO) for q in plan.queries]
    return {summary.query: summary.to_json() | {"cdf": _cdf(summary.latencies)} for summary in summaries}


def _cdf(latencies: Any) -> list[tuple[float, float]]:
    shares = [index / 200 for index in range(1, 200)] + [0.997, 0.999, 1.0]
    return [(latencies.quantile(share), share) for share in shares] if latencies.count else []


def _cpu_s() -> float:
    """CPU seconds of this process and everything it started: the JVM, planning processes, workers."""
    import psutil

    me = psutil.Process(os.getpid())
    return sum(_cpu_of(process) for process in [me, *me.children(recursive=True)])


def _cpu_of(process: Any) -> float:
    import psutil

    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    # Workers that have ended count in their parent's children_* times.
    return float(times.user + times.system + times.children_user + times.children_system)


def main() -> int:
    plan_path, outcome_path = Path(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as workspace:
        outcome = run(Plan.read(plan_path), workspace)
    outcome_path.write_text(json.dumps({name: getattr(outcome, name) for name in outcome.__slots__}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
