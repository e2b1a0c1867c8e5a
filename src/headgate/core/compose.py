"""What goes into a batch that has not room for all: how many records from each partition. Pure NumPy.

`lbf` is Hone's largest backlog first: every free place goes to the partition that is furthest behind. Serving one
record at a time would take as many steps as the batch has places; the same result is a water line over the backlogs,
found by one sort.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headgate.errors import BadParameter

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

Composition = Callable[[IntArray, int], IntArray]
"""(backlogs, room) to records taken; never more than a partition has, never more than there is room for in all."""


def lbf(backlogs: ArrayLike, room: int) -> IntArray:
    """Largest backlog first: lower a water line over the backlogs until `room` records stand above it.

    Exactly what `room` single steps give that each take a record of the largest backlog, the first of equals.
    """
    waiting = _counts(backlogs)
    if room >= int(waiting.sum()):
        return waiting
    falling = np.sort(waiting)[::-1]
    above_all = np.cumsum(falling)
    ranks = np.arange(1, len(falling) + 1)
    # Records above the line if it lay at the k-th largest backlog: grows with k.
    affordable = np.count_nonzero(above_all - ranks * falling <= room)
    line = -((room - int(above_all[affordable - 1])) // affordable)  # the ceiling of what is left per partition
    taken: IntArray = np.maximum(waiting - line, 0)
    at_line = np.flatnonzero(waiting >= line)
    taken[at_line[: room - int(taken.sum())]] += 1
    return taken


def weighted_lbf(backlogs: ArrayLike, room: int, weights: ArrayLike) -> IntArray:
    """Largest backlog first where a record of partition i weighs `weights[i]`: its bytes, or its seconds of work.

    A record's mark is its partition's weighted backlog when it is its turn; the batch holds the `room` highest marks.
    """
    waiting, weight = _counts(backlogs), np.asarray(weights, np.float64)
    if weight.shape != waiting.shape or not np.all(np.isfinite(weight) & (weight > 0)):
        raise BadParameter("weights", weights, "each partition needs a weight above zero", "give one per partition")
    if room >= int(waiting.sum()):
        return waiting
    low, high = 0.0, float(np.max(waiting * weight))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _above(waiting, weight, middle).sum() <= room else (middle, high)
    # One less of each, against rounding: what is missing is made up for step by step.
    return _single_steps(waiting, weight, np.maximum(_above(waiting, weight, high) - 1, 0), room)


_HALVINGS = 60
"""Until the line is known to within rounding."""


def _above(waiting: IntArray, weight: FloatArray, line: float) -> IntArray:
    """Records whose mark lies above the line."""
    below = np.minimum(np.floor(line / weight), waiting).astype(np.int64)
    return waiting - below


def _single_steps(waiting: IntArray, weight: FloatArray, taken: IntArray, room: int) -> IntArray:
    heap = [(-float((waiting[i] - taken[i]) * weight[i]), int(i)) for i in np.flatnonzero(waiting > taken)]
    heapq.heapify(heap)
    for _ in range(room - int(taken.sum())):
        _, i = heap[0]
        taken[i] += 1
        if waiting[i] > taken[i]:
            heapq.heapreplace(heap, (-float((waiting[i] - taken[i]) * weight[i]), i))
        else:
            heapq.heappop(heap)
    return taken


def proportional(backlogs: ArrayLike, room: int) -> IntArray:
    """As Spark's ``maxOffsetsPerTrigger``: shares by backlog, rounded down, but something of every small one.

    Spark goes a little beyond its limit where many partitions are small; here the largest shares give way.
    """
    waiting = _counts(backlogs)
    total = int(waiting.sum())
    if room >= total:
        return waiting
    exact = room * (waiting / total)
    taken = np.minimum(np.where(exact < 1, np.ceil(exact), np.floor(exact)).astype(np.int64), waiting)
    beyond = max(0, int(taken.sum()) - room)
    return taken - lbf(taken, beyond)


def round_robin(backlogs: ArrayLike, room: int) -> IntArray:
    """One of each in turn, as long as it has any."""
    waiting = _counts(backlogs)
    if room >= int(waiting.sum()):
        return waiting
    rising = np.sort(waiting)
    below = np.concatenate([[0], np.cumsum(rising)])
    ranks = len(rising) - np.arange(len(rising))
    # Records taken if everybody had as many turns as the k-th smallest has records: grows with k.
    emptied = np.count_nonzero(below[:-1] + ranks * rising <= room)
    turns = (room - int(below[emptied])) // (len(rising) - emptied)
    taken = np.minimum(waiting, turns)
    more = np.flatnonzero(waiting > turns)
    taken[more[: room - int(taken.sum())]] += 1
    return taken


def oldest(arrived_before: Callable[[float], IntArray], room: int, from_s: float, to_s: float) -> IntArray:
    """The oldest records, whatever their partition: as many as had arrived when they were just `room`.

    `arrived_before` gives each partition's records that arrived before a moment; it must not fall as time goes on.
    """
    everything = arrived_before(to_s)
    if room >= int(everything.sum()):
        return everything
    low, high = from_s, to_s
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if arrived_before(middle).sum() > room else (middle, high)
    taken = arrived_before(low)
    if int(taken.sum()) > room:  # so many had arrived at the very beginning
        return round_robin(taken, room)
    # Between the two lies one moment: of what arrived in it, some of each.
    return taken + round_robin(arrived_before(high) - taken, room - int(taken.sum()))


_MOST = 2**52
"""Of all backlogs together, so that no sum of them, and no float, is inexact."""

COMPOSITIONS: dict[str, Composition] = {"lbf": lbf, "proportional": proportional, "round-robin": round_robin}
"""By backlog alone; `oldest` needs arrivals besides."""


def _counts(backlogs: ArrayLike) -> IntArray:
    counts = np.array(backlogs, np.int64)
    if counts.size and counts.min() < 0:
        raise ValueError("a backlog is not below zero")
    return np.minimum(counts, _MOST // max(1, counts.size))
