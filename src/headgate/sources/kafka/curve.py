"""When the records of a partition arrived, from a few known points instead of a stamp for each. Pure.

A knot says: of this partition, the records below `offset` arrived before `before_s`, the others at `after_s` or later.
Between two knots records are taken as evenly spread, which is as exact as the knots are close.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

Run = tuple[float, float, int]
"""First stamp, step and count: as in :class:`headgate.core.arrivals.Arrivals`."""


def merged(runs: list[Run]) -> Run:
    """Neighbouring runs as one: the same count, first and last stamp."""
    (first_s, _, _), (last_s, step_s, last) = runs[0], runs[-1]
    count = sum(rows for _, _, rows in runs)
    return first_s, (last_s + step_s * (last - 1) - first_s) / max(1, count - 1), count


@dataclass(slots=True)
class ArrivalCurve:
    """The knots of one partition, in the order of time."""

    _offsets: list[int] = field(default_factory=list)
    _before_s: list[float] = field(default_factory=list)
    _after_s: list[float] = field(default_factory=list)

    @property
    def known_to(self) -> int | None:
        """The offset of the newest knot."""
        return self._offsets[-1] if self._offsets else None

    def note(self, at_s: float, offset: int) -> None:
        """At `at_s` the records below `offset` were there and no others. Times do not fall.

        An offset that falls means that the topic was made anew: what was known of it is void.
        """
        if self._offsets and offset < self._offsets[-1]:
            self.clear()
        if self._offsets and offset == self._offsets[-1]:
            self._after_s[-1] = max(self._after_s[-1], at_s)
            return
        at_s = max(at_s, self._after_s[-1]) if self._after_s else at_s
        self._offsets.append(offset)
        self._before_s.append(at_s)
        self._after_s.append(at_s)

    def clear(self) -> None:
        self._offsets, self._before_s, self._after_s = [], [], []

    def forget(self, offset: int) -> None:
        """Records below `offset` will never be asked for again."""
        useless = bisect_right(self._offsets, offset) - 1
        if useless > 0:
            del self._offsets[:useless], self._before_s[:useless], self._after_s[:useless]

    def runs(self, first: int, end: int, newest: int, now_s: float) -> list[Run]:
        """The stamps of the records `first` up to, but not including, `end`; those below `newest` are there."""
        runs, edge = [], first
        while edge < end:
            knot = bisect_right(self._offsets, edge)
            upper = min(end, self._offsets[knot]) if knot < len(self._offsets) else end
            runs.append(self._run(knot, edge, upper, newest, now_s))
            edge = upper
        return runs

    def stamp_s(self, offset: int, newest: int, now_s: float) -> float:
        """When the record at `offset` arrived, given that those below `newest` have."""
        return self._run(bisect_right(self._offsets, offset), offset, offset + 1, newest, now_s)[0]

    def arrived_before(self, at_s: float, newest: int, now_s: float) -> int:
        """The first record that arrived at `at_s` or later; `newest` if none has."""
        knot = bisect_left(self._before_s, at_s)
        if knot == 0:
            return 0
        lower, from_s = self._offsets[knot - 1], self._after_s[knot - 1]
        upper, to_s = self._upper(knot, newest, now_s)
        if at_s <= from_s:
            return lower
        return upper if at_s >= to_s else lower + math.ceil((upper - lower) * (at_s - from_s) / (to_s - from_s))

    def _upper(self, knot: int, newest: int, now_s: float) -> tuple[int, float]:
        """Where the stretch before `knot` ends, and when."""
        if knot < len(self._offsets):
            return self._offsets[knot], self._before_s[knot]
        return max(newest, self._offsets[-1]), max(now_s, self._after_s[-1])

    def _run(self, knot: int, first: int, end: int, newest: int, now_s: float) -> Run:
        """Records `first`..`end`-1 of the stretch that ends at `knot`."""
        if knot == 0:  # older than anything known: at least as old as the first knot
            return (self._before_s[0] if self._offsets else now_s, 0.0, end - first)
        lower, from_s = self._offsets[knot - 1], self._after_s[knot - 1]
        upper, to_s = self._upper(knot, newest, now_s)
        step_s = (to_s - from_s) / max(1, upper - lower)
        return (from_s + (first - lower) * step_s, step_s, end - first)
