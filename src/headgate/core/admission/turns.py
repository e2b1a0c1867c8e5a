"""Turns: on few cores batches of a size run one after the other, the most urgent first.

    side by side   |======= A =======|        one after the other   |== A ==|
                   |======= B =======|                                      |== B ==|

Side by side neither is done sooner, and both slow each other down by more than their work. Worse, it feeds on itself:
long batches bring every deadline near, near deadlines make everybody start at once, and that makes batches long. So
near the machine's limit, where all would be due at once, turns are what keeps promises.

Who does not take turns: a short batch beside a long one that bears it, a promise that is much tighter than the other,
batches that hardly slow each other down because none of them fills the cores, and everybody on machines with cores for
several batches.
"""

from __future__ import annotations

import math
from functools import partial

from headgate.core.admission.pacing import EARLY_END_BY, pace_s
from headgate.core.admission.timing import OVERRUN, latest_start, much_tighter, must_start_at
from headgate.core.policies import start_order
from headgate.core.snapshot import QueryView, Snapshot

HARMLESS_STRETCH = 0.25
"""Cores count as idle while the batches that run would slow this one by less than this."""

CORES_PER_BATCH = 4
"""... or while there are so many cores for each batch: on large machines company is tried, and so learned."""

FILLS_GAPS = 0.5
"""Batches that slow each other down by no more than this get a third more done side by side than in turns."""

MUCH_MORE = 10.0
"""Who cannot wait for an end starts beside a batch of like promise only if it gains so many times what that one loses:
two halves of a convoy gain a little each time, and both are late in the end."""

YIELD_S = 0.1
"""Who lets another go first looks again after this. If nobody has started by then it lets nobody go first any more: an
order must not leave cores idle."""


def in_the_way(snapshot: Snapshot, query: QueryView) -> list[QueryView]:
    """Those whose batches run, if they leave no idle cores for one of `query`."""
    running = [other for other, _ in snapshot.at_work(query)]
    idle = len(running) * query.cost.stretch <= HARMLESS_STRETCH or len(running) < _room(snapshot)
    return [] if idle else running


