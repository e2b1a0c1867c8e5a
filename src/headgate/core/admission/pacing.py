"""How often batches are worth their fixed cost.

If query i runs every P_i seconds, its records wait up to P_i, and fixed costs take the share sum(f_i / P_i) of the
time. To wait twice as long is twice as bad, whether half a second or ten are usual: spending a given share so that the
*product* of the waits is least gives each of n queries the same part of it,

    P_i = f_i * n / share

A query whose deadline does not bear that period has the longest one that it bears. It takes more than its part, and
the others divide what is left.
"""

from __future__ import annotations

import math

from headgate.core.snapshot import QueryView, Snapshot

MOST_FIXED_SHARE = 0.4
"""Fixed costs of early batches take at most this share of the time, however idle the machine is: they cost CPU."""

FULL = 1.2
"""... and less as soon as rows and fixed costs together would fill this much of it. More than one, because times are
those of a batch alone: it does not use all cores from its planning to its commit, and others fill the gaps."""

LEAST_FIXED_SHARE = 0.1
"""... but not less than this: only batches larger than their deadlines allow could do with it."""

EARLY_MAX_AGE = 0.45
"""A record never waits for an early start longer than this share of its deadline: what is left of it must bear what
others do at the same time, and no model foresees that well."""

EARLY_END_BY = 0.65
"""... nor so long that its batch, beside what usually runs beside it, ends later than this share of its deadline. A
batch that runs bears company as long as it ends by then."""

EARLY_LEAST_AGE = 0.1
"""... but this long even if that end cannot be kept: smaller batches would only make it worse."""

LEAST_FIXED_S = 0.01
"""No batch costs less, whatever a young model believes."""


def pace_s(snapshot: Snapshot, query: QueryView) -> float:
    """Age of its oldest record from which an early batch of `query` is worth the fixed cost that it adds."""
    active = [other for other in snapshot.others(query) if other.waiting is not None or other.running is not None]
    share = min(MOST_FIXED_SHARE, max(LEAST_FIXED_SHARE, FULL - sum(map(work_share, (query, *active)))))
    paced = [each for each in (query, *active) if each.promise.deadline_s is not None and each.cost.ready]
    part = _equal_part(share, [(fixed_s(each), longest_s(each, snapshot.now_s)) for each in paced])
    return min(longest_s(query, snapshot.now_s), fixed_s(query) / part if part > 0.0 else math.inf)


def _equal_part(share: float, needs: list[tuple[float, float]]) -> float:
    """What each may have of `share`, if those with (fixed cost, longest period) that need more take it before."""
    left = len(needs)
    for fixed, longest in sorted(needs, key=lambda need: need[1] / need[0]):
        if fixed * left <= longest * share:
            return share / left
        share -= fixed / longest
        left -= 1
    return 0.0


def longest_s(query: QueryView, now_s: float) -> float:
    """The longest period that its deadline bears, beside the company that its batches usually have.

    Solves  t + scale * (fixed + per_row * (rows + rate * (t - age))) = end  for the age t at which it starts.
    """
    deadline_s, cost, waiting = query.promise.deadline_s, query.cost, query.waiting
    assert deadline_s is not None
    end_s, company = EARLY_END_BY * deadline_s, cost.usual_overlap
    if waiting is None:
        longest = end_s - cost.expected_s(cost.mean_rows, company)
    else:
        age_s = now_s - waiting.oldest_at_s
        growth = (1.0 + cost.stretch * company) * cost.per_row_s * waiting.rate_rows_s
        longest = age_s + (end_s - age_s - cost.expected_s(waiting.rows, company)) / (1.0 + growth)
    return min(EARLY_MAX_AGE * deadline_s, max(EARLY_LEAST_AGE * deadline_s, longest))


def work_share(query: QueryView) -> float:
    """The share of its time that the machine works on this query's rows, fixed costs aside."""
    return query.waiting.rate_rows_s * query.cost.per_row_s if query.waiting is not None and query.cost.ready else 0.0


def fixed_s(query: QueryView) -> float:
    """What a batch costs however few its rows, with caution.

    Which part of its cost is fixed is what a model knows least while its batches are much alike, and an error would
    change the pace as much. Half of a usual batch is a fair guess, too: the geometric mean of both counts.
    """
    return math.sqrt(max(query.cost.fixed_s, LEAST_FIXED_S) * max(0.5 * query.cost.mean_s, LEAST_FIXED_S))
