"""The rules of the papers, literally: admit when the expected finish of the oldest record reaches its deadline.

Both ignore the fixed cost of a batch and the spread of the estimate, so about half of their batches miss; they are here
as peers to compare with. Instead of asking every 10 ms they compute when the inequality will hold.
"""

from __future__ import annotations

from headgate.core.admission import verdicts
from headgate.core.admission.decision import Decision
from headgate.core.durations import format_duration
from headgate.core.snapshot import QueryView, Snapshot

_SHARED = ("fair", "rdas")


def qspark(snapshot: Snapshot, query: QueryView) -> Decision:
    """Q-Spark: TailLatency + n / (MaxThroughput * L_thr) + L_lat >= Deadline."""
    shared = snapshot.policy in _SHARED
    others = [other.running for other in snapshot.others(query) if other.running is not None]
    fraction = 1.0 / (1 + len(others)) if shared else 1.0
    queued_s = 0.0 if shared else sum(_queued_s(other, best=True) for other in snapshot.others(query))
    return _admit(snapshot, query, query.cost.max_rows_s or query.cost.mean_rows_s, fraction, queued_s)


def zstream(snapshot: Snapshot, query: QueryView) -> Decision:
    """zStream: T_buff + T_sched + n / (AvgThPut * share of the cores) >= Deadline."""
    running = sum(other.running is not None for other in snapshot.others(query))
    fraction = 1.0 / (1 + running) if snapshot.policy in _SHARED else 1.0
    queued_s = sum(_queued_s(other, best=False) for other in snapshot.others(query))
    return _admit(snapshot, query, query.cost.mean_rows_s, fraction, queued_s)


def _queued_s(other: QueryView, *, best: bool) -> float:
    """Estimated work of a batch that is already let in (the papers do not subtract what it has done so far)."""
    rows_s = (other.cost.max_rows_s if best else 0.0) or other.cost.mean_rows_s
    return 0.0 if other.running is None or rows_s <= 0 else other.running.rows / rows_s


def _admit(snapshot: Snapshot, query: QueryView, rows_s: float, fraction: float, queued_s: float) -> Decision:
    waiting, deadline_s = query.waiting, query.promise.deadline_s
    if waiting is None or waiting.rows <= 0:
        return verdicts.IDLE
    if deadline_s is None:
        return Decision(
            True, "slack", "no deadline: the paper knows no such query", predicted_s=waiting.rows / max(rows_s, 1.0)
        )
    if rows_s <= 0 or not query.cost.ready:
        return verdicts.learning(query, waiting)
    speed = rows_s * fraction
    run_s = waiting.rows / speed
    latency_s = max(0.0, snapshot.now_s - waiting.oldest_at_s) + queued_s + run_s
    text = f"expected latency {format_duration(latency_s)} of {format_duration(deadline_s)}, {waiting.rows:,.0f} rows"
    if latency_s >= deadline_s:
        return Decision(True, "due", f"{text}: reached", latest_start_s=snapshot.now_s, predicted_s=run_s)
    # While it waits, a second adds a second of age and the run time of the rows that arrive in it.
    until_s = snapshot.now_s + (deadline_s - latency_s) / (1.0 + waiting.rate_rows_s / speed)
    return Decision(False, "buffer", f"{text}: buffers", until_s=until_s, latest_start_s=until_s, predicted_s=run_s)
