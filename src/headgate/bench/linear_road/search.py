"""The search for SLO capacity: the highest load at which every promise is kept. Pure: loads out, verdicts in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

LOWEST, HIGHEST = 0.05, 3.0
"""Loads beyond which the search gives up: nobody reaches thrice the capacity, and below 5 % nothing is learned."""

NEAR_ENOUGH = 1.1
"""A load that was met is never quite the one that was asked for: so far above the bar, breaking it still counts."""

ENOUGH_PROBES = 7
"""Where the machine's speed jumps, loads are met so far from where they were asked for that no search would end: after
so many, a kept and a broken load will do, however far apart."""


@dataclass(slots=True)
class CapacitySearch:
    """Steps of `stride` until a kept and a broken load are known, then bisection until they lie within `precision`.

    The load that is met depends on the machine's speed meanwhile and may contradict what was seen before; then the
    boundary that fewest probes contradict counts, and where two are equally good one more probe between them decides.
    """

    start: float
    stride: float = 1.25
    precision: float = 1.07
    """Finer steps would measure chance: from one run to the next a machine's capacity changes by more."""
    bar: float | None = None
    """A load that another has kept: who does not keep it, either, has lost, and its capacity is not looked for."""
    probes: list[tuple[float, bool]] = field(default_factory=list)
    """Loads that were met, and whether all promises were kept."""

    def next(self) -> float | None:
        """The load to try, or None at the end."""
        kept, broken = self._boundary()
        if kept is None and broken is None:
            return self.start
        if (doubtful := self._doubtful()) is not None and len(self.probes) < ENOUGH_PROBES:
            return math.sqrt(doubtful[0] * doubtful[1])
        if broken is None:
            assert kept is not None
            return self._within(kept * self.stride)
        if kept is None:
            return self._lower(broken)
        near = broken / kept <= 1.001 * self.precision
        return None if near or len(self.probes) >= ENOUGH_PROBES else math.sqrt(kept * broken)

    def tell(self, load: float, *, kept: bool) -> None:
        """What happened at `load`."""
        self.probes.append((load, kept))

    @property
    def kept(self) -> float:
        """The load just below the boundary; 0 if none was kept."""
        return self._boundary()[0] or 0.0

    @property
    def broken(self) -> float | None:
        """The load just above it, if one is known."""
        return self._boundary()[1]

    @property
    def lost(self) -> bool:
        """Whether the bar was not reached."""
        kept, broken = self._boundary()
        return self.bar is not None and kept is None and broken is not None and broken <= NEAR_ENOUGH * self.bar

    @property
    def capacity(self) -> float:
        """The middle between the kept and the broken load; the kept one if nothing broke, 0 if nothing was kept."""
        kept, broken = self._boundary()
        if kept is None:
            return 0.0
        return kept if broken is None else math.sqrt(kept * broken)

    def _boundary(self) -> tuple[float | None, float | None]:
        """The neighbouring loads between which fewest probes contradict the boundary; in doubt the lower."""
        found, place = sorted(self.probes), self._places()[0]
        below = found[place - 1][0] if place else None
        return below, found[place][0] if place < len(found) else None

    def _doubtful(self) -> tuple[float, float] | None:
        """A load that was broken and a higher one that was kept, if as many probes speak for the one as the other."""
        found, places = sorted(self.probes), self._places()
        return (found[places[0]][0], found[places[-1] - 1][0]) if len(places) > 1 else None

    def _places(self) -> list[int]:
        """How many of the lowest probes lie below the boundary, for every boundary that fewest contradict."""
        found = sorted(self.probes)

        def contradictions(place: int) -> int:
            return sum(not kept for _, kept in found[:place]) + sum(kept for _, kept in found[place:])

        places = range(len(found) + 1)
        fewest = min(map(contradictions, places))
        return [place for place in places if contradictions(place) == fewest]

    def _lower(self, broken: float) -> float | None:
        if self.lost:
            return None
        return self.bar if self.bar is not None else self._within(broken / self.stride)

    def _within(self, load: float) -> float | None:
        return load if LOWEST <= load <= HIGHEST else None
