"""A query's promise, cost and arrivals in buckets: what the schedules are made of."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from headgate.core.arrivals import BoolArray, FloatArray, IntArray
from headgate.core.traffic import Traffic
from headgate.errors import BadParameter

BUCKET_S = 0.05
"""Small against any deadline that micro-batches can keep, and two minutes are only 2,400 of them."""

HAIR_S = 1e-9
"""Times are sums of floats: what is in time on paper may be a rounding error late."""

LEAST_S = 1e-15
"""Instead of no costs per row where something is divided by them."""


@dataclass(frozen=True, slots=True)
class ClairvoyantQuery:
    """A promise, what a batch takes alone on the whole machine, and the records that come."""

    name: str
    deadline_s: float
    fixed_s: float
    per_row_s: float
    traffic: Traffic

    def __post_init__(self) -> None:
        for name, least in (("deadline_s", BUCKET_S), ("fixed_s", 0.0), ("per_row_s", 0.0)):
            value = getattr(self, name)
            if not least <= value < math.inf:
                raise BadParameter(name, value, "is not a time to reckon with", f"give at least {least:g} s")


class Batch(NamedTuple):
    """The records first..last-1 of a query, when they were taken and when they were done."""

    first: int
    last: int
    begun_s: float
    finished_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A query's arrivals in the buckets that have any. Lists, because single items are looked up all the time."""

    query: ClairvoyantQuery
    begin_s: list[float]
    end_s: list[float]
    before: list[int]
    """Rows before each bucket, and at last all rows."""
    rows: IntArray
    late_after_s: FloatArray
    counted: BoolArray
    pressures_s: dict[float, list[float]] = field(default_factory=dict)

    def in_rows(self, batches: list[Batch]) -> list[Batch]:
        """The same batches with numbers of records instead of buckets."""
        return [batch._replace(first=self.before[batch.first], last=self.before[batch.last]) for batch in batches]

    def work_s(self, first: int, last: int) -> float:
        return self.query.fixed_s + self.query.per_row_s * (self.before[last] - self.before[first])

    def pressure_s(self, stretch: float) -> list[float]:
        """Per bucket: its end plus `stretch` times the work of all rows so far. Ascending."""
        if stretch not in self.pressures_s:
            work_s = self.query.fixed_s + self.query.per_row_s * np.asarray(self.before[1:])
            self.pressures_s[stretch] = (np.asarray(self.end_s) + stretch * work_s).tolist()
        return self.pressures_s[stretch]

    def latest_s(self, first: int, stretch: float) -> float:
        """When what waits from bucket `first` on, times `stretch`, will just be done at the deadline."""
        deadline_s = self.begin_s[first] + self.query.deadline_s
        passed_s = stretch * self.query.per_row_s * self.before[first]
        last = bisect_left(self.pressure_s(stretch), deadline_s + passed_s)
        too_much_s = self.end_s[last] if last < len(self.end_s) else math.inf
        return min(too_much_s, deadline_s - stretch * self.work_s(first, last)) if last > first else too_much_s

    def worthwhile_s(self, first: int, idle: float) -> float:
        """When the rows from bucket `first` on mean `idle` times as much work as the fixed costs."""
        rows = idle * self.query.fixed_s / max(self.query.per_row_s, LEAST_S)
        last = max(first, bisect_left(self.before, self.before[first] + rows) - 1)
        return self.end_s[last] if last < len(self.end_s) else math.inf


def streams_of(queries: Sequence[ClairvoyantQuery], seconds: float, skip_s: float) -> list[Stream]:
    names = [query.name for query in queries]
    if not names or len(set(names)) < len(names):
        raise BadParameter("queries", names, "must be one or more with different names", "name each query once")
    return [_stream(query, seconds, skip_s) for query in queries]


def _stream(query: ClairvoyantQuery, seconds: float, skip_s: float) -> Stream:
    all_rows = bucket_rows(query.traffic, seconds)
    index = np.flatnonzero(all_rows)
    begin_s: FloatArray = index * np.float64(BUCKET_S)
    end_s, rows = begin_s + BUCKET_S, all_rows[index]
    counted = (begin_s >= skip_s - HAIR_S) & (end_s + query.deadline_s <= seconds + HAIR_S)
    before, late_after_s = [0, *np.cumsum(rows).tolist()], begin_s + query.deadline_s + HAIR_S
    return Stream(query, begin_s.tolist(), end_s.tolist(), before, rows, late_after_s, counted)


def bucket_rows(traffic: Traffic, seconds: float) -> IntArray:
    edges = range(math.floor(seconds / BUCKET_S + HAIR_S) + 1)
    before: IntArray = np.array([traffic.count_before(edge * BUCKET_S) for edge in edges], np.int64)
    return before[1:] - before[:-1]
