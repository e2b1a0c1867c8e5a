"""Sums over a query's batches that stay small for ever."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from headgate.core.arrivals import Arrivals
from headgate.core.batch import BatchRecord
from headgate.core.histogram import LatencyHistogram

RECENT_BATCHES = 50
"""Batches over which throughput and the model's error are told."""


@dataclass(slots=True)
class QuerySummary:
    """One query since it was started (or since :meth:`reset`)."""

    query: str
    deadline_s: float | None
    slo: float
    rows: int = 0
    batches: int = 0
    datasets: int = 0
    """What latencies are counted over: records, or files for a file source."""
    violations: int = 0
    late_batches: int = 0
    busy_s: float = 0.0
    held_s: float = 0.0
    left_rows: int = 0
    skipped_rows: int = 0
    estimated: bool = False
    codes: Counter[str] = field(default_factory=Counter)
    latencies: LatencyHistogram = field(default_factory=LatencyHistogram)
    recent: tuple[BatchRecord, ...] = ()
    """Replaced, never changed: views in other threads read it."""

    def add(self, record: BatchRecord, arrivals: Arrivals) -> None:
        self.rows += record.rows
        self.batches += 1
        self.busy_s += record.duration_s
        self.held_s += sum(record.held_s.values())
        self.left_rows += record.left_rows
        self.skipped_rows += record.skipped_rows
        self.estimated |= record.estimated
        self.codes[record.code] += 1
        self.recent = (*self.recent[-RECENT_BATCHES + 1 :], record)
        if record.latency is not None:
            self.datasets += record.latency.rows
            self.violations += record.latency.violations
            self.late_batches += record.latency.violations > 0
            self.latencies.add(arrivals, record.finished_at_s)

    @property
    def violation_rate(self) -> float:
        return self.violations / self.datasets if self.datasets else 0.0

    @property
    def keeps_promise(self) -> bool:
        return self.deadline_s is None or self.violation_rate <= 1.0 - self.slo

    @property
    def rows_per_s(self) -> float:
        """Throughput over the recent batches."""
        recent = self.recent
        if len(recent) < 2:
            return 0.0
        span_s = recent[-1].finished_at_s - recent[0].finished_at_s
        return sum(record.rows for record in recent[1:]) / span_s if span_s > 0 else 0.0

    @property
    def model_error(self) -> float:
        """Median of |real - predicted| / real over the recent batches."""
        errors = [
            abs(record.duration_s - record.predicted_s) / record.duration_s
            for record in self.recent
            if record.predicted_s > 0 and record.duration_s > 0
        ]
        return median(errors) if errors else 0.0

    @property
    def task_ratio(self) -> float | None:
        """Median over the recent batches of several tasks: how many times the median task the slowest one took."""
        ratios = [record.tasks.ratio for record in self.recent if record.tasks is not None and record.tasks.count > 1]
        return median(ratios) if ratios else None

    def quantile_s(self, share: float) -> float | None:
        return self.latencies.quantile(share) if self.latencies.count else None

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "deadline_s": self.deadline_s,
            "slo": self.slo,
            "batches": self.batches,
            "rows": self.rows,
            "datasets": self.datasets,
            "violations": self.violations,
            "violation_rate": self.violation_rate,
            "keeps_promise": self.keeps_promise,
            "p50_s": self.quantile_s(0.5),
            "p95_s": self.quantile_s(0.95),
            "p99_s": self.quantile_s(0.99),
            "max_s": self.quantile_s(1.0),
            "rows_per_s": self.rows_per_s,
            "busy_s": self.busy_s,
            "held_s": self.held_s,
            "skipped_rows": self.skipped_rows,
            "model_error": self.model_error,
            "task_ratio": self.task_ratio,
            "estimated": self.estimated,
            "codes": dict(self.codes),
        }
