"""A query at one moment, for views: promise, reality, backlog, what its gate is doing and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headgate.core.clock import Instant

if TYPE_CHECKING:
    from headgate.core.dispatcher import Dispatcher
    from headgate.core.query_state import QueryState
    from headgate.metrics.summary import QuerySummary


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """One line of a live view."""

    query: str
    deadline_s: float | None
    slo: float
    gate: str
    """runs, holds, waits (for Spark to ask) or idle."""
    why: str
    batches: int
    rows: int
    rows_per_s: float
    backlog_rows: float
    backlog_s: float
    """Seconds of work that wait."""
    oldest_s: float | None
    """Age of the oldest waiting record."""
    violation_rate: float
    keeps_promise: bool
    p50_s: float | None
    p99_s: float | None
    model_error: float
    estimated: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def status_of(dispatcher: Dispatcher, summaries: dict[str, QuerySummary]) -> list[QueryStatus]:
    """All queries now; runs in the coordinator's thread."""
    now_s = Instant.now().mono_s
    return [_status(state, summaries.get(name), now_s) for name, state in dispatcher.queries.items()]


def _status(state: QueryState, summary: QuerySummary | None, now_s: float) -> QueryStatus:
    waiting = state.waiting(now_s)
    gate, why = _doing(state, now_s)
    return QueryStatus(
        query=state.config.name,
        deadline_s=state.config.promise.deadline_s,
        slo=state.config.promise.slo,
        gate=gate,
        why=why,
        batches=summary.batches if summary else 0,
        rows=summary.rows if summary else 0,
        rows_per_s=summary.rows_per_s if summary else 0.0,
        backlog_rows=waiting.rows if waiting else 0.0,
        backlog_s=state.cost.expected_s(waiting.rows) if waiting else 0.0,
        oldest_s=now_s - waiting.oldest_at_s if waiting else None,
        violation_rate=summary.violation_rate if summary else 0.0,
        keeps_promise=summary.keeps_promise if summary else True,
        p50_s=summary.quantile_s(0.5) if summary else None,
        p99_s=summary.quantile_s(0.99) if summary else None,
        model_error=summary.model_error if summary else 0.0,
        estimated=bool(summary and summary.estimated),
    )


def _doing(state: QueryState, now_s: float) -> tuple[str, str]:
    if (batch := state.round) is not None:
        ran_s = now_s - batch.opened.mono_s
        return "runs", f"{batch.rows or batch.expected_rows:,.0f} rows for {ran_s:.1f} s: {batch.decision.reason}"
    if state.holding is not None:
        return "holds", state.holding.reason
    if state.waiting(now_s) is not None:
        return "waits", "for Spark to ask: the trigger decides"
    return "idle", "nothing waits"
