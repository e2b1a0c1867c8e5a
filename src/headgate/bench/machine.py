"""Machines for simulated time: how fast batches get on that run side by side.

:class:`Stretched` is a formula, good for laws. :class:`Cores` has what decides near a real machine's limit: a batch is
planned and committed by one thread, its stages have tasks of unequal length, tasks need slots and never give one back,
threads share the cores, and two busy cores are each slower than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

STAGE_SHARES = (0.4, 0.6)
"""Reading, and what comes after the shuffle."""

SHORTEST_TASK = 0.85
"""... of the longest task of its stage: a batch of Linear Road alone keeps 1.4 to 1.6 of two cores busy."""

ALL_BUSY_SPEED = 0.88
"""Of a core while all others work, too: they share caches and the way to the memory."""

SHARED_SPEED = 0.9
"""... and while several batches take turns on the cores, each finds the caches full of another's rows: they took about
so much more CPU than one after the other."""


@dataclass(slots=True)
class Phase:
    """Tasks that may run at the same time: seconds of one undisturbed thread that are left of each."""

    waiting_s: list[float]
    running_s: list[float] = field(default_factory=list)
    needs_slots: bool = True


@dataclass(slots=True)
class Job:
    """A batch at work."""

    due_s: float
    phases: list[Phase]

    @property
    def done(self) -> bool:
        return not self.phases

    def advance(self, seconds: float) -> None:
        """Every task that runs gets on by `seconds` of its own."""
        phase = self.phases[0]
        phase.running_s = [left_s - seconds for left_s in phase.running_s if left_s > seconds]
        if not phase.running_s and not phase.waiting_s:
            del self.phases[0]


class Machine(Protocol):
    """What batches run on."""

    @property
    def cores(self) -> int: ...

    @property
    def time_sliced(self) -> bool:
        """Whether it has slots to spare."""

    def job(self, alone_s: float, driver_s: float, due_s: float) -> Job:
        """A batch that takes `alone_s` if nothing else runs, of which `driver_s` in the driver's own thread."""

    def run(self, jobs: Sequence[Job], seconds: float) -> None:
        """Let a moment pass."""


@dataclass(frozen=True, slots=True)
class Stretched:
    """Each batch slows each other one down by `stretch`."""

    stretch: float
    cores: int = 2
    time_sliced: bool = False

    def job(self, alone_s: float, driver_s: float, due_s: float) -> Job:
        return Job(due_s, [Phase([], [alone_s])])

    def run(self, jobs: Sequence[Job], seconds: float) -> None:
        speed = 1.0 / (1.0 + self.stretch * max(0, len(jobs) - 1))
        for job in jobs:
            job.advance(seconds * speed)


@dataclass(frozen=True, slots=True)
class Cores:
    """Threads on cores; who gets a free slot is the most urgent (`edf`) or who has the fewest."""

    cores: int = 2
    slots: int = 6
    edf: bool = True

    @property
    def time_sliced(self) -> bool:
        return self.slots > self.cores

    def job(self, alone_s: float, driver_s: float, due_s: float) -> Job:
        driver_s = min(driver_s, 0.9 * alone_s)
        stages = [Phase(self._tasks(share * (alone_s - driver_s))) for share in STAGE_SHARES]
        planning, commit = (Phase([], [0.5 * driver_s], needs_slots=False) for _ in range(2))
        return Job(due_s, [planning, *stages, commit])

    def run(self, jobs: Sequence[Job], seconds: float) -> None:
        self._grant(jobs)
        threads = sum(len(job.phases[0].running_s) for job in jobs)
        speed = self._speed(min(threads, self.cores)) * min(1.0, self.cores / max(threads, 1))
        if threads > self.cores:
            speed *= SHARED_SPEED
        for job in jobs:
            job.advance(seconds * speed)

    def _grant(self, jobs: Sequence[Job]) -> None:
        staged = [job for job in jobs if job.phases[0].needs_slots]
        free = self.slots - sum(len(job.phases[0].running_s) for job in staged)
        while free > 0 and (asking := [job for job in staged if job.phases[0].waiting_s]):
            first = min(asking, key=lambda job: job.due_s if self.edf else len(job.phases[0].running_s))
            first.phases[0].running_s.append(first.phases[0].waiting_s.pop(0))
            free -= 1

    def _tasks(self, stage_s: float) -> list[float]:
        """A task per core, the longest first, of such lengths that the stage alone takes `stage_s`."""
        steps = max(1, self.cores - 1)
        lengths = [1.0 - (1.0 - SHORTEST_TASK) * index / steps for index in range(self.cores)]
        # While the k-th longest task still runs, k cores are busy.
        spans = [longer - shorter for longer, shorter in pairwise([*lengths, 0.0])]
        unit_s = sum(span / self._speed(index + 1) for index, span in enumerate(spans))
        return [stage_s / unit_s * length for length in lengths]

    def _speed(self, busy: int) -> float:
        return 1.0 - (1.0 - ALL_BUSY_SPEED) * max(0, busy - 1) / max(1, self.cores - 1)
