"""The few decisions that every rule shares."""

from __future__ import annotations

from headgate.core.admission.decision import Decision
from headgate.core.snapshot import QueryView, Snapshot, Waiting

IDLE = Decision(open=False, code="idle", reason="nothing waits")

LEARNING_MAX_ROWS = 1_000_000
"""Cap of a batch whose cost nobody knows yet: an unbounded first batch is how streaming jobs run out of memory."""


def learning(query: QueryView, waiting: Waiting) -> Decision:
    """Without a trusted model, behave as plain Spark does: start at once."""
    return Decision(
        open=True,
        code="learning",
        reason=f"batch {query.cost.batches + 1}: too few batches seen to predict, starts at once",
        max_rows=cap(query, LEARNING_MAX_ROWS),
        predicted_s=query.cost.expected_s(waiting.rows),
    )


def observe(snapshot: Snapshot, query: QueryView) -> Decision:
    """Never hold, never limit: Spark's trigger decides, Headgate only measures."""
    waiting = query.waiting
    if waiting is None:
        return IDLE
    return Decision(
        True, "observe", "only observed: the trigger decides", predicted_s=query.cost.expected_s(waiting.rows)
    )


def cap(query: QueryView, rows: int) -> int | None:
    """A row limit of at least one, or None where the source cannot be limited or everything fits anyway."""
    if not query.divisible or query.waiting is None or query.waiting.rows <= rows:
        return None
    return max(1, rows)
