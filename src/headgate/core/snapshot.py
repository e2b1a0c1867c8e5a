"""What a decision looks at: every query at one moment. All times are monotonic seconds.

Named tuples rather than dataclasses where one is made per query and decision: they are made several times faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from headgate.core.cost import CostModel


@dataclass(frozen=True, slots=True)
class Promise:
    """What a query's owner asked for: records in time, and the share of them that must be."""

    deadline_s: float | None
    slo: float = 0.99


class Waiting(NamedTuple):
    """Rows that have arrived and are in no batch yet."""

    rows: float
    oldest_at_s: float
    rate_rows_s: float = 0.0
    """Arrivals per second, to forecast how the batch grows while it waits."""

    def rows_at(self, when_s: float, now_s: float) -> float:
        return self.rows + self.rate_rows_s * max(0.0, when_s - now_s)


class Running(NamedTuple):
    """A batch that was let in and has not finished."""

    opened_at_s: float
    rows: float
    finish_at_s: float
    """When it is expected to finish."""
    due_at_s: float
    """When its oldest record's deadline is; infinite without one."""
    stuck: bool = False
    """It has run for so long that it waits for something else than cores, a sink for example: it is no company."""


class QueryView(NamedTuple):
    """One query as the deciding code sees it."""

    name: str
    promise: Promise
    cost: CostModel
    waiting: Waiting | None = None
    running: Running | None = None
    divisible: bool = True
    """Whether its source can take a part of what waits (a native source can, ``gate(df)`` cannot)."""
    asking: bool = True
    """Whether its gate waits for an answer, so that it could start now."""
    asked_at_s: float = math.inf
    """When Spark first asked for the batch that waits: since then it waits for its turn."""
    let_go_s: float = 0.0
    """For how long it has let others go first without anybody starting."""

    @property
    def due_at_s(self) -> float:
        """The deadline of its oldest waiting record."""
        if self.waiting is None or self.promise.deadline_s is None:
            return math.inf
        return self.waiting.oldest_at_s + self.promise.deadline_s


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All queries of one Spark at `now_s`."""

    now_s: float
    cores: int
    queries: tuple[QueryView, ...]
    policy: str = "edf"
    time_sliced: bool = False
    """Whether Spark has slots to spare, so that batches share the cores in slices of time and none waits for a task."""

    def others(self, query: QueryView) -> list[QueryView]:
        return [other for other in self.queries if other.name != query.name]

    def at_work(self, query: QueryView) -> list[tuple[QueryView, Running]]:
        """The others whose batches take cores now."""
        return [
            (other, other.running)
            for other in self.queries
            if other.running is not None and not other.running.stuck and other.name != query.name
        ]
