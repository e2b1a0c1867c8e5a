"""What the dispatcher remembers of one query between events."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from headgate.core.admission import Decision, Rule
from headgate.core.arrivals import Arrivals
from headgate.core.clock import Instant
from headgate.core.cost import CostModel
from headgate.core.snapshot import Promise, QueryView, Running, Waiting
from headgate.core.tasks import RowWork

RATE_MEMORY_S = (2.0, 30.0)
"""Bounds of the arrival rate's memory: the deadline, since that is the horizon of a forecast."""

OVERRUN_SHARE = 0.3
"""Of the time a batch has run, at least this much is still to come as far as anybody knows."""

STUCK = 2.0
"""A batch that has run for so many times what it needs at its quantile, in its usual company, hangs."""

SILENT_S = 0.5
"""A gate that should have asked again so long ago is not there any more: nobody waits for its query's turn."""

UNKNOWN_GAP_S = 0.05
"""A foreign source that came back this soon after an opening had nothing: a real batch writes two logs first."""


@dataclass(frozen=True, slots=True)
class GateConfig:
    """What a query is started with."""

    name: str
    promise: Promise
    rule: Rule
    rule_name: str = "slo"


@dataclass(frozen=True, slots=True)
class GateReport:
    """What one gate said waits behind it; `rows` is None where its source cannot tell."""

    rows: int | None
    oldest_at_s: float | None
    reported_at_s: float
    whole: bool = False
    """Whether all that waits goes into a batch: its source is Spark's own and only watched."""


@dataclass(slots=True)
class RateEstimate:
    """Arrivals per second, exponentially weighted over time."""

    memory_s: float
    rows_s: float = 0.0
    seen_rows: float = 0.0
    seen_at_s: float | None = None

    def arrived_total(self, rows: float, now_s: float) -> None:
        """`rows` have arrived since the beginning, as known at `now_s`."""
        if self.seen_at_s is not None and now_s > self.seen_at_s:
            span_s = now_s - self.seen_at_s
            fresh = max(0.0, rows - self.seen_rows) / span_s
            self.rows_s += (fresh - self.rows_s) * -math.expm1(-span_s / self.memory_s)
        if self.seen_at_s is None or now_s > self.seen_at_s:
            self.seen_rows, self.seen_at_s = rows, now_s


@dataclass(slots=True)
class Gate:
    """One gated source of a query."""

    rate: RateEstimate
    native: bool = True
    """Whether it knows what waits."""
    whole: bool = False
    watching: bool = False
    """It has seen that nothing waits and will ask when something comes: its silence means that nothing has."""
    taken_rows: int = 0
    report: GateReport | None = None

    def said(self, report: GateReport) -> None:
        self.native = report.rows is not None
        self.whole = report.whole
        self.watching = report.rows == 0
        self.report = report
        if report.rows is not None:
            self.rate.arrived_total(self.taken_rows + report.rows, report.reported_at_s)

    @property
    def foreign(self) -> bool:
        """Whether its source is Spark's own: read as soon as the gate lets go, and never in part."""
        return self.whole or not self.native

    def took(self, rows: int, now_s: float) -> None:
        self.taken_rows += rows
        self.watching = False
        if self.report is not None and self.report.rows is not None:
            left = max(0, self.report.rows - rows)
            # What stays behind is not older than what was taken was; its exact stamp comes with the next question.
            self.report = GateReport(left, self.report.oldest_at_s if left else None, now_s)

    def waiting(self, now_s: float, opened_at_s: float | None) -> Waiting | None:
        """What waits by now: the last report, carried forward with the arrival rate."""
        report = self.report
        if report is None or self.watching:
            return None
        if report.rows is None:
            return self._guess(now_s, opened_at_s)
        age_s = max(0.0, now_s - report.reported_at_s)
        rows = report.rows + self.rate.rows_s * age_s
        if report.rows == 0 and rows < 1.0:
            return None
        oldest_s = report.oldest_at_s
        if oldest_s is None:
            oldest_s = min(now_s, report.reported_at_s + 1.0 / max(self.rate.rows_s, 1e-9))
        return Waiting(rows, oldest_s, self.rate.rows_s)

    def _guess(self, now_s: float, opened_at_s: float | None) -> Waiting:
        """A foreign source: everything since the last opening may wait, so its oldest may be that old."""
        since_s = now_s if opened_at_s is None else opened_at_s
        return Waiting(max(1.0, self.rate.rows_s * (now_s - since_s)), since_s, self.rate.rows_s)


