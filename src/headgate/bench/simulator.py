"""Queries on simulated time: the real dispatcher, costs from a formula, no Spark and no waiting.

What batches do to each other is the machine's matter. An hour of many queries takes seconds, so laws about whole runs
(promises kept, backlogs that end) can be tested, and rules compared before Spark is asked.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headgate.bench.machine import Job, Machine, Stretched
from headgate.core.admission import find_rule
from headgate.core.arrivals import Arrivals
from headgate.core.clock import Instant
from headgate.core.cost import CostModel
from headgate.core.dispatcher import Dispatcher, Open, Progress
from headgate.core.policies import find_policy
from headgate.core.query_state import GateConfig, GateReport
from headgate.core.snapshot import Promise

WALL_S = 1.7e9
ROUND_TRIP_S = 0.012
"""From the end of a batch to the next question, by which the dispatcher learns of it: whoever ended asks first."""

REPORTED_S = 0.03
"""From the end of a batch to Spark's report of it."""

SURPRISE = 1.25
"""More than this times the forecast makes a held source ask again."""

LOOK_S = 0.05
"""How often a source without data looks for some."""


_ANY_MACHINE = Stretched(0.7)


@dataclass(frozen=True, slots=True)
class SimulatedQuery:
    """A promise, an arrival process and a cost."""

    deadline_s: float | None
    fixed_s: float
    per_row_s: float
    rows_per_s: Callable[[float], float]
    """Arrival rate at a time."""
    rule: str = "slo"
    trigger_s: float = 0.0
    """Stock Spark's fixed trigger, for the rule ``observe``."""
    driver_s: float = 0.0
    """The part of the fixed cost that is planning and commits."""


@dataclass(slots=True)
class Result:
    """What happened to one query after the warm-up."""

    rows: int = 0
    late_rows: int = 0
    batches: int = 0
    max_latency_s: float = 0.0
    left_rows: int = 0

    @property
    def late_share(self) -> float:
        return self.late_rows / self.rows if self.rows else 0.0


@dataclass(slots=True)
class _Query:
    name: str
    spec: SimulatedQuery
    result: Result = field(default_factory=Result)
    waiting: list[tuple[float, int]] = field(default_factory=list)
    """(arrival, rows), oldest first."""
    asks_at_s: float = 0.0
    held: tuple[float, int, float] | None = None
    """(when, rows, rate) of the last hold: a burst beyond that makes it ask again, as the reader does."""
    running: _Batch | None = None
    reports: list[tuple[float, Progress]] = field(default_factory=list)
    """Spark's, and when they come."""
    carried: float = 0.0

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.waiting)


@dataclass(slots=True)
class _Batch:
    opened_s: float
    job: Job
    groups: list[tuple[float, int]]


def simulate(
    specs: Sequence[SimulatedQuery], seconds: float, machine: Machine = _ANY_MACHINE, *, warm_up_s: float = 0.0,
    noise: float = 0.08, seed: int = 1, tick_s: float = 0.01,
) -> list[Result]:  # fmt: skip
    """Run all queries for `seconds` of simulated time; results count what finished after `warm_up_s`."""
    world = _World(specs, machine, noise, seed, tick_s)
    steps = round(seconds / tick_s)
    for step in range(steps):
        world.tick(step * tick_s, counted=step * tick_s >= warm_up_s)
    for query in world.queries:
        query.result.left_rows = query.rows
    return [query.result for query in world.queries]


