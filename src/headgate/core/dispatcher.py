"""Events in, answers out: the coordinator's whole logic without sockets, threads, Spark or a clock of its own.

    gate asks ──▶ asked() ──▶ Open / Hold / Idle / Pass
    gate took ──▶ took(), planned()
    progress  ──▶ finished() ──▶ BatchRecord
    any change of what runs ──▶ shares() for the pools

A query's first gate waits for the decision; its other gates (a join's second source) follow it at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from headgate.core.admission import Decision, Rule
from headgate.core.arrivals import Arrivals
from headgate.core.batch import BatchRecord
from headgate.core.clock import Instant
from headgate.core.cost import CostModel
from headgate.core.policies import Policy, Share, start_order
from headgate.core.query_state import UNKNOWN_GAP_S, GateConfig, GateReport, QueryState, Round
from headgate.core.snapshot import Promise, QueryView, Snapshot
from headgate.core.tasks import TaskTimes

MAX_HOLD_S = 10.0
"""Longest wait before a gate asks again on its own, should an event have been missed."""

HOLD_DEADLINE_SHARE = 0.25
"""... or this share of its deadline: what the other queries must do may have changed meanwhile."""

MIN_HOLD_S = 0.25
"""... but not more often than this."""

MAX_UNCONFIRMED = 8
"""Ended batches to remember until Spark reports them; its reports lag by a fraction of a second."""

BACKLOG = Decision(True, "backlog", "its source's own limit leaves rows behind: goes on at once")

UNGATED = Decision(
    True, "ungated", "no gate let it in: replayed after a restart, or run while the gate had failed open"
)

IDLE_WAIT_S = 1.0
"""How long a gate with nothing to do waits before it gives Spark a turn (for no-data batches)."""

JOIN_IDLE_WAIT_S = 0.1
"""... and in a query with several sources, whose first gate cannot see the arrivals of the others."""

RECHECK_GAIN_S = 0.002
"""A new wake-up time is told to a waiting gate if it is earlier by at least this."""

NEAR = 3.0
"""Company can bring a batch's latest start forward by a few times its duration, not more."""

PROBE_S = (0.05, 1.0)
"""A foreign source that had nothing is looked at again after this long, growing while it stays empty."""

PROBE_DEADLINE_SHARE = 1 / 8
"""... but never later than this share of the deadline."""


