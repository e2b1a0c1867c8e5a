"""What the rules alone would do with the testbed's traffic: batches of equal room at equal distances, simulated.

Made before anything is measured. Where the measured figures differ from it, something else than the rule is at work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headgate.bench.hone.latency import Batches, FloatArray, IntArray, figures
from headgate.core import compose

RULES = (*compose.COMPOSITIONS, "oldest")


def forecast(
    stamps_s: Sequence[FloatArray], rule: str, room: int, trigger_s: float, batch_s: float, from_s: float, to_s: float
) -> dict[str, Any]:
    """The figures of a rule, as they are made of a run."""
    batches = simulated(stamps_s, rule, room, trigger_s, batch_s)
    return figures(stamps_s, batches, from_s, to_s, float(batches.committed_s[-1]))


def simulated(stamps_s: Sequence[FloatArray], rule: str, room: int, trigger_s: float, batch_s: float) -> Batches:
    """Batches until everything is taken: one begins at every trigger and is committed `batch_s` later."""
    total = sum(map(len, stamps_s))
    taken = np.zeros(len(stamps_s), np.int64)
    ends, committed_s, now_s = [taken], [0.0], trigger_s
    while int(taken.sum()) < total:
        come = np.array([np.searchsorted(stamps, now_s, side="right") for stamps in stamps_s], np.int64)
        taken = taken + _take(stamps_s, taken, come, rule, room, now_s)
        ends.append(taken)
        committed_s.append(now_s + batch_s)
        now_s += trigger_s
    return Batches(np.array(ends), np.array(committed_s))


def _take(
    stamps_s: Sequence[FloatArray], taken: IntArray, come: IntArray, rule: str, room: int, now_s: float
) -> IntArray:
    if room >= int((come - taken).sum()):
        return come - taken
    if rule != "oldest":
        return compose.COMPOSITIONS[rule](come - taken, room)

    def arrived_before(at_s: float) -> IntArray:
        before = np.array([np.searchsorted(stamps, at_s) for stamps in stamps_s], np.int64)
        return np.clip(before, taken, come) - taken

    waiting = np.flatnonzero(come > taken).tolist()
    oldest_s = min(float(stamps_s[partition][taken[partition]]) for partition in waiting)
    return compose.oldest(arrived_before, room, oldest_s, np.nextafter(now_s, np.inf))


def most_to_gain(partitions: int) -> float:
    """The share of a burst's largest latency that the best rule saves over a proportional split, at full load.

    All partitions have the same rate; one gets a burst that takes the time 1 if it is served alone, which is what the
    best rule does. A proportional split gives it its share of what waits, e^-t of the burst and 1/N of what came since:
    its last record is served at the time t at which (1 - 1/N)(1 - e^-t) + t/N = 1.
    """
    share = 1 / partitions
    low, high = 1.0, 2 + math.log(partitions)
    for _ in range(60):
        middle = (low + high) / 2
        served = (1 - share) * (1 - math.exp(-middle)) + share * middle
        low, high = (low, middle) if served >= 1 else (middle, high)
    return 1 - 1 / high
