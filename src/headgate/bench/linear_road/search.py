"""The search for SLO capacity: the highest load at which every promise is kept. Pure: loads out, verdicts in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

LOWEST, HIGHEST = 0.05, 2.0
"""Loads beyond which the search gives up: nobody reaches twice the capacity, and below 5 % nothing is learned."""


@dataclass(slots=True)
class CapacitySearch:
    """Steps of `stride` until a kept and a broken load are known, then bisection until they lie within `precision`."""

    start: float
    stride: float = 1.25
    precision: float = 1.07
    """Finer steps would measure chance: from one run to the next a machine's capacity changes by more."""
    kept: float | None = None
    broken: float | None = None
    probes: list[float] = field(default_factory=list)

    def next(self) -> float | None:
        """The load to try, or None at the end."""
        if self.kept is None and self.broken is None:
            return self.start
        if self.broken is None:
            assert self.kept is not None
            return self._within(self.kept * self.stride)
        if self.kept is None:
            return self._within(self.broken / self.stride)
        return None if self.broken / self.kept <= self.precision else math.sqrt(self.kept * self.broken)

    def tell(self, load: float, *, kept: bool) -> None:
        """What happened at `load`."""
        self.probes.append(load)
        if kept:
            self.kept = load if self.kept is None else max(self.kept, load)
        else:
            self.broken = load if self.broken is None else min(self.broken, load)

    @property
    def capacity(self) -> float:
        """The highest load that was kept; 0 if none was."""
        return self.kept or 0.0

    def _within(self, load: float) -> float | None:
        return load if LOWEST <= load <= HIGHEST else None
