"""When a batch must start at the latest, with the company it will have and with those who come after it."""

from __future__ import annotations

import math

from headgate.core.snapshot import QueryView, Snapshot

OVERRUN = 1.25
"""Who waits for the end of a batch reckons with this many times what is left of it: an end is only expected."""

TIGHTER = 0.5
"""A query whose deadline is at most this share of another's need not wait for the other's batches: it starts beside
them when it has to. Its own are short beside such a deadline, and the other bears that."""

SAFETY_S = 0.02
"""The way from a decision to Spark and back (polling delay 10 ms, process switches) that no model sees."""


def much_tighter(query: QueryView, other: QueryView) -> bool:
    """Whether the promise of `query` is so much tighter that it does not take turns with `other`."""
    deadline_s = query.promise.deadline_s
    return deadline_s is not None and deadline_s <= TIGHTER * (other.promise.deadline_s or math.inf)


def own_latest(snapshot: Snapshot, query: QueryView, overlap: float) -> float:
    """Its latest start with the company it would have; alone, if it can still wait until that company has finished.

    Otherwise queries that once ran together would each be due at once because of the others, for ever.
    """
    now_s = snapshot.now_s
    beside_s, alone_s = latest_start(query, now_s, overlap), latest_start(query, now_s, 0.0)
    end_s = max((running.finish_at_s for _, running in snapshot.at_work(query)), default=now_s)
    clear_s = now_s + OVERRUN * (end_s - now_s)
    return alone_s if beside_s <= now_s < clear_s <= alone_s else beside_s


def must_start_at(snapshot: Snapshot, query: QueryView) -> float:
    """When it must start, alone and before all that come after it in turn: feared company makes nobody urgent."""
    return min(latest_start(query, snapshot.now_s, 0.0), _line_up(query, _behind(snapshot, query, turns=True), 1.0))


def latest_start(query: QueryView, now_s: float, overlap: float) -> float:
    """When the batch must start so that its oldest record is in time at the SLO quantile, growing as it waits.

    Solves  t + scale * (fixed + per_row * (rows + rate * (t - now))) = due  for t.
    """
    waiting, cost = query.waiting, query.cost
    if waiting is None or query.promise.deadline_s is None:
        return math.inf
    scale = cost.factor(overlap, query.promise.slo) * (1.0 + cost.stretch * overlap)
    growth = scale * cost.per_row_s * waiting.rate_rows_s
    needed_s = scale * (cost.fixed_s + cost.per_row_s * waiting.rows)
    return now_s + (query.due_at_s - SAFETY_S - now_s - needed_s) / (1.0 + growth)


def place_in_line(snapshot: Snapshot, query: QueryView, *, turns: bool) -> float:
    """When it must start if every waiting query is to be in time, one after another in the order of their deadlines.

    Laid out backwards from the last deadline: without this, queries that are due together would all start at their
    latest moment, together. Others take up time only as far as their batches slow each other down. With `turns` those
    do not count beside which it may start when it has to: for their sake it would run small batches without a pause.
    """
    return _line_up(query, _behind(snapshot, query, turns=turns), min(1.0, query.cost.stretch))


def _line_up(query: QueryView, behind: list[QueryView], weight: float) -> float:
    start_s = math.inf
    for due_s, needed_s in sorted(map(_need, behind), reverse=True):
        start_s = min(start_s, due_s) - weight * needed_s
    due_s, needed_s = _need(query)
    return min(start_s, due_s) - needed_s


def _behind(snapshot: Snapshot, query: QueryView, *, turns: bool) -> list[QueryView]:
    """The other waiting queries that are due later: what they need lies between `query` and its deadline."""
    due_s = query.due_at_s
    return [
        other
        for other in snapshot.others(query)
        if other.waiting is not None
        and other.running is None
        and other.cost.ready
        and due_s <= other.due_at_s < math.inf
        and not (turns and much_tighter(query, other))
    ]


def _need(query: QueryView) -> tuple[float, float]:
    """(deadline, duration at the SLO quantile) of what waits."""
    assert query.waiting is not None
    return query.due_at_s - SAFETY_S, query.cost.quantile_s(query.waiting.rows, 0.0, query.promise.slo)


def expected_overlap(snapshot: Snapshot, query: QueryView) -> float:
    """How many other batches will run beside this one on average, if it starts now."""
    if query.waiting is None:
        return 0.0
    span_s = max(query.cost.expected_s(query.waiting.rows), 1e-3)
    return sum(_shared_s(other, snapshot.now_s, span_s) for other in snapshot.others(query)) / span_s


def _shared_s(other: QueryView, now_s: float, span_s: float) -> float:
    """Seconds of the next `span_s` during which `other` will run: its running batch, or one that soon has to."""
    if other.running is not None:
        return 0.0 if other.running.stuck else min(span_s, max(0.0, other.running.finish_at_s - now_s))
    if other.waiting is None or other.promise.deadline_s is None or not other.cost.ready:
        return 0.0
    begins_s = max(0.0, latest_start(other, now_s, 0.0) - now_s)
    return max(0.0, min(span_s - begins_s, other.cost.expected_s(other.waiting.rows)))
