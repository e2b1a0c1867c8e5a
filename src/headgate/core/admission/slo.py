"""Headgate's own rule: the predicted finish at the SLO quantile decides the latest safe start.

    oldest arrival            latest safe start              deadline of the oldest
         |------- may wait -----------|--- predicted at p99 ---------|

Before that moment a batch may start early if there is room and no other promise suffers (slack stealing); at that
moment it starts. If it can no longer be in time it starts at once.

Spark does not take a core back from a running task. Where it has slots to spare the operating system does; elsewhere
a batch is *considerate*: beside queries with tighter deadlines it takes only so many rows that they need not wait long
for one of its tasks, and starts as soon as it has them instead of hoarding until its own deadline. Only what keeping
up with the arrivals needs goes beyond that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headgate.core.admission import verdicts
from headgate.core.admission.decision import Decision
from headgate.core.admission.pacing import EARLY_END_BY, pace_s, work_share
from headgate.core.durations import format_duration
from headgate.core.snapshot import QueryView, Snapshot, Waiting

HARMLESS_STRETCH = 0.25
"""Cores count as idle while the batches that run would slow this one by less than this."""

CORES_PER_BATCH = 4
"""... or while there are so many cores for each batch: on large machines company is tried, and so learned."""

OVERRUN = 1.25
"""Who waits for the end of a batch reckons with this many times what is left of it: an end is only expected."""

CONSIDERATE_SHARE = 0.75
"""A batch takes at most this share of the tightest other deadline. What the other waits for is one of its tasks, not
the whole batch, but tasks are of unequal length and the other's own batch needs its time too."""

KEEPING_UP = 1.3
"""... but enough that batches of that size, one after another, work off this much more than arrives."""

LEAST_LEFT_OVER = 0.35
"""... as far as that is possible: in a burst nothing is left over, and the deadline is there to outlast it."""

SMALLER = 0.5
"""... and these reasons for more count for at most this share of the usual batch: while batches are all of one size
nobody knows which part of their cost is fixed, and a large one would justify itself for ever."""

OWN_DANGER_FROM, OWN_DANGER_GROWTH = 0.4, 6.0
"""From this share of its own deadline on, a batch grows with the age of what waits: consideration has its limits."""

FRESH_SHARE = 0.2
"""If a collision with a tighter query cannot be avoided, start while its oldest record has used at most this share
of its deadline: just after its last batch, not into its next one."""

BEST_EFFORT_PATIENCE_S = 30.0
"""A query without a deadline runs in the slack of the others, but is never held longer than this."""

BEST_EFFORT_SPAN_S = 5.0
"""... and takes a backlog in batches of about this long, so that a promise is never far away from free cores."""

SAFETY_S = 0.02
"""The way from a decision to Spark and back (polling delay 10 ms, process switches) that no model sees."""


def slo(snapshot: Snapshot, query: QueryView) -> Decision:
    """Latest safe start at the SLO quantile, earlier on idle cores."""
    return _decide(snapshot, query, steal=True)


def latest(snapshot: Snapshot, query: QueryView) -> Decision:
    """Always wait for the latest safe start: the fewest batches, the least CPU."""
    return _decide(snapshot, query, steal=False)


def _decide(snapshot: Snapshot, query: QueryView, *, steal: bool) -> Decision:
    waiting = query.waiting
    if waiting is None or waiting.rows <= 0:
        return verdicts.IDLE
    if query.promise.deadline_s is None:
        return _best_effort(snapshot, query, waiting)
    if not query.cost.ready:
        return verdicts.learning(query, waiting)
    plan = _plan(snapshot, query, waiting)
    rows = considerate_rows(snapshot, query, waiting) if steal else math.inf
    if snapshot.now_s >= plan.latest_start_s:
        return _start_due(snapshot.now_s, query, waiting, plan, rows)
    if not steal:
        return _hold(plan, plan.latest_start_s, "buffer", f"buffers until its latest safe start, {plan.text}")
    early = _early_start(snapshot, query, waiting, rows)
    if early.at_s <= snapshot.now_s:
        return _open(query, plan, "early", f"{early.why}, {plan.text}", _limit(query, rows))
    return _hold(plan, min(plan.latest_start_s, early.at_s), "busy", f"{early.why}, {plan.text}")


@dataclass(frozen=True, slots=True)
class _Plan:
    """The arithmetic of one decision, kept for its reason."""

    overlap: float
    expected_s: float
    safe_s: float
    """Duration at the SLO quantile."""
    latest_start_s: float
    text: str


