"""One row of a targets table: a bound, what each repeat found, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

Unit = Literal["ratio", "share", "points"]
Reduce = Callable[[Sequence[float]], float]


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure of one repeat, and where it comes from."""

    repeat: int
    value: float
    where: str


@dataclass(frozen=True, slots=True)
class Target:
    """One row: the median over repeats is held against the bound."""

    measure: str
    bound: float
    at_least: bool
    unit: Unit
    by_repeat: tuple[float, ...] = ()
    """The figure of each repeat; empty if not measured."""
    made_from: str = ""
    worst: Sample | None = None
    """The sample that speaks most against the target."""
    note: str = ""

    @property
    def found(self) -> float | None:
        return median(self.by_repeat) if self.by_repeat else None

    @property
    def spread(self) -> tuple[float, float] | None:
        return (min(self.by_repeat), max(self.by_repeat)) if self.by_repeat else None

    @property
    def verdict(self) -> Literal["met", "missed", "not measured"]:
        if self.found is None:
            return "not measured"
        return "met" if self._satisfied(self.found) else "missed"

    @property
    def close(self) -> bool:
        """Whether some repeats meet the target and others miss it."""
        return len({self._satisfied(value) for value in self.by_repeat}) == 2

    def _satisfied(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound


def make_target(
    measure: str, bound: float, at_least: bool, unit: Unit, samples: Sequence[Sample], reduce: Reduce,
    made_from: str, note: str = "",
) -> Target:  # fmt: skip
    """A row from samples: those of each repeat are reduced to one figure; without any it is not measured."""
    if not samples:
        return Target(measure, bound, at_least, unit, note=note)
    by_repeat = tuple(reduce(values) for values in _by_repeat(samples))
    worst = (min if at_least else max)(samples, key=lambda sample: sample.value)
    return Target(measure, bound, at_least, unit, by_repeat, made_from, worst, note)


def _by_repeat(samples: Iterable[Sample]) -> Iterator[list[float]]:
    groups: dict[int, list[float]] = {}
    for sample in samples:
        groups.setdefault(sample.repeat, []).append(sample.value)
    return iter(groups.values())


def geometric_mean(values: Sequence[float]) -> float:
    """Of ratios; none of them may drag it to zero unless it is zero itself."""
    return math.exp(sum(map(math.log, values)) / len(values)) if min(values) > 0 else 0.0


def ratio(ours: float, theirs: float) -> float:
    """Infinite against nothing."""
    return ours / theirs if theirs > 0 else math.inf
