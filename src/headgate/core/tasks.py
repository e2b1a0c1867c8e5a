"""Whether a task held its batch up: the slowest of those that read the source, against their median. Pure.

Spark remembers stages and tasks, not which of them read a stream. Here is decided which stage that was and what its
slowest task had been given; what cannot be told for certain is told by the task's number alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

CLOCK_S = 0.001
"""Spark counts a task's time in whole milliseconds: a median of none is one that was too short to count."""


TASK_FIXED_S = 0.03
"""What a Python task takes before its first row, more or less."""

MEMORY = 0.8
"""Weight of all earlier batches against the newest."""


class Stage(NamedTuple):
    """A finished stage as Spark remembers it."""

    stage_id: int
    attempt: int
    pool: str
    submitted_at_s: float
    tasks: int
    succeeded_tasks: int
    read_rows: int
    """Rows that came from a source or a table."""
    shuffled_rows: int
    """Rows that came from another stage."""
    run_s: float
    """The time of all its tasks together."""


class Task(NamedTuple):
    """A task that succeeded."""

    partition: int
    run_s: float


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """The tasks of the stage that read a batch's rows."""

    count: int
    slowest_s: float
    median_s: float
    """The lower one of an even number of tasks: else the ratio of two would never be above 2."""
    slowest_read: str
    """What the slowest was given, such as ``orders-3[500:900]``; its number where the source does not say."""
    run_s: float = 0.0
    """The time of all together."""
    read_rows: int = 0

    @property
    def ratio(self) -> float:
        """How many times the median the slowest took."""
        return max(1.0, self.slowest_s / max(self.median_s, CLOCK_S))


@dataclass(slots=True)
class RowWork:
    """How long a core works on a row before the first shuffle, learned from the tasks of finished batches."""

    rows: float = 0.0
    work_s: float = 0.0

    def observe(self, times: TaskTimes) -> None:
        """Large batches count more than small ones, whose tasks mostly start and end."""
        self.rows = MEMORY * self.rows + times.read_rows
        self.work_s = MEMORY * self.work_s + max(0.0, times.run_s - TASK_FIXED_S * times.count)

    @property
    def per_row_s(self) -> float | None:
        return self.work_s / self.rows if self.rows >= 1.0 else None


def source_stage(stages: Iterable[Stage], pool: str, from_s: float, to_s: float, rows: int) -> Stage | None:
    """The stage that read the `rows` of a batch, which ran in `pool` between two moments.

    A query's stages run in a pool of its own, and those that read a source are fed by no other stage. Of several the
    one with just these rows; else (a join's two sources, a static table) the one that ran the longest.
    """
    own = (stage for stage in stages if stage.pool == pool and from_s <= stage.submitted_at_s <= to_s)
    leaves = (stage for stage in own if stage.shuffled_rows == 0 and stage.succeeded_tasks > 0)
    return max(leaves, key=lambda each: (each.read_rows == rows, each.read_rows > 0, each.run_s), default=None)


def median_rank(count: int) -> int:
    """How many of `count` tasks are slower than the median one."""
    return count // 2


def task_times(stage: Stage, slowest: Task, median: Task, shares: Sequence[str], rows: int) -> TaskTimes:
    """What a batch's record says; `shares` are what the source gave to its tasks, in their order."""
    # Spark numbers tasks in the order of the source's shares, if the stage has read just that.
    known = stage.read_rows == rows and stage.tasks == len(shares)
    return TaskTimes(
        count=stage.succeeded_tasks,
        slowest_s=slowest.run_s,
        median_s=median.run_s,
        slowest_read=shares[slowest.partition] if known else f"task {slowest.partition}",
        run_s=stage.run_s,
        read_rows=stage.read_rows,
    )
