"""The coordinator's logic, driven by hand: every time is written down, nothing sleeps."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from headgate.core.admission import find_rule
from headgate.core.arrivals import Arrivals
from headgate.core.batch import BatchRecord
from headgate.core.clock import Instant
from headgate.core.cost import CostModel
from headgate.core.dispatcher import Dispatcher, Hold, Idle, Open, Pass, Progress
from headgate.core.policies import edf
from headgate.core.query_state import GateConfig, GateReport
from headgate.core.snapshot import Promise
from headgate.core.tasks import TaskTimes
from tests.making import model

WALL_S = 1_700_000_000.0


def at(seconds: float) -> Instant:
    return Instant(seconds, WALL_S + seconds)


def report(rows: int | None, oldest_at_s: float | None, now_s: float) -> GateReport:
    return GateReport(rows, oldest_at_s, now_s)


def dispatcher(
    *names: str, deadline_s: float | None = 5.0, rule: str = "latest", cost: CostModel | None = None
) -> Dispatcher:
    made = Dispatcher(cores=2, policy=edf, policy_name="edf")
    for name in names:
        made.add(GateConfig(name, Promise(deadline_s), find_rule(rule), rule), cost or model())
    return made


def ask(d: Dispatcher, name: str, now_s: float, rows: int | None = 5_000, age_s: float = 0.0, gate: int = 0) -> object:
    return d.asked(name, gate, report(rows, None if rows is None else now_s - age_s, now_s), at(now_s))


def run_batch(
    d: Dispatcher, name: str, opened_s: float, took_s: float, rows: int = 5_000
) -> tuple[BatchRecord, Arrivals]:
    """Take and finish the open round as Spark would."""
    stamps = Arrivals.of([(WALL_S + opened_s - 1.0, 1.0 / rows, rows)])
    d.took(name, 0, rows, 0, stamps, at(opened_s))
    ask(d, name, opened_s + took_s, rows=0)
    done = Progress(name, 0, WALL_S + opened_s - 0.2, WALL_S + opened_s + took_s, rows, {"triggerExecution": 500})
    finished = d.finished(done, at(opened_s + took_s + 0.01))
    assert finished is not None
    return finished


def test_nothing_waits() -> None:
    assert ask(dispatcher("q"), "q", 10.0, rows=0) == Idle(1.0)


def test_it_holds_until_the_latest_safe_start_and_then_opens() -> None:
    d = dispatcher("q")
    now_s, answer = 10.0, ask(d, "q", 10.0)
    while isinstance(answer, Hold):
        now_s += answer.seconds + 0.001
        answer = ask(d, "q", now_s, age_s=now_s - 10.0)
    assert answer == Open(1, None)
    assert 13.5 < now_s < 14.8


def test_a_hold_is_bounded_because_the_others_may_change() -> None:
    d = dispatcher("long", "short", deadline_s=600.0)
    d.queries["short"].config = GateConfig("short", Promise(8.0), find_rule("latest"), "latest")
    assert ask(d, "long", 10.0) == Hold(10.0)
    assert ask(d, "short", 10.0) == Hold(2.0)


def test_a_batch_ends_when_its_first_gate_asks_again() -> None:
    d = dispatcher("q", rule="observe")
    ask(d, "q", 10.0)
    assert d.queries["q"].round is not None
    ask(d, "q", 10.6, rows=0)
    assert d.queries["q"].round is None


def test_a_finished_batch_is_recorded_with_exact_latencies_and_learned_from() -> None:
    d = dispatcher("q", rule="observe")
    before = d.queries["q"].cost
    ask(d, "q", 10.0)
    record, arrivals = run_batch(d, "q", 10.0, 0.5)
    assert record.rows == arrivals.total == 5_000
    assert record.duration_s == pytest.approx(0.5)
    assert record.latency is not None
    assert record.latency.max_s == pytest.approx(1.5)
    assert record.latency.violations == 0
    assert not record.estimated
    assert d.queries["q"].cost.batches == before.batches + 1


def test_the_time_held_is_kept_by_its_reason() -> None:
    d = dispatcher("q")
    ask(d, "q", 10.0, age_s=0.0)
    ask(d, "q", 12.0, age_s=2.0)
    assert isinstance(ask(d, "q", 14.9, age_s=4.9), Open)
    record, _ = run_batch(d, "q", 14.9, 0.4)
    assert record.held_s == pytest.approx({"buffer": 4.9})
    assert record.asked_at_s == pytest.approx(WALL_S + 10.0)


def test_a_progress_event_of_another_query_is_not_ours() -> None:
    assert dispatcher("q").finished(Progress("nobody", 0, 0.0, 1.0, 5, {}), at(10.1)) is None


def test_batches_that_run_side_by_side_know_it() -> None:
    d = dispatcher("a", "b", rule="observe", cost=model(fixed_s=0.8))
    ask(d, "a", 10.0)
    ask(d, "b", 10.5)
    record, _ = run_batch(d, "a", 10.0, 1.0)
    assert record.overlap == pytest.approx(0.5)
    other, _ = run_batch(d, "b", 10.5, 1.0)
    assert other.overlap == pytest.approx(0.5)


def test_a_join_shares_one_decision() -> None:
    d = dispatcher("join")
    first = ask(d, "join", 10.0, gate=0)
    assert isinstance(first, Hold)
    # The second source is asked only after the first has let go.
    assert isinstance(ask(d, "join", 14.9, age_s=4.9, gate=0), Open)
    assert isinstance(ask(d, "join", 14.91, age_s=0.1, gate=1), Open)


def test_a_joins_second_source_never_holds_but_its_rows_count() -> None:
    d = dispatcher("join")
    assert ask(d, "join", 10.0, rows=0, gate=0) == Idle(1.0)
    assert ask(d, "join", 10.01, rows=900, age_s=1.0, gate=1) == Pass()
    answer = ask(d, "join", 10.02, rows=0, gate=0)
    assert isinstance(answer, Hold)
    assert answer.seconds < 4.0


def test_a_part_that_fits_is_divided_between_the_sources() -> None:
    d = dispatcher("join", rule="slo")
    ask(d, "join", 10.0, rows=0, gate=0)
    ask(d, "join", 10.01, rows=1_000_000, age_s=0.1, gate=1)
    first = ask(d, "join", 10.02, rows=1_000_000, age_s=0.1, gate=0)
    assert isinstance(first, Open) and first.max_rows is not None and first.max_rows < 500_000
    second = ask(d, "join", 10.03, rows=1_000_000, age_s=0.1, gate=1)
    assert isinstance(second, Open) and second.max_rows == pytest.approx(first.max_rows, rel=0.01)


def test_a_foreign_source_is_estimated_from_its_own_batches() -> None:
    d = dispatcher("foreign", rule="observe")
    now_s = 10.0
    for batch in range(8):
        assert isinstance(ask(d, "foreign", now_s, rows=None), Open)
        ask(d, "foreign", now_s + 0.4, rows=None)
        done = Progress("foreign", batch, WALL_S + now_s - 0.01, WALL_S + now_s + 0.4, 1_000, {})
        found = d.finished(done, at(now_s + 0.41))
        assert found is not None
        assert found[0].estimated and found[0].rows == 1_000
        now_s += 1.0
    waiting = d.queries["foreign"].waiting(now_s)
    assert waiting is not None
    assert waiting.rate_rows_s == pytest.approx(1_000, rel=0.35)


def test_an_empty_foreign_source_is_looked_at_ever_more_rarely() -> None:
    d = dispatcher("foreign", deadline_s=8.0, cost=CostModel())
    now_s, openings = 10.0, []
    for _ in range(400):
        answer = ask(d, "foreign", now_s, rows=None)
        if isinstance(answer, Open):
            openings.append(now_s)
            now_s += 0.015
        else:
            assert isinstance(answer, Hold)
            now_s += max(answer.seconds, 1e-4)
    gaps = [b - a for a, b in pairwise(openings)]
    assert gaps[0] < 0.12
    assert gaps[-1] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("spoilt", [{"fixed_s": math.nan}, {"mean_s": math.inf}, {"fixed_s": 0.0, "per_row_s": 0.0}])
def test_a_model_with_nonsense_in_it_is_learned_anew(spoilt: dict[str, float]) -> None:
    d = dispatcher("q", cost=CostModel(batches=9, **spoilt))  # type: ignore[arg-type]
    assert isinstance(ask(d, "q", 10.0), Open)
    assert d.queries["q"].cost == CostModel()


def test_a_stream_that_falls_silent_is_not_thought_to_wait() -> None:
    d = dispatcher("silent", "other", rule="slo")
    for second in range(20):
        ask(d, "silent", float(second), rows=1_000, age_s=1.0)
        run_batch(d, "silent", float(second), 0.3, rows=1_000)
    ask(d, "silent", 20.0, rows=0)
    assert d.queries["silent"].waiting(600.0) is None
    assert isinstance(ask(d, "other", 600.0, age_s=2.0), Open)


def test_a_later_gate_does_not_join_the_batch_before() -> None:
    d = dispatcher("join", rule="observe")
    assert isinstance(ask(d, "join", 10.0, gate=0), Open)
    assert isinstance(ask(d, "join", 10.0, gate=1), Open)
    first = d.queries["join"].round
    assert isinstance(ask(d, "join", 11.0, gate=1), Open)
    assert d.queries["join"].round is not first


def test_a_foreign_source_behind_an_idle_native_one_is_still_gated() -> None:
    d = dispatcher("mixed")
    ask(d, "mixed", 10.0, rows=0, gate=0)
    assert isinstance(ask(d, "mixed", 10.0, rows=None, gate=1), Hold)


def test_a_batch_that_no_gate_let_in_is_recorded_as_such() -> None:
    d = dispatcher("q", rule="observe")
    before = d.queries["q"].cost
    replayed = Progress("q", 7, WALL_S + 2.0, WALL_S + 2.5, 100, {})
    found = d.finished(replayed, at(10.1))
    assert found is not None
    assert (found[0].code, found[0].rows, found[0].estimated) == ("ungated", 100, True)
    assert d.queries["q"].cost == before


def test_when_a_batch_ends_the_most_urgent_waiting_query_is_woken() -> None:
    d = dispatcher("runs", "soon", "later", rule="slo")
    d.queries["later"].config = GateConfig("later", Promise(60.0), find_rule("slo"))
    ask(d, "runs", 10.0, age_s=4.9)
    assert d.queries["runs"].round is not None
    assert isinstance(ask(d, "soon", 10.1, age_s=0.8), Hold)
    assert isinstance(ask(d, "later", 10.1, age_s=0.8), Hold)
    assert list(d.wakeable(10.2, ended=False)) == []
    ask(d, "runs", 10.4, rows=0)
    assert next(d.wakeable(10.4, ended=True)) == ("soon", True)


def test_an_end_that_lets_nobody_start_at_once_tells_those_who_waited_for_it_when_their_time_comes() -> None:
    d = dispatcher("runs", "gathers", rule="slo", deadline_s=8.0)
    ask(d, "runs", 10.0, age_s=7.9)
    held = ask(d, "gathers", 10.1, age_s=0.1)
    assert isinstance(held, Hold) and held.seconds == 2.0  # it waits for an end, whenever that is
    ask(d, "runs", 10.3, rows=0)
    assert list(d.wakeable(10.3, ended=True)) == [("gathers", False)]
    held = ask(d, "gathers", 10.3, age_s=0.3)
    assert isinstance(held, Hold) and held.seconds < 1.8  # sooner than it would have asked by itself
    assert list(d.wakeable(10.31, ended=True)) == []  # it knows already


def test_who_is_let_go_first_is_called_once() -> None:
    d = dispatcher("runs", "older", rule="slo", deadline_s=8.0)
    ask(d, "runs", 10.0, age_s=7.9)
    assert isinstance(ask(d, "older", 10.1, age_s=3.9), Hold)
    held = ask(d, "runs", 10.4, age_s=3.7)  # its batch has ended, and it is the first to ask
    assert isinstance(held, Hold) and held.seconds == pytest.approx(0.1)
    assert d.called() == {"older"} and d.called() == set()
    assert isinstance(ask(d, "older", 10.4, age_s=4.2), Open)


def test_a_query_that_is_let_go_first_and_does_not_start_is_not_waited_for() -> None:
    d = dispatcher("runs", "older", rule="slo", deadline_s=8.0)
    ask(d, "runs", 10.0, age_s=7.9)
    ask(d, "older", 10.1, age_s=3.9)
    assert isinstance(ask(d, "runs", 10.4, age_s=3.7), Hold)
    d.called()
    assert isinstance(ask(d, "runs", 10.45, age_s=3.75), Hold)
    assert d.called() == set(), "calling again and again would keep both busy"
    assert isinstance(ask(d, "runs", 10.51, age_s=3.81), Open)
    assert isinstance(ask(d, "runs", 11.0, age_s=3.7), Hold), "once it has run it is patient again"


def test_nobody_lets_a_query_go_first_whose_rule_starts_when_it_likes() -> None:
    d = dispatcher("runs", "older", rule="slo", deadline_s=8.0)
    d.queries["older"].config = GateConfig("older", Promise(8.0), find_rule("latest"), "latest")
    ask(d, "runs", 10.0, age_s=7.9)
    assert isinstance(ask(d, "older", 10.1, age_s=3.9), Hold)
    assert isinstance(ask(d, "runs", 10.4, age_s=3.7), Open)


def test_a_joins_later_source_waits_for_its_turn_itself_while_the_first_has_nothing() -> None:
    d = dispatcher("runs", "join", rule="slo", deadline_s=8.0)
    ask(d, "runs", 10.0, age_s=7.9)
    assert isinstance(ask(d, "join", 10.1, rows=0, gate=0), Idle)
    assert isinstance(ask(d, "join", 10.15, age_s=3.9, gate=1), Hold)
    held = ask(d, "runs", 10.4, age_s=3.7)
    assert isinstance(held, Hold) and d.called() == {"join"}, "it is in line as others are"


def test_a_batch_that_hangs_is_no_company() -> None:
    d = dispatcher("hangs", "goes on", rule="slo", deadline_s=8.0)
    ask(d, "hangs", 10.0, age_s=7.9)
    for now_s, stuck in ((10.3, False), (15.0, True)):
        running = d.queries["hangs"].running(now_s)
        assert running is not None and running.stuck == stuck
    ask(d, "goes on", 20.0, age_s=7.9)
    record, _ = run_batch(d, "goes on", 20.0, 0.25)
    assert record.overlap == 0.0


def test_also_a_first_batch_may_hang() -> None:
    d = dispatcher("new", rule="slo", cost=CostModel())
    ask(d, "new", 10.0)
    for now_s, stuck in ((15.0, False), (19.0, True)):
        running = d.queries["new"].running(now_s)
        assert running is not None and running.stuck == stuck


def test_nobody_waits_for_a_gate_that_has_fallen_silent() -> None:
    d = dispatcher("runs", "dead", rule="slo", deadline_s=8.0)
    ask(d, "runs", 10.0, age_s=7.9)
    held = ask(d, "dead", 10.1, age_s=3.9)
    assert isinstance(held, Hold)
    assert isinstance(ask(d, "runs", 10.1 + held.seconds + 0.6, age_s=3.7), Open)


@pytest.mark.parametrize(("policy", "first"), [("edf", "small"), ("lbf", "large"), ("edf-lbf", "large")])
def test_the_policy_says_whom_an_end_wakes_first(policy: str, first: str) -> None:
    d = dispatcher("runs", "small", "large", rule="slo", deadline_s=100.0)
    d.policy_name = policy
    ask(d, "runs", 10.0, age_s=99.9)
    assert isinstance(ask(d, "small", 10.1, rows=10, age_s=0.9), Hold)
    assert isinstance(ask(d, "large", 10.1, rows=10_000, age_s=0.8), Hold)
    ask(d, "runs", 20.0, rows=0)
    assert next(d.wakeable(60.0, ended=True)) == (first, True)


def test_gates_are_told_what_a_row_takes_once_that_is_known() -> None:
    d = dispatcher("q", rule="observe")
    opened = ask(d, "q", 1.0)
    assert isinstance(opened, Open) and opened.row_work_s is None
    d.worked("q", TaskTimes(1, 1.03, 1.03, "a", 1.03, 1_000))
    d.worked("gone", TaskTimes(1, 1.03, 1.03, "a", 1.03, 1_000))
    opened = ask(d, "q", 2.0)
    assert isinstance(opened, Open) and opened.row_work_s == pytest.approx(1e-3)


def test_a_foreign_source_with_a_limit_of_its_own_goes_on_at_once_while_it_is_behind() -> None:
    d = dispatcher("limited", deadline_s=10.0)
    assert isinstance(ask(d, "limited", 1.0, rows=None), Hold)
    d.queries["limited"].opened = at(0.0)
    ages_s = []
    for batch, now_s in enumerate((9.9, 10.4, 10.9)):
        assert isinstance(ask(d, "limited", now_s, rows=None), Open)
        done = Progress("limited", batch, WALL_S + now_s - 0.01, WALL_S + now_s + 0.4, 1_000, {}, behind=batch < 2)
        found = d.finished(done, at(now_s + 0.41))
        assert found is not None and found[0].latency is not None
        ages_s.append(found[0].latency.max_s)
    # What was left behind keeps its age: the estimate must not say that all is well.
    assert ages_s == pytest.approx([10.3, 10.8, 11.3], abs=0.01)
    # The last batch has caught up.
    assert isinstance(ask(d, "limited", 11.4, rows=None), Hold)


def test_a_batch_remembers_what_its_tasks_were_given() -> None:
    d = dispatcher("join", rule="observe")
    d.planned("join", 0, ("replayed",))  # after a restart, before any gate has asked
    ask(d, "join", 10.0, gate=0)
    ask(d, "join", 10.0, rows=0, gate=1)
    d.planned("join", 1, ("right",))
    d.planned("join", 0, ("first plan",))
    d.planned("join", 0, ("left a", "left b"))
    assert run_batch(d, "join", 10.0, 0.3)[0].shares == ("left a", "left b", "right")
    ask(d, "join", 11.0)
    assert run_batch(d, "join", 11.0, 0.3)[0].shares == ()


def test_memory_stays_flat() -> None:
    d = dispatcher("q", rule="observe")
    for batch in range(300):
        now_s = 10.0 + batch
        ask(d, "q", now_s)
        run_batch(d, "q", now_s, 0.3)
    state = d.queries["q"]
    assert len(state.unconfirmed) <= 2
    assert len(state.gates) == 1
