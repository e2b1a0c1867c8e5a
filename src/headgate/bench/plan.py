"""What a comparison runs: contenders, and cells of queries with promises and a load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class BenchQuery:
    """One query of :data:`headgate.workloads.queries.QUERIES` with its promise and its load."""

    name: str
    deadline_s: float
    rate: str
    max_rows: int | None = None
    """The source's own limit per batch (``maxRowsPerTrigger``)."""
    trigger_s: float | None = None
    """A fixed trigger for this query, whatever the contender's."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to run the queries. Stock ones use the same source with an open gate and the same session settings."""

    name: str
    title: str
    admission: str = "observe"
    policy: str | None = "fair"
    trigger_share: float | None = None
    """Each query's fixed trigger as a share of its deadline; 0: as soon as the last batch is done; None: Headgate's."""
    tight_share: float | None = None
    """... and that of the query with the tightest deadline, where it is another."""
    mode: str = "FAIR"
    """``spark.scheduler.mode``."""
    plain_slots: bool = False
    """A task slot per core, as Spark is usually set up, instead of slots to spare; all other settings stay."""

    @property
    def stock(self) -> bool:
        """Whether nothing of Headgate decides anything."""
        return self.trigger_share is not None and (self.mode == "FIFO" or self.policy == "fair")

    def trigger_s(self, query: BenchQuery, queries: Sequence[BenchQuery]) -> float:
        """The fixed trigger of one of `queries`; 0 if there is none."""
        tight = query.deadline_s <= min(other.deadline_s for other in queries)
        share = self.tight_share if tight and self.tight_share is not None else self.trigger_share
        return (share or 0.0) * query.deadline_s


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement inside an application: fresh queries, a settling time that is not counted, a measured time."""

    queries: tuple[BenchQuery, ...]
    settle_s: float
    measure_s: float
    seed: int = 1
    longest_settle_s: float = 0.0
    """A warm-up: after `settle_s` go on until batch times have stopped falling and the JVM compiles no more, at the
    latest until then."""
    give_up: bool = False
    """End as soon as a promise is certainly broken: enough for a search for capacity."""
    title: str = ""
    rows: int | None = None
    """So many records for each query and no more: the cell ends when all have done them, at the latest after
    `measure_s`, and tells for each one when that was (``done_s``, since the first arrival)."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Cell:
        queries = tuple(BenchQuery(**query) for query in data["queries"])
        return cls(**{**data, "queries": queries})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one cell measured."""

    contender: str
    title: str
    cpu_s: float
    measured_s: float
    queries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Per query: the summary of :class:`headgate.metrics.summary.QuerySummary`, and its CDFs."""
    aborted: bool = False
    """Whether it was ended early because a promise was broken."""
    began_at_s: float = 0.0
    """When the measured time began, by the wall clock."""
    slowness: float = 1.0
    """How many times longer everything took meanwhile than at the speed of the calibration; 1 if nobody looked."""
    stolen: float = 0.0
    """The share of all cores that the host took away in its worst few seconds."""

    @property
    def rows(self) -> int:
        return sum(int(query["rows"]) for query in self.queries.values())


@dataclass(frozen=True, slots=True)
class Measured:
    """A cell that was run. The machine's speed is known only afterwards, and with it what load the rate was."""

    found: Outcome
    rate: float
    """Reports per second into each query."""
    load: float


HEADGATE = Contender("headgate", "Headgate", "slo", "edf")
TRIGGER_ZERO = Contender("trigger-0", "stock, trigger 0", trigger_share=0.0)
TRIGGER_DEADLINE = Contender("trigger-deadline", "stock, trigger = deadline", trigger_share=1.0)
