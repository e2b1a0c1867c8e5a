"""Queues in slotted time, one tuple served per slot, many seeds at once. Pure NumPy.

As in the paper (Sec. 4): B_i(t+1) = max(B_i(t) + a_i(t) - x_i(t), 0), one x_i is 1. Arrivals are Poisson, all queues
have the same rate. A scheduler sees the backlogs of a slot with its arrivals, for all seeds together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

SLOT_S = 1e-4
"""The paper's 100 microseconds."""

SLOTS = 10_000
SAMPLED = tuple(range(1_000, 10_000, 1_000))
"""The slots at which Jain's index is told."""

Scheduler = Callable[[IntArray, IntArray, np.random.Generator], IntArray]
"""(backlogs by seed and queue, the queue served last by seed, chance) to the queue that is served, by seed."""


def lbf(backlogs: IntArray, last: IntArray, chance: np.random.Generator) -> IntArray:
    """Largest backlog first, the first of equals."""
    served: IntArray = np.argmax(backlogs, axis=1)
    return served


def round_robin(backlogs: IntArray, last: IntArray, chance: np.random.Generator) -> IntArray:
    """The paper's baseline: each in turn, also if it is empty."""
    served: IntArray = (last + 1) % backlogs.shape[1]
    return served


def skipping_round_robin(backlogs: IntArray, last: IntArray, chance: np.random.Generator) -> IntArray:
    """A fairer baseline: the next after the last one served that has something; the turn stays where nobody has."""
    queues = backlogs.shape[1]
    steps_ahead = (np.arange(queues) - last[:, None] - 1) % queues
    nearest = np.argmin(np.where(backlogs > 0, steps_ahead, queues), axis=1)
    return np.where(backlogs.any(axis=1), nearest, last)


def proportional(backlogs: IntArray, last: IntArray, chance: np.random.Generator) -> IntArray:
    """A queue's chance is its share of the backlog: what a proportional split is when there is room for one."""
    edges = np.cumsum(backlogs, axis=1)
    drawn = chance.random(len(backlogs)) * edges[:, -1]
    served: IntArray = np.minimum((edges <= drawn[:, None]).sum(axis=1), backlogs.shape[1] - 1)
    return served


SCHEDULERS: dict[str, Scheduler] = {
    "lbf": lbf, "rrb": round_robin, "rr-skipping": skipping_round_robin, "proportional": proportional,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """One setting under one scheduler; every array has a figure per seed."""

    max_backlog: NDArray[np.float64]
    delay_s: NDArray[np.float64]
    """Average over all tuples; one that is still there at the end has waited until then."""
    jain: NDArray[np.float64]
    """By seed and sampled slot; not a number where nothing waits."""


def arrivals(queues: int, tuples_s: float, seeds: int, seed: int, slots: int = SLOTS) -> IntArray:
    """Poisson arrivals by slot, seed and queue."""
    return np.random.default_rng(seed).poisson(tuples_s * SLOT_S, (slots, seeds, queues))


def simulate(arriving: IntArray, scheduler: Scheduler, seed: int = 1) -> Found:
    """Serve one tuple in every slot."""
    slots, seeds, queues = arriving.shape
    chance, rows = np.random.default_rng(seed), np.arange(seeds)
    backlogs = np.zeros((seeds, queues), np.int64)
    served = np.full(seeds, queues - 1)  # so that turns begin with the first queue
    largest, waited = np.zeros(seeds), np.zeros(seeds)
    jain: dict[int, NDArray[np.float64]] = {}
    for slot in range(slots):
        backlogs += arriving[slot]
        served = scheduler(backlogs, served, chance)
        backlogs[rows, served] -= backlogs[rows, served] > 0
        np.maximum(largest, backlogs.max(axis=1), out=largest)
        waited += backlogs.sum(axis=1)
        if slot + 1 in SAMPLED:
            jain[slot + 1] = jains_index(backlogs)
    tuples = np.maximum(arriving.sum(axis=(0, 2)), 1)
    return Found(largest, waited * SLOT_S / tuples, np.array(list(jain.values())).T)


def jains_index(backlogs: IntArray) -> NDArray[np.float64]:
    """(sum B)^2 / (N sum B^2): 1 if all are equal, 1/N if one has everything, not a number if all are empty."""
    total, squares = backlogs.sum(axis=1).astype(np.float64), (backlogs.astype(np.float64) ** 2).sum(axis=1)
    return np.where(squares > 0, total**2 / np.maximum(backlogs.shape[1] * squares, 1e-300), np.nan)
