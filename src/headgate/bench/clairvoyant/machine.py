"""The machine of the model: batches are formed as a plan says and run in the order of their deadlines."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headgate.bench.clairvoyant.streams import BUCKET_S, HAIR_S, LEAST_S, Batch, Stream

_AFTER_ALL_S = 1e9
"""Added to the deadline of what is late anyway: behind everything else, in order among its like."""


@dataclass(frozen=True, slots=True)
class Way:
    """When a query's next batch is due: its oldest record is that old, or the latest start has come."""

    span: float = math.inf
    """Share of the deadline."""
    stretch: float | None = None
    """How much longer than alone the batch is reckoned to take, for the latest start."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the search can choose."""

    ways: tuple[Way, ...]
    idle: float = math.inf
    """Idle time is used for a batch that is not due if its rows cost this many times its fixed costs."""
    fit: float = 0.0
    """A batch takes only what is done by its deadline if it takes `fit` times as long as alone; 0 takes all."""
    yields: bool = False
    """A batch that cannot be in time any more waits until nothing else is due."""
    stock: bool = False
    """Batches are formed on the ticks of a clock, every `span`, and run in that order."""


def triggered(queries: int, share: float) -> Plan:
    return Plan((Way(share),) * queries, stock=True)


class _Lane:
    """A query on the machine: the batch under way, or when there will be one. Buckets are known by number."""

    __slots__ = ("_begun_s", "_first", "_last", "_plan", "_stream", "_way", "batches", "deadline_s", "due_s", "key_s",
                 "left_s", "ready_s")  # fmt: skip

    def __init__(self, stream: Stream, way: Way, plan: Plan) -> None:
        self._stream, self._way, self._plan = stream, way, plan
        self._first, self._begun_s = 0, -1.0
        self.batches: list[Batch] = []
        self._wait()

    def _wait(self) -> None:
        self.left_s: float | None = None  # work of the batch under way
        self.due_s = self.ready_s = self.key_s = self.deadline_s = math.inf
        if self._first < len(self._stream.end_s):
            self.key_s = self.deadline_s = self._stream.begin_s[self._first] + self._stream.query.deadline_s
            self.due_s = max(self._stream.end_s[self._first], self._tick_s() if self._plan.stock else self._due_s())
            if self._plan.idle < math.inf:
                self.ready_s = self._stream.worthwhile_s(self._first, self._plan.idle)

    def _due_s(self) -> float:
        due_s = self._stream.begin_s[self._first] + self._way.span * self._stream.query.deadline_s
        if self._way.stretch is None:
            return due_s
        return min(due_s, self._stream.latest_s(self._first, self._way.stretch))

    def _tick_s(self) -> float:
        every_s = max(self._way.span * self._stream.query.deadline_s, BUCKET_S)
        after_last = math.floor(self._begun_s / every_s + HAIR_S) + 1
        return every_s * max(after_last, math.ceil(self._stream.end_s[self._first] / every_s - HAIR_S))

    def form(self, now_s: float) -> None:
        last = bisect_right(self._stream.end_s, now_s + HAIR_S)
        if self._plan.fit:
            last = min(last, self._fitting(now_s))
        self._last, self._begun_s = last, now_s
        self.left_s = self._stream.work_s(self._first, last)
        if self._plan.stock:
            self.key_s = now_s

    def _fitting(self, now_s: float) -> int:
        """The end of the batch that can just be in time; if none can, no end: then few batches are best."""
        room_s = (self.deadline_s - now_s) / self._plan.fit - self._stream.query.fixed_s
        rows = room_s / max(self._stream.query.per_row_s, LEAST_S)
        last = bisect_right(self._stream.before, self._stream.before[self._first] + rows) - 1
        return last if last > self._first else len(self._stream.end_s)

    def hopeless(self, now_s: float) -> bool:
        left_s = self._stream.work_s(self._first, self._first + 1) if self.left_s is None else self.left_s
        return now_s + left_s > self.deadline_s + HAIR_S

    def finish(self, now_s: float) -> None:
        self.batches.append(Batch(self._first, self._last, self._begun_s, now_s))
        self._first = self._last
        self._wait()


def run(streams: Sequence[Stream], plan: Plan, seconds: float) -> list[list[Batch]]:
    """From event to event: whoever is most urgent has the machine until it is done or somebody's time has come."""
    lanes = [_Lane(stream, way, plan) for stream, way in zip(streams, plan.ways, strict=True)]
    now_s = 0.0
    while now_s < seconds:
        lane, until_s = _most_urgent(lanes, plan, now_s, seconds)
        if lane is None:
            now_s = until_s
            continue
        if lane.left_s is None:
            lane.form(now_s)
        assert lane.left_s is not None
        if now_s + lane.left_s <= until_s:
            now_s += lane.left_s
            lane.finish(now_s)
        else:
            lane.left_s -= until_s - now_s
            now_s = until_s
    return [lane.batches for lane in lanes]


def _most_urgent(lanes: list[_Lane], plan: Plan, now_s: float, until_s: float) -> tuple[_Lane | None, float]:
    """Who is to have the machine, and until when that is sure."""
    best, best_key_s = None, math.inf
    for lane in lanes:
        if lane.left_s is None and lane.due_s > now_s:
            until_s = min(until_s, lane.due_s)
            continue
        if plan.stock and lane.left_s is None:
            lane.form(now_s)
        key_s = lane.key_s + (_AFTER_ALL_S if plan.yields and lane.hopeless(now_s) else 0.0)
        if key_s < best_key_s:
            best, best_key_s = lane, key_s
    return (best, until_s) if best else _filling(lanes, now_s, until_s)


def _filling(lanes: list[_Lane], now_s: float, until_s: float) -> tuple[_Lane | None, float]:
    """The same when nothing is due."""
    ready = [lane for lane in lanes if lane.ready_s <= now_s]
    later_s = min((lane.ready_s for lane in lanes if lane.ready_s > now_s), default=math.inf)
    return min(ready, key=lambda lane: lane.key_s, default=None), until_s if ready else min(until_s, later_s)


def late_shares(streams: Sequence[Stream], plan: Plan, seconds: float) -> list[float]:
    return [_late_share(stream, batches) for stream, batches in zip(streams, run(streams, plan, seconds), strict=True)]


def _late_share(stream: Stream, batches: list[Batch]) -> float:
    finished_s = np.full(len(stream.rows), math.inf)
    for batch in batches:
        finished_s[batch.first : batch.last] = batch.finished_s
    late = stream.counted & (finished_s > stream.late_after_s)
    return float(stream.rows[late].sum() / max(stream.rows[stream.counted].sum(), 1))