class _World:
    """Fixed steps: arrivals, progress of running batches, then whoever's time to ask has come."""

    def __init__(
        self, specs: Sequence[SimulatedQuery], machine: Machine, noise: float, seed: int, tick_s: float
    ) -> None:
        self.queries = [_Query(f"q{index}", spec) for index, spec in enumerate(specs)]
        self.dispatcher = Dispatcher(machine.cores, find_policy("edf"), "edf", time_sliced=machine.time_sliced)
        for query in self.queries:
            rule = query.spec.rule
            config = GateConfig(query.name, Promise(query.spec.deadline_s), find_rule(rule), rule)
            self.dispatcher.add(config, CostModel())
        self._random = random.Random(seed)
        self._machine, self._noise, self._tick_s = machine, noise, tick_s
        self._ran: frozenset[tuple[str, int]] = frozenset()

    def tick(self, now_s: float, *, counted: bool) -> None:
        for query in self.queries:
            self._arrive(query, now_s)
        self._work(now_s, counted)
        for query in self.queries:
            self._ask(query, now_s)
            self._report(query, now_s)
            self._settle(now_s)

    def _settle(self, now_s: float) -> None:
        """As the coordinator does: if what runs has changed, whoever this concerns is woken."""
        for name in self.dispatcher.called():
            self.queries[int(name[1:])].asks_at_s = now_s
        states = self.dispatcher.queries
        running = frozenset((name, state.round.number) for name, state in states.items() if state.round is not None)
        if running == self._ran:
            return
        ended, self._ran = not self._ran <= running, running
        for name, enough in self.dispatcher.wakeable(now_s, ended=ended):
            self.queries[int(name[1:])].asks_at_s = now_s
            if enough:
                return

    def _arrive(self, query: _Query, now_s: float) -> None:
        query.carried += query.spec.rows_per_s(now_s) * self._tick_s
        if (rows := int(query.carried)) > 0:
            query.carried -= rows
            query.waiting.append((now_s, rows))

    def _work(self, now_s: float, counted: bool) -> None:
        running = [query for query in self.queries if query.running is not None]
        self._machine.run([query.running.job for query in running if query.running], self._tick_s)
        ended = [query for query in running if query.running and query.running.job.done]
        for query in ended:
            assert query.running is not None
            self._finish(query, query.running, now_s, counted)

    def _finish(self, query: _Query, batch: _Batch, now_s: float, counted: bool) -> None:
        query.running, query.asks_at_s = None, max(now_s + ROUND_TRIP_S, _next_trigger(query.spec, batch.opened_s))
        rows = sum(rows for _, rows in batch.groups)
        started_s, finished_s = WALL_S + batch.opened_s - 0.001, WALL_S + now_s
        query.reports.append((now_s + REPORTED_S, Progress(query.name, 0, started_s, finished_s, rows, {})))
        if counted:
            self._count(query, batch, now_s)

    def _report(self, query: _Query, now_s: float) -> None:
        while query.reports and query.reports[0][0] <= now_s:
            self.dispatcher.finished(query.reports.pop(0)[1], _instant(now_s))

    def _count(self, query: _Query, batch: _Batch, now_s: float) -> None:
        deadline_s = query.spec.deadline_s or math.inf
        query.result.batches += 1
        for arrived_s, rows in batch.groups:
            query.result.rows += rows
            query.result.late_rows += rows if now_s - arrived_s > deadline_s else 0
            query.result.max_latency_s = max(query.result.max_latency_s, now_s - arrived_s)

    def _ask(self, query: _Query, now_s: float) -> None:
        if query.running is not None or (now_s < query.asks_at_s and not self._surprised(query, now_s)):
            return
        rows = query.rows
        query.held = None
        report = GateReport(rows, query.waiting[0][0] if rows else None, now_s)
        answer = self.dispatcher.asked(query.name, 0, report, _instant(now_s))
        if not isinstance(answer, Open) or not rows:
            query.asks_at_s = now_s + (LOOK_S if not rows else max(getattr(answer, "seconds", 0.0), self._tick_s))
            query.held = (now_s, rows, getattr(answer, "rate_rows_s", 0.0)) if rows else None
            return
        self._open(query, answer.max_rows or rows, now_s)

    def _surprised(self, query: _Query, now_s: float) -> bool:
        if query.held is None:
            return False
        since_s, rows, rate = query.held
        return query.rows > SURPRISE * (rows + rate * (now_s - since_s))

    def _open(self, query: _Query, room: int, now_s: float) -> None:
        taken: list[tuple[float, int]] = []
        while query.waiting and room > 0:
            arrived_s, rows = query.waiting.pop(0)
            if rows > room:
                query.waiting.insert(0, (arrived_s, rows - room))
                rows = room
            taken.append((arrived_s, rows))
            room -= rows
        rows = sum(rows for _, rows in taken)
        arrivals = Arrivals.of((WALL_S + arrived_s, 0.0, count) for arrived_s, count in taken)
        self.dispatcher.took(query.name, 0, rows, query.rows, arrivals, _instant(now_s))
        spec, chance = query.spec, math.exp(self._random.gauss(0, self._noise))
        alone_s, due_s = (spec.fixed_s + spec.per_row_s * rows) * chance, taken[0][0] + (spec.deadline_s or math.inf)
        query.running = _Batch(now_s, self._machine.job(alone_s, spec.driver_s * chance, due_s), taken)


def _next_trigger(spec: SimulatedQuery, opened_s: float) -> float:
    """Spark's triggers lie on multiples of their interval; one that was missed is made up for at once."""
    return (math.floor(opened_s / spec.trigger_s) + 1) * spec.trigger_s if spec.trigger_s else 0.0


def _instant(now_s: float) -> Instant:
    return Instant(now_s, WALL_S + now_s)