def _room(snapshot: Snapshot) -> int:
    return max(1, snapshot.cores // CORES_PER_BATCH)


def room_at(snapshot: Snapshot, running: list[QueryView]) -> float:
    """When so many of them have ended that there is room for one more, with caution."""
    ends_s = sorted(other.running.finish_at_s for other in running if other.running)
    return snapshot.now_s + OVERRUN * (ends_s[max(0, len(ends_s) - _room(snapshot))] - snapshot.now_s)


def may_join(snapshot: Snapshot, query: QueryView, running: list[QueryView], span_s: float) -> bool:
    """Whether a batch of `span_s` may start beside those that run: planning, commits and single tasks leave cores."""
    now_s, waits = snapshot.now_s, latest_start(query, snapshot.now_s, 0.0) >= room_at(snapshot, running)
    if not waits and all(_fill_gaps(query, other) for other in running):
        return True
    if not waits and all(_must_start_beside(query, other, now_s, span_s, len(running)) for other in running):
        return True
    # The scheduler serves the more urgent batch first, so that company costs it little.
    urgent = all(query.due_at_s < other.running.due_at_s for other in running if other.running)
    if len(running) > _room(snapshot) and not urgent:
        return False
    return all(_bears_company(other, now_s, span_s) and _gains(query, other, now_s, span_s, 1.0) for other in running)


def _must_start_beside(query: QueryView, other: QueryView, now_s: float, span_s: float, company: int) -> bool:
    """Whether `query`, which cannot wait for the end of the other's batch, is worth what it costs that one."""
    assert other.running is not None
    if much_tighter(query, other):
        return True
    if other.running.due_at_s > now_s:
        return _gains(query, other, now_s, span_s, MUCH_MORE)
    # Its oldest records are late anyway; those of `query` need not be.
    in_time = now_s + span_s * (1.0 + query.cost.stretch * company) <= query.due_at_s
    return in_time or _gains(query, other, now_s, span_s, 1.0)


def _fill_gaps(query: QueryView, other: QueryView) -> bool:
    """Whether both get on well side by side, or nobody knows: then it is tried, and so learned."""
    return all(not each.cost.company_known or each.cost.stretch <= FILLS_GAPS for each in (query, other))


def _gains(query: QueryView, other: QueryView, now_s: float, span_s: float, times: float) -> bool:
    """Whether a batch of `query` gains more, by not waiting for the other's end, than so many times what that loses.

    What slows both down is as long as the shorter of the two. So a short batch joins one that still takes long, while
    two of a size run one after the other. A second is worth as much as it is of a deadline.
    """
    assert other.running is not None and query.promise.deadline_s is not None
    left_s = max(0.0, other.running.finish_at_s - now_s)
    worth = query.promise.deadline_s / (other.promise.deadline_s or math.inf)
    return left_s > (query.cost.stretch + times * worth * other.cost.stretch) * min(span_s, left_s)


def _bears_company(other: QueryView, now_s: float, span_s: float) -> bool:
    """Whether the batch that runs ends in good time even if another runs beside it for `span_s`."""
    running, deadline_s = other.running, other.promise.deadline_s
    if running is None or deadline_s is None:
        return True
    shared_s = min(span_s, max(0.0, running.finish_at_s - now_s))
    return running.finish_at_s + other.cost.stretch * shared_s <= running.due_at_s - (1.0 - EARLY_END_BY) * deadline_s


def goes_first(snapshot: Snapshot, query: QueryView) -> QueryView | None:
    """Who starts before `query`: somebody who could start as well and comes first.

    Among those that must start now the earliest deadline that can still be kept; then, in turns, what is late already.
    They let nobody go first who need not start yet. Among the others the policy's order. Whose batch has just ended is
    the first to ask again: without this it would go on and on.
    """
    if query.let_go_s >= YIELD_S:
        return None
    now_s, others = snapshot.now_s, snapshot.others(query)
    must = must_start_at(snapshot, query) <= now_s
    if must:
        others = [other for other in others if _presses(other, query, now_s)]
    order = _urgency if must else partial(start_order, snapshot.policy)
    own = order(query, now_s)
    before = sorted((key, other.name, other) for other in others if (key := order(other, now_s)) < own)
    return next((other for _, _, other in before if _could_start(snapshot, other)), None)


def _urgency(query: QueryView, now_s: float) -> tuple[float, ...]:
    """What is late comes last: plain EDF would serve it first, and with it make the next one late.

    But nobody is passed over for longer than it has promised for everything.
    """
    if query.due_at_s >= now_s:
        return 1.0, query.due_at_s
    passed_over = now_s - query.asked_at_s >= (query.promise.deadline_s or math.inf)
    return 0.0 if passed_over else 2.0, query.asked_at_s


def _presses(other: QueryView, query: QueryView, now_s: float) -> bool:
    """Whether `other` must start as well as `query`: by itself, or because it comes before it in line."""
    if other.waiting is None or other.promise.deadline_s is None:
        return False
    if latest_start(other, now_s, 0.0) <= now_s:
        return True
    return now_s <= query.due_at_s and not much_tighter(other, query)


def _could_start(snapshot: Snapshot, other: QueryView) -> bool:
    """Whether `other` waits for nothing but its turn."""
    if not other.asking or other.waiting is None or not other.cost.ready or other.promise.deadline_s is None:
        return False
    now_s = snapshot.now_s
    paced_s = other.waiting.oldest_at_s + pace_s(snapshot, other)
    if min(paced_s, latest_start(other, now_s, 0.0)) > now_s:
        return False
    running = in_the_way(snapshot, other)
    return not running or may_join(snapshot, other, running, other.cost.expected_s(other.waiting.rows))
