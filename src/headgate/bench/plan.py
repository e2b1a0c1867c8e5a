"""What a comparison runs: queries with promises, a load, and contenders."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class BenchQuery:
    """One query of :data:`headgate.workloads.queries.QUERIES` with its promise and its load."""

    name: str
    deadline_s: float
    rate: str


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to run the queries."""

    name: str
    title: str
    admission: str
    policy: str | None
    trigger: str = "none"
    """none (Headgate decides), zero, or deadline (each query's own deadline as a fixed trigger)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One contender's run."""

    contender: Contender
    queries: tuple[BenchQuery, ...]
    warm_up_s: float
    measure_s: float
    seed: int = 1
    cores: int | None = None
    title: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, path: Path) -> Plan:
        data = json.loads(path.read_text())
        contender = Contender(**data.pop("contender"))
        queries = tuple(BenchQuery(**query) for query in data.pop("queries"))
        return cls(contender=contender, queries=queries, **data)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run measured; written as JSON beside its plan."""

    contender: str
    title: str
    cpu_s: float
    measured_s: float
    queries: dict[str, dict[str, Any]]
    """Per query: the summary of :class:`headgate.metrics.summary.QuerySummary`, and its latency CDF."""

    @classmethod
    def read(cls, path: Path) -> Outcome:
        return cls(**json.loads(path.read_text()))


HEADGATE = Contender("headgate", "Headgate", "slo", "edf")
TRIGGER_ZERO = Contender("trigger-0", "stock, trigger 0", "observe", "fair", "zero")
TRIGGER_DEADLINE = Contender("trigger-deadline", "stock, trigger = deadline", "observe", "fair", "deadline")