@dataclass(frozen=True, slots=True)
class Open:
    """Start a batch now with at most `max_rows` of this gate's rows."""

    round: int
    max_rows: int | None
    row_work_s: float | None = None
    """What a row has taken a core before the first shuffle; None if that is not known."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Ask again after `seconds`, or when told, or when clearly more has arrived than at `rate_rows_s`."""

    seconds: float
    rate_rows_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing waits: look at the source again within `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Pass:
    """Report nothing new: the first gate of this query is the one that waits."""


Answer = Open | Hold | Idle | Pass


@dataclass(frozen=True, slots=True)
class Progress:
    """A finished batch as Spark reports it; times are wall clock."""

    query: str
    batch_id: int
    started_at_s: float
    finished_at_s: float
    rows: int
    spark_ms: dict[str, int]
    behind: bool = False
    """Whether a source had more than its own limit let into the batch."""


class Dispatcher:
    """State of all queries of one Spark, and every decision about them."""

    def __init__(self, cores: int, policy: Policy, policy_name: str, *, time_sliced: bool = False) -> None:
        self.cores = cores
        self.time_sliced = time_sliced
        self.policy = policy
        self.policy_name = policy_name
        self.queries: dict[str, QueryState] = {}
        self._counted_to_s = -math.inf
        self._called: set[str] = set()

    def add(self, config: GateConfig, cost: CostModel) -> None:
        self.queries[config.name] = QueryState(config, cost)

    def remove(self, name: str) -> QueryState | None:
        return self.queries.pop(name, None)

    def snapshot(self, now_s: float) -> Snapshot:
        views = tuple(state.view(now_s) for state in self.queries.values())
        return Snapshot(now_s, self.cores, views, self.policy_name, self.time_sliced)

    def shares(self, now_s: float) -> dict[str, Share]:
        """What each query's pool should have, given what runs now."""
        return self.policy(self.snapshot(now_s))

    def asked(self, name: str, gate: int, report: GateReport, now: Instant) -> Answer:
        """A gate asks whether a batch may start."""
        state = self.queries[name]
        if state.round is not None and gate in state.round.joined:
            self._end_round(state, now.mono_s)
        state.gate(gate).said(report)
        if state.round is not None:
            return self._join_round(state, gate)
        if not state.cost.sound:
            state.cost = CostModel()
        first = gate == min(state.gates)
        return self._first_answer(state, gate, now) if first else self._later_answer(state, gate, now)

    def took(
        self, name: str, gate: int, rows: int, left_rows: int, arrivals: Arrivals, now: Instant, skipped_rows: int = 0
    ) -> None:
        """A native gate has cut its part of the batch."""
        state = self.queries[name]
        state.gate(gate).took(rows, now.mono_s)
        if state.round is not None:
            state.round.rows += rows
            state.round.left_rows += left_rows
            state.round.skipped_rows += skipped_rows
            state.round.arrivals.append(arrivals)

    def planned(self, name: str, gate: int, shares: tuple[str, ...]) -> None:
        """A native gate has spread its part of the batch over tasks; of several plans the last one runs."""
        running = self.queries[name].round
        if running is not None:
            running.shares[gate] = shares

    def worked(self, name: str, times: TaskTimes) -> None:
        """How long the tasks of a finished batch took, which is known a moment after the batch."""
        if name in self.queries:
            self.queries[name].row_work.observe(times)

    def finished(self, progress: Progress, now: Instant) -> tuple[BatchRecord, Arrivals] | None:
        """Spark reports a batch: learn from it and return its record and arrivals, or None if no gate let it in."""
        state = self.queries.get(progress.query)
        if state is None or progress.rows <= 0:
            return None
        matched = self._match(state, progress, now)
        if matched is None:
            return self._ungated(state, progress, now)
        duration_s = progress.finished_at_s - matched.opened.wall_s
        overlap = matched.overlap(duration_s)
        self._note_limit(state, matched, progress, now)
        self._learn(state, matched, progress, duration_s, overlap)
        arrivals, estimated = _arrivals(matched, progress)
        # What a source's own limit left behind was counted as if it had been taken.
        estimated |= not state.native or state.behind
        return _record(state.config.promise, matched, progress, overlap, arrivals, estimated), arrivals

    def _note_limit(self, state: QueryState, batch: Round, progress: Progress, now: Instant) -> None:
        """Keep in mind whether a foreign source's own limit left rows behind."""
        was_behind, state.behind = state.behind, progress.behind and not state.divisible
        if state.behind and batch.waited_from_s is not None:
            # What was left may be as old as what was taken; until it catches up nobody knows, so the worst is assumed.
            state.opened = Instant(now.mono_of(batch.waited_from_s), batch.waited_from_s)
        elif was_behind:
            state.opened = batch.opened

    def _ungated(self, state: QueryState, progress: Progress, now: Instant) -> tuple[BatchRecord, Arrivals]:
        """A batch that no gate let in: replayed after a restart, or run while the gate had failed open."""
        started = Instant(now.mono_of(progress.started_at_s), progress.started_at_s)
        since_s = None if state.opened is None else min(state.opened.wall_s, progress.started_at_s)
        batch = Round(
            number=0, asked=started, opened=started, decision=UNGATED, waited_from_s=since_s, due_at_s=math.inf,
            share=1.0, held_s={}, expected_rows=progress.rows,
        )  # fmt: skip
        arrivals, estimated = _arrivals(batch, progress)
        return _record(state.config.promise, batch, progress, 0.0, arrivals, estimated), arrivals

    def called(self) -> set[str]:
        """Queries that others let go first: they should ask at once. Told once."""
        called, self._called = self._called, set()
        return called

    def wakeable(self, now_s: float, *, ended: bool) -> Iterator[tuple[str, bool]]:
        """Holding queries that should ask again because what runs has changed, in the policy's order.

        Each with whether it is enough to reach this one: one that starts changes the matter for the rest. After an end
        that lets nobody start at once, everybody who waited for it learns when its own time comes: without that the
        cores would idle until somebody happens to ask.
        """
        snapshot = self.snapshot(now_s)
        holding = [view for view in snapshot.queries if self.queries[view.name].holding is not None]
        holding.sort(key=lambda view: start_order(self.policy_name, view, now_s))
        if not ended:
            yield from (
                (view.name, False) for view in holding if self._near(view, now_s) and self._sooner(snapshot, view)
            )
            return
        opening = False
        for view in holding:
            if self._rule(view)(snapshot, view).open:
                opening = True
                yield view.name, True
        if not opening:
            yield from ((view.name, False) for view in holding if self._sooner(snapshot, view))

    def _near(self, view: QueryView, now_s: float) -> bool:
        """Whether a batch that has just started could make this query due: a cheap look that spares most decisions."""
        held = self.queries[view.name].holding
        assert held is not None
        return held.latest_start_s - now_s <= NEAR * held.predicted_s

    def _sooner(self, snapshot: Snapshot, view: QueryView) -> bool:
        """Whether this query would start before it asks by itself."""
        decision = self._rule(view)(snapshot, view)
        return decision.open or decision.until_s < self.queries[view.name].asks_again_at_s - RECHECK_GAIN_S

    def _rule(self, view: QueryView) -> Rule:
        return self.queries[view.name].config.rule

    def _first_answer(self, state: QueryState, gate: int, now: Instant) -> Answer:
        waiting = state.waiting(now.mono_s)
        if waiting is None:
            state.release(now.mono_s)
            return Idle(IDLE_WAIT_S if len(state.gates) == 1 else JOIN_IDLE_WAIT_S)
        if state.asked is None:
            state.asked = now
        if state.behind:
            return self._open_round(state, gate, BACKLOG, now)
        probe_at_s = self._probe_at(state)
        if now.mono_s < probe_at_s:
            return Hold(probe_at_s - now.mono_s)
        decision = self._decide(state, now.mono_s)
        if decision.open:
            return self._open_round(state, gate, decision, now)
        return self._hold(state, decision, now.mono_s)

    def _hold(self, state: QueryState, decision: Decision, now_s: float) -> Hold:
        if math.isnan(decision.until_s):
            raise ArithmeticError(f"{state.config.name}: the rule answered with no usable time")
        state.hold(decision, now_s)
        self._let_go(state, decision.first, now_s)
        longest_s = min(
            MAX_HOLD_S, max(MIN_HOLD_S, (state.config.promise.deadline_s or math.inf) * HOLD_DEADLINE_SHARE)
        )
        seconds = min(longest_s, max(0.0, decision.until_s - now_s))
        state.asks_again_at_s = now_s + seconds
        waiting = state.waiting(now_s)
        return Hold(seconds, 0.0 if waiting is None else waiting.rate_rows_s)

    def _let_go(self, state: QueryState, first: str | None, now_s: float) -> None:
        """Call who goes first, once; and remember since when that has led to nothing."""
        if first is None:
            state.let_go_since_s = None
        elif state.let_go_since_s is None:
            state.let_go_since_s = now_s
            self._called.add(first)

    def _later_answer(self, state: QueryState, gate: int, now: Instant) -> Answer:
        """A join's later source, while the first had nothing: open only if it cannot wait for the next question."""
        waiting = state.waiting(now.mono_s)
        if waiting is None:
            return Pass()
        if state.asked is None:
            state.asked = now
        decision = self._decide(state, now.mono_s)
        if decision.open:
            return self._open_round(state, gate, decision, now)
        # A foreign source would be read at once after a Pass: its gate is the one that has to wait. And who waits for a
        # turn must be there when it comes.
        waits = state.gate(gate).foreign or decision.code == "turn"
        return self._hold(state, decision, now.mono_s) if waits else Pass()

    def _decide(self, state: QueryState, now_s: float) -> Decision:
        snapshot = self.snapshot(now_s)
        mine = next(view for view in snapshot.queries if view.name == state.config.name)
        return state.config.rule(snapshot, mine)

    def _probe_at(self, state: QueryState) -> float:
        """When a foreign source that had nothing may be looked at again."""
        if state.native or not state.empty_openings or state.opened is None or state.config.rule_name == "observe":
            return -math.inf
        low_s, high_s = PROBE_S
        cap_s = min(high_s, (state.config.promise.deadline_s or math.inf) * PROBE_DEADLINE_SHARE)
        return state.opened.mono_s + min(cap_s, low_s * 1.5 ** min(state.empty_openings, 20))

    def _open_round(self, state: QueryState, gate: int, decision: Decision, now: Instant) -> Open:
        self._count_overlap(now.mono_s)
        state.release(now.mono_s)
        for each in self.queries.values():  # whoever let somebody go first did not do it in vain
            each.let_go_since_s = None
        view = state.view(now.mono_s)
        rows = 0.0 if view.waiting is None else view.waiting.rows
        share = 1.0 if decision.max_rows is None else decision.max_rows / max(rows, 1.0)
        state.rounds += 1
        previous = state.opened
        state.round = Round(
            number=state.rounds,
            asked=state.asked or now,
            opened=now,
            decision=decision,
            waited_from_s=None if previous is None else previous.wall_s,
            due_at_s=view.due_at_s,
            share=share,
            held_s=state.held_s,
            expected_rows=min(rows, decision.max_rows or math.inf),
            joined={index for index in state.gates if index < gate},
        )
        if not state.behind:  # else what waits may still be as old as before
            state.opened = now
        state.asked, state.held_s = None, {}
        return self._join_round(state, gate)

    def _join_round(self, state: QueryState, gate: int) -> Open:
        """This gate's part of an open round."""
        assert state.round is not None
        state.round.joined.add(gate)
        report = state.gate(gate).report
        max_rows = None
        if state.round.share < 1.0 and report is not None and report.rows is not None:
            max_rows = max(1, math.ceil(state.round.share * report.rows))
        return Open(state.round.number, max_rows, state.row_work.per_row_s)

    def _end_round(self, state: QueryState, now_s: float) -> None:
        self._count_overlap(now_s)
        ended = state.round
        assert ended is not None
        state.round = None
        if not ended.rows and now_s - ended.opened.mono_s < UNKNOWN_GAP_S:
            state.empty_openings += 1
            return
        state.empty_openings = 0
        state.unconfirmed = [*state.unconfirmed[-MAX_UNCONFIRMED + 1 :], ended]

    def _count_overlap(self, now_s: float) -> None:
        """Add the time since the last change of what runs to every running batch; one that hangs is no company."""
        states = [(state, state.round) for state in self.queries.values() if state.round is not None]
        company = [(batch, min(now_s, state.stuck_at_s(batch))) for state, batch in states] if len(states) > 1 else []
        for batch, _ in company:
            since_s = max(self._counted_to_s, batch.opened.mono_s)
            batch.beside_s += sum(max(0.0, until_s - since_s) for other, until_s in company if other is not batch)
        self._counted_to_s = max(self._counted_to_s, now_s)  # a late report must not count time twice

    def _match(self, state: QueryState, progress: Progress, now: Instant) -> Round | None:
        """The round that this progress belongs to: the one that opened within the trigger."""
        candidates = [*state.unconfirmed, *([state.round] if state.round else [])]
        for candidate in candidates:
            # Spark's stamps have whole milliseconds.
            if progress.started_at_s - 0.002 <= candidate.opened.wall_s <= progress.finished_at_s + 0.002:
                if candidate is state.round:
                    self._end_round(state, now.mono_of(progress.finished_at_s))
                state.unconfirmed = [other for other in state.unconfirmed if other is not candidate]
                return candidate
        return None

    def _learn(self, state: QueryState, batch: Round, progress: Progress, duration_s: float, overlap: float) -> None:
        state.empty_openings = 0
        # A source that only estimates its rows (files) must be predicted in the unit in which it says what waits.
        rows = batch.rows if state.native and batch.rows else progress.rows
        state.cost = state.cost.observe(rows, duration_s, overlap)
        if not state.native:
            self._learn_foreign_rate(state, batch, max(0, progress.rows - batch.rows))

    def _learn_foreign_rate(self, state: QueryState, batch: Round, rows: int) -> None:
        foreign = [gate for gate in state.gates.values() if not gate.native]
        for gate in foreign:
            gate.taken_rows += rows // len(foreign)
            gate.rate.arrived_total(gate.taken_rows, batch.opened.mono_s)


def _record(
    promise: Promise, batch: Round, progress: Progress, overlap: float, arrivals: Arrivals, estimated: bool
) -> BatchRecord:
    return BatchRecord(
        query=progress.query,
        batch_id=progress.batch_id,
        deadline_s=promise.deadline_s,
        slo=promise.slo,
        rows=progress.rows,
        oldest_at_s=arrivals.oldest_s,
        asked_at_s=batch.asked.wall_s,
        opened_at_s=batch.opened.wall_s,
        finished_at_s=progress.finished_at_s,
        code=batch.decision.code,
        reason=batch.decision.reason,
        held_s=batch.held_s,
        predicted_s=batch.decision.predicted_s,
        duration_s=progress.finished_at_s - batch.opened.wall_s,
        overlap=overlap,
        latency=arrivals.latency(progress.finished_at_s, promise.deadline_s) if arrivals.total else None,
        estimated=estimated,
        left_rows=batch.left_rows,
        skipped_rows=batch.skipped_rows,
        spark_ms=progress.spark_ms,
        shares=tuple(share for gate in sorted(batch.shares) for share in batch.shares[gate]),
    )


def _arrivals(batch: Round, progress: Progress) -> tuple[Arrivals, bool]:
    """The batch's arrivals: as the sources know them, or evenly spread since the previous opening."""
    if batch.arrivals:
        return Arrivals.concat(batch.arrivals), False
    since_s = batch.waited_from_s if batch.waited_from_s is not None else progress.started_at_s
    step_s = max(0.0, batch.opened.wall_s - since_s) / max(progress.rows, 1)
    return Arrivals.of([(since_s, step_s, progress.rows)]), True
