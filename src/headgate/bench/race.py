"""Two ways of doing the same, turn by turn in one process, told as ratios with their spread."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Say = Callable[[str], None]


@dataclass(slots=True)
class Race:
    """One figure of ours against a peer's."""

    what: str
    unit: str
    peer: str
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def run(self, ours: Callable[[], float], theirs: Callable[[], float], turns: int, warm_ups: int, say: Say) -> None:
        """Each turn swaps who goes first; the first `warm_ups` are not counted."""
        for turn in range(-warm_ups, turns):
            order = (("ours", ours), ("theirs", theirs))
            for name, measure in order if turn % 2 else reversed(order):
                figure = measure()
                who = "Headgate" if name == "ours" else self.peer
                label = f"turn {turn + 1} of {turns}" if turn >= 0 else "warming up"
                say(f"{self.what}, {label}, {who}: {figure:,.1f} {self.unit}")
                if turn >= 0:
                    getattr(self, name).append(figure)

    def to_json(self) -> dict[str, Any]:
        ratios = [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]
        return {
            "what": self.what, "unit": self.unit, "peer": self.peer, "ours": self.ours, "theirs": self.theirs,
            "ratio": statistics.median(ratios), "ratios": ratios,
        }  # fmt: skip
