"""Headgate's own rule: the predicted finish at the SLO quantile decides the latest safe start.

    oldest arrival            latest safe start              deadline of the oldest
         |------- may wait -----------|--- predicted at p99 ---------|

Before that moment a batch may start early if there is room and no other promise suffers (slack stealing); from then on
it is due, late or not. Early or due, it takes turns with batches of its size (:mod:`.turns`).

Spark does not take a core back from a running task. Where it has slots to spare the operating system does; elsewhere
a batch is *considerate*: beside queries with tighter deadlines it takes only so many rows that they need not wait long
for one of its tasks, and starts as soon as it has them instead of hoarding until its own deadline. Only what keeping
up with the arrivals needs goes beyond that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headgate.core.admission import verdicts
from headgate.core.admission.decision import Decision
from headgate.core.admission.pacing import pace_s, work_share
from headgate.core.admission.timing import SAFETY_S, expected_overlap, much_tighter, own_latest, place_in_line
from headgate.core.admission.turns import YIELD_S, goes_first, in_the_way, may_join, room_at
from headgate.core.durations import format_duration
from headgate.core.snapshot import QueryView, Snapshot, Waiting

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
    plan = _plan(snapshot, query, waiting, turns=steal)
    if not steal:
        if snapshot.now_s >= plan.latest_start_s:
            return _start_due(snapshot.now_s, query, waiting, plan, math.inf)
        return _hold(plan, plan.latest_start_s, "buffer", f"buffers until its latest safe start, {plan.text}")
    rows = considerate_rows(snapshot, query, waiting)
    span_s = query.cost.expected_s(min(waiting.rows, rows))
    return (
        _waits_for_running(snapshot, query, plan, span_s)
        or _gathers(snapshot, query, waiting, plan, rows)
        or _lets_go_first(snapshot, query, plan)
        or _start(snapshot, query, waiting, plan, rows, span_s)
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """The arithmetic of one decision, kept for its reason."""

    overlap: float
    expected_s: float
    safe_s: float
    """Duration at the SLO quantile."""
    latest_start_s: float
    text: str


def _plan(snapshot: Snapshot, query: QueryView, waiting: Waiting, *, turns: bool) -> _Plan:
    now_s = snapshot.now_s
    overlap = expected_overlap(snapshot, query)
    expected_s = query.cost.expected_s(waiting.rows, overlap)
    safe_s = query.cost.quantile_s(waiting.rows, overlap, query.promise.slo)
    latest_s = min(own_latest(snapshot, query, overlap), place_in_line(snapshot, query, turns=turns))
    text = (
        f"{waiting.rows:,.0f} rows, oldest {format_duration(max(0.0, now_s - waiting.oldest_at_s))} old, "
        f"needs {format_duration(safe_s)} at p{query.promise.slo * 100:g}"
    )
    return _Plan(overlap, expected_s, safe_s, latest_s, text)


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
    # With more than the machine can work off nobody keeps up: a backlog that comes at once is no rate.
    work_share = min(1.0, waiting.rate_rows_s * cost.per_row_s)
    left_over = max(LEAST_LEFT_OVER, 1.0 - others_busy - work_share)  # of each second, after the rows' work
    return KEEPING_UP * work_share * _rows_worth_fixed_cost(query) / left_over


def _open(query: QueryView, plan: _Plan, code: str, reason: str, max_rows: int | None) -> Decision:
    expected_s = plan.expected_s if max_rows is None else query.cost.expected_s(max_rows, plan.overlap)
    return Decision(True, code, reason, max_rows=max_rows, latest_start_s=plan.latest_start_s, predicted_s=expected_s)


def _hold(plan: _Plan, until_s: float, code: str, reason: str) -> Decision:
    return Decision(
        False, code, reason, until_s=until_s, latest_start_s=plan.latest_start_s, predicted_s=plan.expected_s
    )


def _waits_for_running(snapshot: Snapshot, query: QueryView, plan: _Plan, span_s: float) -> Decision | None:
    """Batches of a size take turns, also where one is due: side by side both would be later."""
    running = in_the_way(snapshot, query)
    if not running or may_join(snapshot, query, running, span_s):
        return None
    # An end is an event that asks again; the time is for one that does not come.
    until_s = plan.latest_start_s
    if until_s <= snapshot.now_s:
        until_s = max(room_at(snapshot, running), snapshot.now_s + YIELD_S)
    return _hold(plan, until_s, "turn", f"waits for {running[0].name} to finish, {plan.text}")


def _gathers(snapshot: Snapshot, query: QueryView, waiting: Waiting, plan: _Plan, limit_rows: float) -> Decision | None:
    """Not due yet, and not worth its fixed cost."""
    now_s = snapshot.now_s
    if now_s >= plan.latest_start_s:
        return None
    paced_s = min(waiting.oldest_at_s + pace_s(snapshot, query), _full_at(waiting, limit_rows, now_s))
    if now_s >= paced_s:
        return None
    return _hold(plan, min(plan.latest_start_s, paced_s), "busy", f"gathers a worthwhile batch, {plan.text}")


def _lets_go_first(snapshot: Snapshot, query: QueryView, plan: _Plan) -> Decision | None:
    first = goes_first(snapshot, query)
    if first is None:
        return None
    held = _hold(plan, snapshot.now_s + YIELD_S, "turn", f"lets {first.name} go first, {plan.text}")
    return replace(held, first=first.name)


def _start(snapshot: Snapshot, query: QueryView, waiting: Waiting, plan: _Plan, rows: float, span_s: float) -> Decision:
    """Due, or early unless a tight query would suffer."""
    now_s = snapshot.now_s
    if now_s >= plan.latest_start_s:
        return _start_due(now_s, query, waiting, plan, rows)
    for other in snapshot.others(query):
        if much_tighter(other, query) and _would_suffer(other, now_s, span_s):
            return _hold(plan, plan.latest_start_s, "busy", f"leaves the cores to {other.name}, {plan.text}")
    return _open(query, plan, "early", f"there is room, {plan.text}", _limit(query, rows))


def _full_at(waiting: Waiting, limit_rows: float, now_s: float) -> float:
    """When as many rows wait as the batch may hold."""
    missing = limit_rows - waiting.rows
    return now_s + max(0.0, missing) / max(waiting.rate_rows_s, 1e-9)


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
    since_s = query.asked_at_s if math.isfinite(query.asked_at_s) else waiting.oldest_at_s  # a backlog is no hurry
    limit_s = since_s + BEST_EFFORT_PATIENCE_S
    if now_s >= limit_s:
        reason = f"waited {BEST_EFFORT_PATIENCE_S:g} s for slack"
        return Decision(True, "patience", reason, max_rows=limit, predicted_s=span_s)
    if running := in_the_way(snapshot, query):
        return Decision(False, "busy", f"waits for {running[0].name} to finish", until_s=limit_s, predicted_s=span_s)
    for other in snapshot.others(query):
        if other.promise.deadline_s is not None and _would_suffer(other, now_s, span_s):
            return Decision(False, "busy", f"leaves the cores to {other.name}", until_s=limit_s, predicted_s=span_s)
    if (first := _waits_longer(snapshot, query)) is not None:
        until_s, why = now_s + YIELD_S, f"lets {first.name} go first"
        return Decision(False, "turn", why, until_s=until_s, predicted_s=span_s, first=first.name)
    return Decision(True, "slack", "no deadline: runs in the slack of the others", max_rows=limit, predicted_s=span_s)


def _waits_longer(snapshot: Snapshot, query: QueryView) -> QueryView | None:
    """Another without a deadline that has asked before: whose batch has just ended would go on and on."""
    if query.let_go_s >= YIELD_S:
        return None
    free = [other for other in snapshot.others(query) if other.promise.deadline_s is None and other.asking]
    before = [other for other in free if other.waiting is not None and other.asked_at_s < query.asked_at_s]
    return min(before, key=lambda other: other.asked_at_s, default=None)


def _best_effort_rows(query: QueryView) -> int:
    if not query.cost.ready:
        return verdicts.LEARNING_MAX_ROWS
    return max(1, query.cost.rows_within(BEST_EFFORT_SPAN_S, 0.0, 0.5))
