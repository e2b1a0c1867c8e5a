"""Which task held a batch up: asked of Spark once the batch is over, in a thread that no query waits for."""

from __future__ import annotations

import logging
import time
from typing import Protocol

from headgate.core.batch import BatchRecord
from headgate.core.tasks import Stage, Task, TaskTimes, median_rank, source_stage, task_times
from headgate.engine.internals import pool_name

log = logging.getLogger("headgate")

LOOKS, PAUSE_S = 3, 0.05
"""Spark tells of a batch's end and of its tasks by different ways: the last stage may not be known yet."""

FEW_TASKS = 16
"""The slower half of fewer than these is had in one answer; of more only the two that matter."""

SLACK_S = 0.002
"""Spark's stamps have whole milliseconds."""


class TaskLog(Protocol):
    """What Spark remembers of stages and tasks that have finished."""

    def finished_since(self, at_s: float) -> list[Stage]:
        """Stages that finished at `at_s` or later."""

    def slowest_first(self, stage: Stage, skip: int, count: int) -> list[Task]:
        """Of a stage's tasks in the order of their times, so many after those that are skipped."""


class StragglerWatch:
    """Says for a finished batch how long its tasks took. What fails is told once, and unknown from then on."""

    def __init__(self, tasks: TaskLog) -> None:
        self._log = tasks
        self._works = True

    def times_of(self, record: BatchRecord) -> TaskTimes | None:
        if not self._works:
            return None
        try:
            stage = self._stage_of(record)
            return None if stage is None else self._times(stage, record)
        except Exception as error:
            self._works = False
            reason = " ".join(str(error).split()) or repr(error)
            log.warning(
                "how long single tasks take is not known from now on (%.300s); queries are not affected", reason
            )
            return None

    def _stage_of(self, record: BatchRecord) -> Stage | None:
        from_s, to_s = record.opened_at_s - SLACK_S, record.finished_at_s + SLACK_S
        for look in range(LOOKS):
            if look:
                time.sleep(PAUSE_S)
            stages = self._log.finished_since(from_s)
            if (found := source_stage(stages, pool_name(record.query), from_s, to_s, record.rows)) is not None:
                return found
        return None

    def _times(self, stage: Stage, record: BatchRecord) -> TaskTimes | None:
        tasks = self._slowest_to_median(stage)
        if not tasks:  # Spark keeps a thousand stages, and this one has just been dropped
            return None
        return task_times(stage, tasks[0], tasks[-1], record.shares, record.rows)

    def _slowest_to_median(self, stage: Stage) -> list[Task]:
        rank = median_rank(stage.succeeded_tasks)
        if rank == 0:
            return [Task(0, stage.run_s)]
        if rank < FEW_TASKS / 2:
            return self._log.slowest_first(stage, 0, rank + 1)
        return self._log.slowest_first(stage, 0, 1) + self._log.slowest_first(stage, rank, 1)