def _plan(snapshot: Snapshot, query: QueryView, waiting: Waiting) -> _Plan:
    now_s = snapshot.now_s
    overlap = expected_overlap(snapshot, query)
    expected_s = query.cost.expected_s(waiting.rows, overlap)
    safe_s = query.cost.quantile_s(waiting.rows, overlap, query.promise.slo)
    latest_s = min(_own_latest(snapshot, query, overlap), place_in_line(snapshot, query))
    text = (
        f"{waiting.rows:,.0f} rows, oldest {format_duration(max(0.0, now_s - waiting.oldest_at_s))} old, "
        f"needs {format_duration(safe_s)} at p{query.promise.slo * 100:g}"
    )
    return _Plan(overlap, expected_s, safe_s, latest_s, text)


def _own_latest(snapshot: Snapshot, query: QueryView, overlap: float) -> float:
    """Its latest start with the company it would have; alone, if it can still wait until that company has finished.

    Otherwise queries that once ran together would each be due at once because of the others, for ever.
    """
    now_s = snapshot.now_s
    beside_s, alone_s = latest_start(query, now_s, overlap), latest_start(query, now_s, 0.0)
    end_s = max((other.running.finish_at_s for other in snapshot.others(query) if other.running), default=now_s)
    clear_s = now_s + OVERRUN * (end_s - now_s)
    return alone_s if beside_s <= now_s < clear_s <= alone_s else beside_s


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


def place_in_line(snapshot: Snapshot, query: QueryView) -> float:
    """When it must start if every waiting query is to be in time, one after another in the order of their deadlines.

    Laid out backwards from the last deadline: without this, queries that are due together would all start at their
    latest moment, together. Others take up time only as far as their batches slow each other down.
    """
    weight = min(1.0, query.cost.stretch)
    start_s = math.inf
    for due_s, needed_s in sorted(map(_need, _behind(snapshot, query)), reverse=True):
        start_s = min(start_s, due_s) - weight * needed_s
    due_s, needed_s = _need(query)
    return min(start_s, due_s) - needed_s


