"""The search for a good plan: the same for all queries first, then query by query."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from headgate.bench.clairvoyant.machine import Plan, Way, late_shares, triggered
from headgate.bench.clairvoyant.streams import Stream

_SPANS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.3, 1.7, 2.2, 3.0, 4.0, 6.0)
"""Above 1 the first records of every batch are given up: the way to need fewer batches than can be in time."""

_STRETCHES = (1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
_IDLES = (1.0, 0.3, math.inf)
_FITS = (0.0, 1.0, 1.4)
_TRIGGERS = (0.0, 0.25, 0.5, 0.75, 1.0)

_NUDGES = (0.9, 0.97, 1.03, 1.1)

_STARTS = 4
"""So many of the plans that treat all queries alike are refined: the best of them often leads to a dead end."""

_Score = tuple[float, float]


class _Search:
    """Plans and their scores: the worst share, then the sum."""

    def __init__(self, streams: Sequence[Stream], seconds: float) -> None:
        self._streams, self._seconds = streams, seconds
        self._scores: dict[Plan, _Score] = {}

    def score(self, plan: Plan) -> _Score:
        if plan not in self._scores:
            shares = late_shares(self._streams, plan, self._seconds)
            self._scores[plan] = max(shares), sum(shares)
        return self._scores[plan]

    def refined(self, plan: Plan, enough: float) -> Plan:
        """Change one thing at a time, as long as that helps."""
        before = None
        while plan != before and self.score(plan)[0] > enough:
            before = plan
            for query in range(len(plan.ways)):
                plan = min([plan, *_with_other_way(plan, query)], key=self.score)
            plan = min([plan, *_with_other_manners(plan)], key=self.score)
        return plan


def best_plan(streams: Sequence[Stream], seconds: float, enough: float = 0.0) -> Plan:
    """The best plan found, or the first whose worst share is at most `enough`."""
    search = _Search(streams, seconds)
    alike: list[Plan] = []
    for plan in _alike(len(streams)):
        alike.append(plan)
        if search.score(plan)[0] <= enough:
            return plan
    best = min(alike, key=search.score)
    for start in _different(sorted(alike, key=search.score))[:_STARTS]:
        best = min(best, search.refined(start, enough), key=search.score)
        if search.score(best)[0] <= enough:
            break
    return best


def _different(plans: list[Plan]) -> list[Plan]:
    """The first of each way: plans of the same way are mostly refined to the same."""
    return list({plan.ways[0]: plan for plan in reversed(plans)}.values())[::-1]


def _ways() -> list[Way]:
    return [*(Way(stretch=stretch) for stretch in _STRETCHES), *(Way(span) for span in _SPANS)]


def _alike(queries: int) -> Iterator[Plan]:
    for way in _ways():
        yield from _with_other_manners(Plan((way,) * queries))
    yield from (triggered(queries, share) for share in _TRIGGERS)


def _with_other_manners(plan: Plan) -> list[Plan]:
    choices = product(_IDLES, _FITS, (False, True))
    return [replace(plan, idle=idle, fit=fit, yields=yields, stock=False) for idle, fit, yields in choices]


def _with_other_way(plan: Plan, query: int) -> list[Plan]:
    others = [*_ways(), *(_nudged(plan.ways[query], nudge) for nudge in _NUDGES)]
    return [replace(plan, ways=(*plan.ways[:query], way, *plan.ways[query + 1 :])) for way in others]


def _nudged(way: Way, factor: float) -> Way:
    return Way(way.span * factor, None if way.stretch is None else way.stretch * factor)
