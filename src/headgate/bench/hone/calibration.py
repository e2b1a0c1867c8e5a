"""How often batches come and how much room they have, from what a batch costs on this machine.

Hone decides every 10 to 130 ms. A micro-batch of Spark alone takes longer than that, so the trigger is the shortest one
that the slowest source bears, and the room is what that source's batch can do in it: all contenders get the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.bench.hone.skew import PARTITIONS
from headgate.bench.report.target import geometric_mean
from headgate.bench.steady import STILL_FALLING
from headgate.errors import HeadgateError

SMALL_ROWS, LARGE_ROWS = 500, 10_000
"""Two sizes of batches whose times tell the fixed cost from the cost of a record."""

TRIGGERS_S = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)

MOST_FIXED = 0.5
"""Of the trigger: what a batch may cost before it has taken a record. At least as much is left for records."""

FULL = 0.7
"""Of the trigger that a full batch may take when nothing else runs: feeder and broker need some CPU too, and batches
stray. A batch that is longer now and then loses nothing, Spark starts the next one at once."""


@dataclass(frozen=True, slots=True)
class BatchCost:
    """Of one source with one workload, when nothing else runs."""

    fixed_s: float
    record_s: float

    def of(self, rows: int) -> float:
        return self.fixed_s + rows * self.record_s


@dataclass(frozen=True, slots=True)
class Room:
    """The same for all contenders of a workload."""

    trigger_s: float
    rows: int
    """``maxOffsetsPerTrigger``."""

    @property
    def capacity(self) -> float:
        """Records per second that the room can take: load 1."""
        return self.rows / self.trigger_s


def cost(small_s: float, large_s: float) -> BatchCost:
    """From the times of a small and a large batch."""
    record_s = max(large_s - small_s, 1e-6) / (LARGE_ROWS - SMALL_ROWS)
    return BatchCost(max(0.0, small_s - SMALL_ROWS * record_s), record_s)


def still_falling(rounds: Mapping[Any, Sequence[float]]) -> bool:
    """Whether the last round of batch times, of whatever kinds, was clearly quicker than the one before."""
    if any(len(times_s) < 2 for times_s in rounds.values()):
        return True
    return geometric_mean([times_s[-1] / times_s[-2] for times_s in rounds.values()]) < STILL_FALLING


def room(costs: Sequence[BatchCost]) -> Room:
    """The shortest trigger that all bear, and what all can do in it."""
    trigger_s = _first(each for each in TRIGGERS_S if all(cost.fixed_s <= MOST_FIXED * each for cost in costs))
    rows = min((FULL * trigger_s - cost.fixed_s) / cost.record_s for cost in costs)
    return Room(trigger_s, max(PARTITIONS, int(rows)))


def _first(triggers_s: Iterable[float]) -> float:
    found = next(iter(triggers_s), None)
    if found is None:
        raise HeadgateError(
            f"an empty batch takes more than {MOST_FIXED * TRIGGERS_S[-1]:g} s here: nothing can be compared"
        )
    return found