def _behind(snapshot: Snapshot, query: QueryView) -> list[QueryView]:
    """The other waiting queries that are due later: what they need lies between `query` and its deadline."""
    due_s = query.due_at_s
    return [
        other
        for other in snapshot.others(query)
        if other.waiting is not None
        and other.running is None
        and other.cost.ready
        and due_s <= other.due_at_s < math.inf
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
        return min(span_s, max(0.0, other.running.finish_at_s - now_s))
    if other.waiting is None or other.promise.deadline_s is None or not other.cost.ready:
        return 0.0
    begins_s = max(0.0, latest_start(other, now_s, 0.0) - now_s)
    return max(0.0, min(span_s - begins_s, other.cost.expected_s(other.waiting.rows)))


def considerate_rows(snapshot: Snapshot, query: QueryView, waiting: Waiting) -> float:
    """The largest batch that queries with tighter deadlines can wait for; infinite if they need not, or are none.

    More if a batch would else not be worth its fixed cost or not keep up with the arrivals, and as its own deadline
    comes nearer.
    """
    assert query.promise.deadline_s is not None
    if snapshot.time_sliced:
        return math.inf
    others = snapshot.others(query)
    tightest_s = min((other.promise.deadline_s or math.inf for other in others), default=math.inf)
    if tightest_s >= query.promise.deadline_s:
        return math.inf
    cost = query.cost
    rows = max(0.0, CONSIDERATE_SHARE * tightest_s - cost.fixed_s) / max(cost.per_row_s, 1e-12)
    age = (snapshot.now_s - waiting.oldest_at_s) / query.promise.deadline_s
    growth = 1.0 + OWN_DANGER_GROWTH * max(0.0, age - OWN_DANGER_FROM)
    busy = sum(work_share(other) for other in others)
    needed = max(_rows_worth_fixed_cost(query), _rows_keeping_up(query, waiting, busy))
    return math.ceil(growth * max(rows, min(needed, SMALLER * cost.mean_rows)))


def _limit(query: QueryView, rows: float) -> int | None:
    return None if math.isinf(rows) else verdicts.cap(query, int(rows))


def _start_due(now_s: float, query: QueryView, waiting: Waiting, plan: _Plan, considerate: float) -> Decision:
    budget_s = query.due_at_s - SAFETY_S - now_s
    rows = query.cost.rows_within(budget_s, plan.overlap, query.promise.slo)
    if waiting.rows <= rows or budget_s >= plan.expected_s:
        return _open(query, plan, "due", f"its latest safe start, {plan.text}", _limit(query, considerate))
    # A sliver that fits would waste the fixed cost and let the backlog grow.
    if rows >= _rows_worth_a_batch(query, waiting) and query.divisible:
        limit = _limit(query, min(rows, considerate))
        return _open(query, plan, "fits", f"takes {limit or rows:,} rows, which still fit, {plan.text}", limit)
    return _late(query, waiting, plan, considerate)


def _late(query: QueryView, waiting: Waiting, plan: _Plan, considerate: float) -> Decision:
    """Too late for the oldest: start now; a batch of about one deadline's work keeps the backlog moving."""
    assert query.promise.deadline_s is not None
    rows = query.cost.rows_within(query.promise.deadline_s, plan.overlap, 0.5)
    # Twice the usual: only larger batches can show that larger batches cost hardly more.
    enough = max(rows, _rows_worth_a_batch(query, waiting), 2 * int(query.cost.mean_rows))
    limit = _limit(query, min(enough, considerate))
    taking = "" if limit is None else f"takes {limit:,} rows, "
    return _open(query, plan, "late", f"can no longer be in time, starts at once, {taking}{plan.text}", limit)


def _rows_worth_a_batch(query: QueryView, waiting: Waiting) -> int:
    """The smallest batch that is worth its fixed cost and, repeated, keeps up with the arrivals."""
    return math.ceil(max(_rows_worth_fixed_cost(query), _rows_keeping_up(query, waiting)))


def _rows_worth_fixed_cost(query: QueryView) -> float:
    """As many rows as take the same time again."""
    return min(1e15, query.cost.fixed_s / max(query.cost.per_row_s, 1e-12))


def _rows_keeping_up(query: QueryView, waiting: Waiting, others_busy: float = 0.0) -> float:
    """Batches of this size, one after another, work off a little more than arrives."""
    cost = query.cost
    # Of each second, after the rows' work.
    left_over = max(LEAST_LEFT_OVER, 1.0 - others_busy - waiting.rate_rows_s * cost.per_row_s)
    return KEEPING_UP * waiting.rate_rows_s * cost.fixed_s / left_over


def _open(query: QueryView, plan: _Plan, code: str, reason: str, max_rows: int | None) -> Decision:
    expected_s = plan.expected_s if max_rows is None else query.cost.expected_s(max_rows, plan.overlap)
    return Decision(True, code, reason, max_rows=max_rows, latest_start_s=plan.latest_start_s, predicted_s=expected_s)


def _hold(plan: _Plan, until_s: float, code: str, reason: str) -> Decision:
    return Decision(
        False, code, reason, until_s=until_s, latest_start_s=plan.latest_start_s, predicted_s=plan.expected_s
    )


@dataclass(frozen=True, slots=True)
class _Early:
    """The next moment at which an early start may be possible, and what stands in its way until then."""

    at_s: float
    why: str


def _early_start(snapshot: Snapshot, query: QueryView, waiting: Waiting, limit_rows: float) -> _Early:
    now_s = snapshot.now_s
    span_s = query.cost.expected_s(min(waiting.rows, limit_rows))
    running = _in_the_way(snapshot, query)
    if running and not _may_join(snapshot, query, running, span_s):
        # An end is an event that asks again; a time-out would only ask for nothing.
        return _Early(math.inf, _waits_for(running))
    paced_s = min(waiting.oldest_at_s + pace_s(snapshot, query), _full_at(waiting, limit_rows, now_s))
    if now_s < paced_s:
        return _Early(paced_s, "gathers a worthwhile batch")
    for other in snapshot.others(query):
        if _would_suffer(other, now_s, span_s):
            return _Early(math.inf, f"leaves the cores to {other.name}")
    return _Early(now_s, "there is room")


def _full_at(waiting: Waiting, limit_rows: float, now_s: float) -> float:
    """When as many rows wait as the batch may hold."""
    missing = limit_rows - waiting.rows
    return now_s + max(0.0, missing) / max(waiting.rate_rows_s, 1e-9)


def _in_the_way(snapshot: Snapshot, query: QueryView) -> list[QueryView]:
    """Those whose batches run, if they leave no idle cores for one of `query`."""
    running = [other for other in snapshot.others(query) if other.running is not None]
    idle = len(running) * query.cost.stretch <= HARMLESS_STRETCH or len(running) < _room(snapshot)
    return [] if idle else running


def _waits_for(running: list[QueryView]) -> str:
    return f"waits for {running[0].name} to finish"


def _room(snapshot: Snapshot) -> int:
    return max(1, snapshot.cores // CORES_PER_BATCH)


def _may_join(snapshot: Snapshot, query: QueryView, running: list[QueryView], span_s: float) -> bool:
    """Whether a batch may start beside those that run: planning, commits and single tasks leave cores unused."""
    now_s = snapshot.now_s
    # The scheduler serves the more urgent batch first, so that company costs it little.
    urgent = all(query.due_at_s < other.running.due_at_s for other in running if other.running)
    if len(running) > _room(snapshot) and not urgent:
        return False
    if all(_bears_company(other, now_s, span_s) and _gains_more(query, other, now_s, span_s) for other in running):
        return True
    # One after another each batch is done sooner, so that whoever can wait does.
    left_s = max(other.running.finish_at_s for other in running if other.running) - now_s
    return latest_start(query, now_s, 0.0) < now_s + OVERRUN * left_s


def _gains_more(query: QueryView, other: QueryView, now_s: float, span_s: float) -> bool:
    """Whether a batch of `query` gains more by not waiting for the end of the other than both lose beside each other.

    What slows both down is as long as the shorter of the two. So a short batch joins one that still takes long, while
    two of a size run one after the other: neither would be done sooner, and one of them much later. A second is worth
    as much as it is of a deadline.
    """
    assert other.running is not None and query.promise.deadline_s is not None
    left_s = max(0.0, other.running.finish_at_s - now_s)
    worth = query.promise.deadline_s / (other.promise.deadline_s or math.inf)
    return left_s > (query.cost.stretch + worth * other.cost.stretch) * min(span_s, left_s)


def _bears_company(other: QueryView, now_s: float, span_s: float) -> bool:
    """Whether the batch that runs ends in good time even if another runs beside it for `span_s`."""
    running, deadline_s = other.running, other.promise.deadline_s
    if running is None or deadline_s is None:
        return True
    shared_s = min(span_s, max(0.0, running.finish_at_s - now_s))
    return running.finish_at_s + other.cost.stretch * shared_s <= running.due_at_s - (1.0 - EARLY_END_BY) * deadline_s


def _would_suffer(other: QueryView, now_s: float, span_s: float) -> bool:
    """Whether a batch that runs for `span_s` from now makes `other` miss a deadline that it would else keep."""
    if other.promise.deadline_s is None or not other.cost.ready or other.running is not None:
        return False
    oldest_s = other.waiting.oldest_at_s if other.waiting is not None else now_s
    rows = other.waiting.rows if other.waiting is not None else other.cost.mean_rows
    due_s = oldest_s + other.promise.deadline_s - SAFETY_S
    alone_s = other.cost.quantile_s(rows, 0.0, other.promise.slo)
    beside_s = other.cost.quantile_s(rows, 1.0, other.promise.slo)
    if now_s + span_s <= due_s - alone_s or now_s <= due_s - beside_s:
        return False
    unavoidable = other.promise.deadline_s - SAFETY_S < min(beside_s, span_s + alone_s)
    fresh = now_s - oldest_s <= FRESH_SHARE * other.promise.deadline_s
    return not (unavoidable and fresh)


def _best_effort(snapshot: Snapshot, query: QueryView, waiting: Waiting) -> Decision:
    now_s = snapshot.now_s
    limit = verdicts.cap(query, _best_effort_rows(query))
    span_s = query.cost.expected_s(limit or waiting.rows)
    limit_s = waiting.oldest_at_s + BEST_EFFORT_PATIENCE_S
    if now_s >= limit_s:
        reason = f"waited {BEST_EFFORT_PATIENCE_S:g} s for slack"
        return Decision(True, "patience", reason, max_rows=limit, predicted_s=span_s)
    if running := _in_the_way(snapshot, query):
        return Decision(False, "busy", _waits_for(running), until_s=limit_s, predicted_s=span_s)
    for other in snapshot.others(query):
        if other.promise.deadline_s is not None and _would_suffer(other, now_s, span_s):
            return Decision(False, "busy", f"leaves the cores to {other.name}", until_s=limit_s, predicted_s=span_s)
    return Decision(True, "slack", "no deadline: runs in the slack of the others", max_rows=limit, predicted_s=span_s)


def _best_effort_rows(query: QueryView) -> int:
    if not query.cost.ready:
        return verdicts.LEARNING_MAX_ROWS
    return max(1, query.cost.rows_within(BEST_EFFORT_SPAN_S, 0.0, 0.5))
