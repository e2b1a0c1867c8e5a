"""When records come to which partition: the kinds of skew that the testbed knows. Pure NumPy.

All have the same mean rate over all partitions, so that a load means the same in each. They were chosen before anything
was measured, and two of the three kinds of skew are known to be against largest backlog first (see `WHY`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

PARTITIONS = 10
"""The paper's tasks per operator."""

EVEN, CATCH_UP, BURSTS, HOT = "even", "catch-up", "bursts", "hot"

TITLES = {
    EVEN: "no skew", CATCH_UP: "one partition catches up", BURSTS: "bursts of each partition",
    HOT: "lasting skew of rates",
}  # fmt: skip

CUT_OFF_S = 60.0
"""A producer that could not reach its broker for a minute: a restart, or a failing network."""

BURST_S, BURST_EVERY_S, BURST_FACTOR = 2.0, 20.0, 10.0

WHY = {
    EVEN: "All partitions have the same rate; arrivals are Poisson. No rule should lose anything here.",
    CATCH_UP: f"The same, but one partition’s producer was cut off for {CUT_OFF_S:g} s and sends what it has gathered "
    "at once, when the measured time begins.",
    BURSTS: f"Every partition has {BURST_FACTOR:g} times its usual rate for {BURST_S:g} s in every "
    f"{BURST_EVERY_S:g} s, at a moment of its own: the random bursts of each queue that the paper writes about.",
    HOT: "The k-th partition has 1 / k of the first one’s rate for ever, as with keys that are not evenly used.",
}


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a feeder sends: for `seconds`, of which the first `settle_s` are not measured."""

    skew: str
    rate: float
    """Records per second over all partitions."""
    seed: int
    settle_s: float
    seconds: float
    max_words: int

    def stamps_s(self) -> list[FloatArray]:
        """When the records of each partition come, ascending, in seconds after the beginning."""
        return _KINDS[self.skew](self, np.random.default_rng(self.seed))


def _even(traffic: Traffic, chance: np.random.Generator) -> list[FloatArray]:
    return [_poisson(traffic.rate / PARTITIONS, 0.0, traffic.seconds, chance) for _ in range(PARTITIONS)]


def _catch_up(traffic: Traffic, chance: np.random.Generator) -> list[FloatArray]:
    stamps, late = _even(traffic, chance), traffic.seed % PARTITIONS
    gathered = np.full(chance.poisson(traffic.rate / PARTITIONS * CUT_OFF_S), traffic.settle_s)
    stamps[late] = np.concatenate([gathered, stamps[late][stamps[late] >= traffic.settle_s]])
    return stamps


def _bursts(traffic: Traffic, chance: np.random.Generator) -> list[FloatArray]:
    base = traffic.rate / PARTITIONS / (1 + (BURST_FACTOR - 1) * BURST_S / BURST_EVERY_S)
    stamps = []
    for _ in range(PARTITIONS):
        parts = [_poisson(base, 0.0, traffic.seconds, chance)]
        for period_s in np.arange(0.0, traffic.seconds, BURST_EVERY_S):
            begin_s = period_s + chance.random() * (BURST_EVERY_S - BURST_S)
            parts.append(_poisson(base * (BURST_FACTOR - 1), begin_s, begin_s + BURST_S, chance))
        together = np.sort(np.concatenate(parts))
        stamps.append(together[together < traffic.seconds])
    return stamps


def _hot(traffic: Traffic, chance: np.random.Generator) -> list[FloatArray]:
    shares = 1.0 / np.arange(1, PARTITIONS + 1)
    return [_poisson(traffic.rate * share, 0.0, traffic.seconds, chance) for share in shares / shares.sum()]


_KINDS: dict[str, Callable[[Traffic, np.random.Generator], list[FloatArray]]] = {
    EVEN: _even, CATCH_UP: _catch_up, BURSTS: _bursts, HOT: _hot,
}  # fmt: skip


def _poisson(rate: float, from_s: float, to_s: float, chance: np.random.Generator) -> FloatArray:
    return np.sort(from_s + chance.random(chance.poisson(rate * (to_s - from_s))) * (to_s - from_s))
