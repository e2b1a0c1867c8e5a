"""One finished micro-batch as it is remembered, shown and written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headgate.core.arrivals import LatencyStats
from headgate.core.tasks import TaskTimes


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """Everything about one batch; times are wall-clock seconds, durations seconds."""

    query: str
    batch_id: int
    deadline_s: float | None
    slo: float
    rows: int
    oldest_at_s: float | None
    asked_at_s: float
    """When Spark first asked for this batch."""
    opened_at_s: float
    finished_at_s: float
    code: str
    reason: str
    """Why it was let in when it was."""
    held_s: dict[str, float]
    """Seconds held, by the code of the decision that held it."""
    predicted_s: float
    duration_s: float
    overlap: float
    """Other batches that ran beside it, on average."""
    latency: LatencyStats | None
    estimated: bool
    """Whether arrivals were estimated (``gate(df)``) rather than known (native sources)."""
    left_rows: int
    """Rows that waited and were left for the next batch because they did not fit."""
    skipped_rows: int = 0
    """Rows that were gone from the source before they could be read (with ``failOnDataLoss`` false)."""
    spark_ms: dict[str, int] = field(default_factory=dict)
    """Spark's own breakdown of the trigger (its ``latestOffset`` contains the hold)."""
    shares: tuple[str, ...] = ()
    """What each source task was given, in their order; empty where the source does not say. Not written: `tasks` is."""
    tasks: TaskTimes | None = None
    """The tasks that read the source; None where Spark does not tell."""

    def to_json(self) -> dict[str, Any]:
        """A flat object: one row of a table in pandas."""
        row: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__ if name not in _OWN_COLUMNS}
        row["held_s"] = round(sum(self.held_s.values()), 6)
        row |= {f"held_{code}_s": round(seconds, 6) for code, seconds in self.held_s.items()}
        row |= {f"latency_{name}": value for name, value in _latency_columns(self.latency).items()}
        row |= {f"spark_{name}_ms": value for name, value in self.spark_ms.items()}
        row |= {f"tasks_{name}": value for name, value in _task_columns(self.tasks).items()}
        return row


_OWN_COLUMNS = ("latency", "held_s", "spark_ms", "shares", "tasks")
"""Fields that become several columns, or none."""


def _latency_columns(stats: LatencyStats | None) -> dict[str, Any]:
    if stats is None:
        return {}
    return {name: getattr(stats, name) for name in ("max_s", "mean_s", "p50_s", "p95_s", "p99_s", "violations", "rows")}


def _task_columns(times: TaskTimes | None) -> dict[str, Any]:
    if times is None:
        return {}
    return {name: getattr(times, name) for name in ("count", "slowest_s", "median_s", "ratio", "slowest_read")}
