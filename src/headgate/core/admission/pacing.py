"""How often batches are worth their fixed cost.

If query i runs every P_i seconds, its records wait up to P_i, and fixed costs take the share sum(f_i / P_i) of the
time. Spending a given share so that the waits, each relative to its deadline, add up to the least gives

    P_i = sqrt(f_i * D_i) * sum(sqrt(f_j / D_j)) / share

so that a query with four times the deadline, or four times the fixed cost, runs half as often.
"""

from __future__ import annotations

import math

from headgate.core.snapshot import QueryView, Snapshot

MOST_FIXED_SHARE = 0.5
"""Fixed costs of early batches take at most this share of the time, however idle the machine is: they cost CPU."""

FULL = 1.2
"""... and less as soon as rows and fixed costs together would fill this much of it. More than one, because times are
those of a batch alone: it does not use all cores from its planning to its commit, and others fill the gaps."""

LEAST_FIXED_SHARE = 0.1
"""... but not less than this: only batches larger than their deadlines allow could do with it."""

EARLY_MAX_AGE = 0.45
"""A record never waits for an early start longer than this share of its deadline: what is left of it must bear what
others do at the same time, and no model foresees that well."""

LEAST_FIXED_S = 0.01
"""No batch costs less, whatever a young model believes."""


def pace_s(snapshot: Snapshot, query: QueryView) -> float:
    """Age of its oldest record from which an early batch of `query` is worth the fixed cost that it adds."""
    deadline_s = query.promise.deadline_s
    assert deadline_s is not None
    active = [other for other in snapshot.others(query) if other.waiting is not None or other.running is not None]
    share = min(MOST_FIXED_SHARE, max(LEAST_FIXED_SHARE, FULL - sum(map(work_share, (query, *active)))))
    roots = sum(math.sqrt(_fixed_s(each) / (each.promise.deadline_s or math.inf)) for each in (query, *active))
    return min(EARLY_MAX_AGE * deadline_s, math.sqrt(_fixed_s(query) * deadline_s) * roots / share)


def work_share(query: QueryView) -> float:
    """The share of its time that the machine works on this query's rows, fixed costs aside."""
    return query.waiting.rate_rows_s * query.cost.per_row_s if query.waiting is not None and query.cost.ready else 0.0


def _fixed_s(query: QueryView) -> float:
    return max(query.cost.fixed_s, LEAST_FIXED_S) if query.cost.ready else 0.0
