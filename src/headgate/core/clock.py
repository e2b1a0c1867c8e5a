"""One reading of both clocks: monotonic for budgets, wall time for arrival stamps and people."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instant:
    """The same moment on the monotonic and on the wall clock; read once per event and handed down."""

    mono_s: float
    wall_s: float

    @classmethod
    def now(cls) -> Instant:
        return cls(time.monotonic(), time.time())

    def mono_of(self, wall_s: float) -> float:
        """Monotonic time of a wall-clock stamp, by the offset between the clocks at this instant."""
        return self.mono_s - (self.wall_s - wall_s)