@dataclass(slots=True)
class Round:
    """One opening of a query's gates: from the question to the end of the batch."""

    number: int
    asked: Instant
    opened: Instant
    decision: Decision
    waited_from_s: float | None
    """Wall time of the previous opening: the earliest arrival that a foreign source can have in this batch."""
    due_at_s: float
    share: float
    """Share of what waits that each gate may take."""
    held_s: dict[str, float]
    expected_rows: float
    rows: int = 0
    left_rows: int = 0
    skipped_rows: int = 0
    arrivals: list[Arrivals] = field(default_factory=list)
    beside_s: float = 0.0
    """Integral of the number of other running batches over this one's time."""
    joined: set[int] = field(default_factory=set)
    """Gates that have had their turn: one that asks again shows that the batch is over."""
    shares: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """What each gate's source gave to its tasks, in their order."""

    def overlap(self, duration_s: float) -> float:
        return 0.0 if duration_s <= 0 else self.beside_s / duration_s


@dataclass(slots=True)
class QueryState:
    """Everything known about one query; changed only by the dispatcher."""

    config: GateConfig
    cost: CostModel
    gates: dict[int, Gate] = field(default_factory=dict)
    row_work: RowWork = field(default_factory=RowWork)
    round: Round | None = None
    """The batch that runs now."""
    unconfirmed: list[Round] = field(default_factory=list)
    """Ended rounds whose progress event has not come yet, oldest first."""
    asked: Instant | None = None
    """When Spark first asked for the batch that waits."""
    holding: Decision | None = None
    holding_since_s: float = 0.0
    held_s: dict[str, float] = field(default_factory=dict)
    opened: Instant | None = None
    """When the gates last opened."""
    behind: bool = False
    """A foreign source's own limit left rows behind in its last batch."""
    empty_openings: int = 0
    rounds: int = 0
    asks_again_at_s: float = 0.0
    """When a holding gate will ask by itself."""
    let_go_since_s: float | None = None
    """Since when it lets others go first and nobody starts."""

    def gate(self, index: int) -> Gate:
        if index not in self.gates:
            low, high = RATE_MEMORY_S
            memory_s = min(max(self.config.promise.deadline_s or high, low), high)
            self.gates[index] = Gate(RateEstimate(memory_s))
        return self.gates[index]

    @property
    def native(self) -> bool:
        return all(gate.native for gate in self.gates.values())

    @property
    def divisible(self) -> bool:
        return not any(gate.foreign for gate in self.gates.values())

    def waiting(self, now_s: float) -> Waiting | None:
        """What waits behind all gates together: they share one decision."""
        opened_s = None if self.opened is None else self.opened.mono_s
        parts = [part for gate in self.gates.values() if (part := gate.waiting(now_s, opened_s)) is not None]
        if not parts:
            return None
        if len(parts) == 1:
            return parts[0]
        return Waiting(
            sum(part.rows for part in parts),
            min(part.oldest_at_s for part in parts),
            sum(part.rate_rows_s for part in parts),
        )

    def running(self, now_s: float) -> Running | None:
        if self.round is None:
            return None
        opened_s = self.round.opened.mono_s
        rows = self.round.rows or self.round.expected_rows
        ran_s = max(0.0, now_s - opened_s)
        # One that overruns its expectation is not about to end: the longer it has run, the longer it will.
        left_s = max(self.cost.left_s(rows, ran_s, self.round.overlap(ran_s)), OVERRUN_SHARE * ran_s)
        return Running(opened_s, rows, now_s + left_s, self.round.due_at_s, now_s > self.stuck_at_s(self.round))

    def stuck_at_s(self, batch: Round) -> float:
        """When `batch`, should it still run, waits for something else than cores."""
        rows = batch.rows or batch.expected_rows
        longest_s = self.cost.quantile_s(rows, self.cost.usual_overlap, self.config.promise.slo)
        return batch.opened.mono_s + STUCK * longest_s

    def view(self, now_s: float) -> QueryView:
        """This query in a snapshot."""
        return QueryView(
            name=self.config.name,
            promise=self.config.promise,
            cost=self.cost,
            waiting=self.waiting(now_s),
            running=self.running(now_s),
            divisible=self.divisible,
            asking=self._asking(now_s),
            asked_at_s=math.inf if self.asked is None else self.asked.mono_s,
            let_go_s=0.0 if self.let_go_since_s is None else now_s - self.let_go_since_s,
        )

    def _asking(self, now_s: float) -> bool:
        """Other rules start at a time of their own, whoever lets them go first."""
        return self.holding is not None and self.config.rule_name == "slo" and now_s <= self.asks_again_at_s + SILENT_S

    def hold(self, decision: Decision, now_s: float) -> None:
        """Count the time of the previous hold and begin this one."""
        self.release(now_s)
        self.holding, self.holding_since_s = decision, now_s

    def release(self, now_s: float) -> None:
        if self.holding is not None:
            code = self.holding.code
            self.held_s[code] = self.held_s.get(code, 0.0) + now_s - self.holding_since_s
            self.holding = None
