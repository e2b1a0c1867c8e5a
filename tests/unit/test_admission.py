"""When batches start, and why. Times are seconds on a clock that only these tests turn."""

from __future__ import annotations

import pytest

from headgate.core.admission import find_rule, latest, observe, qspark, slo, zstream
from headgate.core.admission.slo import BEST_EFFORT_PATIENCE_S, considerate_rows
from headgate.core.admission.timing import expected_overlap, latest_start
from headgate.core.cost import CostModel
from headgate.errors import BadParameter
from tests.making import model, moment, query, running


def test_nothing_waits_nothing_starts() -> None:
    empty = query(rows=None)
    for rule in (slo, latest, qspark, zstream, observe):
        assert not rule(moment(100.0, empty), empty).open


def test_without_experience_it_starts_at_once() -> None:
    fresh = query(cost=CostModel())
    decision = slo(moment(100.0, fresh), fresh)
    assert (decision.open, decision.code) == (True, "learning")


def test_an_unknown_backlog_is_not_swallowed_whole() -> None:
    fresh = query(cost=CostModel(), rows=50_000_000)
    assert slo(moment(100.0, fresh), fresh).max_rows == 1_000_000


def test_latest_waits_for_the_latest_safe_start_and_then_starts() -> None:
    #  100 oldest arrives ........ 104.x latest safe start .... 105 deadline
    early = query(oldest_at_s=100.0)
    held = latest(moment(100.5, early), early)
    assert (held.open, held.code) == (False, "buffer")
    assert 104.0 < held.until_s < 104.8
    started = latest(moment(held.until_s + 0.001, early), early)
    assert (started.open, started.code, started.max_rows) == (True, "due", None)


def test_the_safe_start_is_earlier_for_a_stricter_promise() -> None:
    strict, lax = query(slo=0.999), query(slo=0.5)
    assert latest_start(strict, 100.0, 0.0) < latest_start(lax, 100.0, 0.0)


def test_the_safe_start_reckons_with_rows_still_to_come() -> None:
    still, growing = query(), query(rate_rows_s=20_000)
    assert latest_start(growing, 100.0, 0.0) < latest_start(still, 100.0, 0.0)


def test_idle_cores_start_it_early() -> None:
    lonely = query(oldest_at_s=100.0)
    decision = slo(moment(101.0, lonely), lonely)
    assert (decision.open, decision.code) == (True, "early")


def test_an_early_start_gathers_a_worthwhile_batch_first() -> None:
    lonely = query(oldest_at_s=100.0)
    decision = slo(moment(100.01, lonely), lonely)
    assert not decision.open
    assert 100.01 < decision.until_s < 101.0


def test_busy_cores_make_it_wait() -> None:
    waits = query("waits", oldest_at_s=100.0)
    busy = query("busy", rows=None, running=running(finish_at_s=103.2))
    decision = slo(moment(100.3, waits, busy), waits)
    assert not decision.open
    assert "waits for busy" in decision.reason


def test_one_that_is_worth_its_fixed_cost_starts_beside_another_that_bears_it() -> None:
    #  the one that runs ends at 101.5 alone and is due at 105: beside another still by 0.65 of its deadline
    waits = query("waits", oldest_at_s=100.0)
    runs = query("runs", rows=None, running=running(finish_at_s=101.5))
    held = slo(moment(100.3, waits, runs), waits)
    assert 100.3 < held.until_s < 102.0
    assert slo(moment(held.until_s + 0.001, waits, runs), waits).open
    another = query("another", rows=None, running=running(finish_at_s=101.5))
    assert not slo(moment(held.until_s + 0.001, waits, runs, another), waits).open


def test_beside_a_batch_that_needs_its_time_it_waits_if_it_can() -> None:
    needy = query("needy", rows=None, running=running(finish_at_s=103.2))
    patient, tight = query("patient", oldest_at_s=100.0), query("tight", deadline_s=2.5, oldest_at_s=100.0)
    decision = slo(moment(101.3, patient, needy), patient)
    assert not decision.open and "waits for needy" in decision.reason
    assert slo(moment(101.3, tight, needy), tight).open, "it would miss its own deadline"


def test_a_short_batch_joins_a_long_one_and_two_of_a_size_take_turns() -> None:
    #  at 101 a batch of 0.25 s beside one with 0.9 s left gains 0.9 s, and both lose 0.7 * 0.25 s;
    #  one of 0.8 s, or beside one with 0.3 s left, gains less than both lose
    short = query("short", oldest_at_s=100.0)
    long = query("long", oldest_at_s=100.0, cost=model(fixed_s=0.75))
    runs = query("runs", rows=None, running=running(finish_at_s=101.9))
    nearly = query("nearly", rows=None, running=running(finish_at_s=101.3))
    assert slo(moment(101.0, short, runs), short).open
    held = slo(moment(101.0, long, runs), long)
    assert not held.open and "waits for runs" in held.reason
    assert not slo(moment(101.0, short, nearly), short).open


def test_a_second_is_worth_as_much_as_it_is_of_a_deadline() -> None:
    #  a batch of 0.7 s beside one with 0.9 s left: both lose 0.5 s, which is next to nothing of a deadline of 80 s
    tight = query("tight", deadline_s=8.0, oldest_at_s=99.0, cost=model(fixed_s=0.65))
    relaxed = query("relaxed", deadline_s=80.0, oldest_at_s=60.0, cost=model(fixed_s=0.65))
    for waits, deadline_s, joins in ((tight, 80.0, True), (tight, 8.0, False), (relaxed, 8.0, False)):
        runs = query("runs", deadline_s=deadline_s, rows=None, running=running(finish_at_s=102.9, due_at_s=150.0))
        decision = slo(moment(102.0, waits, runs), waits)
        assert decision.open == joins
        assert joins or "waits for runs" in decision.reason


def test_an_expected_end_may_come_later() -> None:
    waits = query("waits", oldest_at_s=100.0)
    latest_s = latest_start(waits, 101.0, 0.0)
    just = query("just", rows=None, running=running(finish_at_s=latest_s - 0.01, due_at_s=latest_s))
    assert slo(moment(101.0, waits, just), waits).open, "waiting for it would leave nothing for a surprise"


def test_who_would_be_late_beside_a_batch_waits_for_its_end_only_if_that_may_come_later() -> None:
    waits = query("waits", oldest_at_s=100.0, cost=model(fixed_s=2.0))
    alone_s = latest_start(waits, 100.5, 0.0)
    now_s, answers = alone_s - 0.5, []
    for end_s in (now_s + 0.38, now_s + 0.45):
        both = [query(name, rows=None, running=running(finish_at_s=end_s)) for name in ("one", "two")]
        now = moment(now_s, waits, *both)
        assert latest_start(waits, now_s, expected_overlap(now, waits)) <= now_s, "beside them it would be due"
        answers.append(latest(now, waits).open)
    assert answers == [False, True]


def test_beside_a_tighter_query_it_takes_what_that_one_can_wait_for() -> None:
    #  a batch of all 2 M rows would take 20 s; the tight query has 1.5 s
    relaxed = query("relaxed", deadline_s=60.0, oldest_at_s=90.0, rows=2_000_000)
    tight = query("tight", deadline_s=1.5, rows=None)
    decision = slo(moment(100.0, relaxed, tight), relaxed)
    assert decision.open and decision.max_rows is not None
    assert relaxed.cost.expected_s(decision.max_rows) < 1.2
    assert decision.predicted_s < 1.2
    alone = slo(moment(122.0, relaxed), relaxed)
    assert alone.open and alone.max_rows is None


def test_considerate_batches_still_keep_up_with_the_arrivals() -> None:
    #  the tight query leaves no time at all; at 12,000 rows/s batches of 3,000 rows (0.23 s) just keep up
    tight = query("tight", deadline_s=0.2, rows=None)
    busy = query("busy", deadline_s=60.0, rows=2_000_000, rate_rows_s=12_000, oldest_at_s=90.0)
    assert busy.waiting is not None
    rows = considerate_rows(moment(100.0, busy, tight), busy, busy.waiting)
    assert rows / busy.cost.expected_s(rows) > 12_000


def test_a_large_batch_does_not_justify_itself() -> None:
    #  all batches had one size: what part of their cost is fixed is a guess, so the next one is smaller
    cost = CostModel()
    for _ in range(20):
        cost = cost.observe(100_000, 4.0, 0.0)
    tight = query("tight", deadline_s=0.5, rows=None)
    busy = query("busy", deadline_s=60.0, rows=2_000_000, rate_rows_s=20_000, oldest_at_s=90.0, cost=cost)
    assert busy.waiting is not None
    assert considerate_rows(moment(100.0, busy, tight), busy, busy.waiting) <= 50_001


def test_as_its_own_deadline_comes_nearer_it_takes_more() -> None:
    tight = query("tight", deadline_s=1.5, rows=None)
    young = query("relaxed", deadline_s=60.0, oldest_at_s=90.0, rows=2_000_000)
    old = query("relaxed", deadline_s=60.0, oldest_at_s=60.0, rows=2_000_000)
    assert young.waiting is not None and old.waiting is not None
    more = considerate_rows(moment(100.0, old, tight), old, old.waiting)
    assert more > 2 * considerate_rows(moment(100.0, young, tight), young, young.waiting)


def test_it_starts_as_soon_as_it_has_a_considerate_batch() -> None:
    tight = query("tight", deadline_s=1.5, rows=None)
    few = query("relaxed", deadline_s=60.0, oldest_at_s=99.9, rows=10_000, rate_rows_s=10_000)
    many = query("relaxed", deadline_s=60.0, oldest_at_s=99.9, rows=200_000, rate_rows_s=10_000)
    assert not slo(moment(100.0, few, tight), few).open
    assert slo(moment(100.0, many, tight), many).open


def test_company_brings_the_latest_start_forward() -> None:
    alone = query("q", oldest_at_s=100.0)
    busy = query("busy", rows=None, running=running(finish_at_s=120.0))
    assert latest(moment(101.0, alone, busy), alone).until_s < latest(moment(101.0, alone), alone).until_s


def test_a_relaxed_query_leaves_the_cores_to_one_that_is_nearly_due() -> None:
    relaxed = query("relaxed", deadline_s=60.0, oldest_at_s=60.0, cost=model(fixed_s=3.0))
    tight = query("tight", deadline_s=1.5, oldest_at_s=100.0, cost=model(fixed_s=0.4))
    decision = slo(moment(100.8, relaxed, tight), relaxed)
    assert not decision.open
    assert decision.reason.startswith("lets tight go first")


def test_if_a_collision_cannot_be_avoided_it_starts_just_after_the_tight_batch() -> None:
    relaxed = query("relaxed", deadline_s=60.0, oldest_at_s=60.0, cost=model(fixed_s=3.0))
    just_done = query("tight", deadline_s=1.5, oldest_at_s=100.0, rows=10, cost=model(fixed_s=0.9))
    assert slo(moment(100.1, relaxed, just_done), relaxed).open
    assert not slo(moment(100.5, relaxed, just_done), relaxed).open


def test_a_batch_that_cannot_be_in_time_starts_at_once() -> None:
    late = query(oldest_at_s=94.0)
    busy = query("busy", rows=None, running=running(finish_at_s=200.0))
    decision = slo(moment(100.0, late, busy), late)
    assert (decision.open, decision.code) == (True, "late")


def test_it_takes_what_fits() -> None:
    # 2 M rows need 20 s; before the deadline there are 5.
    heavy = query(rows=2_000_000, oldest_at_s=100.0)
    decision = slo(moment(100.1, heavy), heavy)
    assert (decision.open, decision.code) == (True, "fits")
    assert decision.max_rows is not None and 200_000 < decision.max_rows < 480_000
    assert f"{decision.max_rows:,}" in decision.reason


def test_a_late_backlog_is_taken_in_batches_of_about_one_deadline() -> None:
    heavy = query(rows=5_000_000, oldest_at_s=50.0)
    decision = slo(moment(100.0, heavy), heavy)
    assert decision.code == "late"
    assert decision.max_rows is not None and 300_000 < decision.max_rows < 600_000


def test_a_foreign_source_is_never_told_to_take_a_part() -> None:
    heavy = query(rows=2_000_000, oldest_at_s=50.0, divisible=False)
    assert slo(moment(100.0, heavy), heavy).max_rows is None


def test_without_a_deadline_it_runs_in_the_slack_of_the_others() -> None:
    free = query("free", deadline_s=None, oldest_at_s=100.0)
    busy = query("busy", rows=None, running=running(finish_at_s=103.0))
    assert slo(moment(100.0, free), free).code == "slack"
    assert not slo(moment(100.0, free, busy), free).open


def test_without_a_deadline_it_is_still_not_held_for_ever() -> None:
    free = query("free", deadline_s=None, oldest_at_s=100.0)
    busy = query("busy", rows=None, running=running(finish_at_s=1e9))
    assert slo(moment(100.0 + BEST_EFFORT_PATIENCE_S, free, busy), free).code == "patience"


def test_the_patience_of_a_query_without_a_deadline_is_no_matter_of_its_backlog() -> None:
    """Old records replayed would else run beside everything, always."""
    busy = query("busy", rows=None, running=running(finish_at_s=1_002.0))
    for asked_at_s, waits in ((995.0, True), (970.0, False)):
        replay = query("replay", deadline_s=None, oldest_at_s=0.0)._replace(asked_at_s=asked_at_s)
        assert slo(moment(1_000.5, replay, busy), replay).open != waits


def test_overlap_counts_what_runs_and_what_will_soon_have_to() -> None:
    mine = query("mine", rows=30_000, oldest_at_s=100.0, cost=model(fixed_s=1.0))
    runs = query("runs", rows=None, running=running(finish_at_s=1e9))
    due = query("due", oldest_at_s=95.2)
    assert expected_overlap(moment(100.0, mine, runs), mine) == pytest.approx(1.0)
    assert 0.1 < expected_overlap(moment(100.0, mine, due), mine) < 1.0
    assert expected_overlap(moment(100.0, mine, query("calm")), mine) == 0.0


def test_qspark_admits_when_the_expected_latency_reaches_the_deadline() -> None:
    waits = query(rows=1_000, oldest_at_s=100.0)
    held = qspark(moment(101.0, waits), waits)
    assert not held.open
    assert qspark(moment(held.until_s + 1e-6, waits), waits).open


def test_zstream_adds_the_work_already_let_in() -> None:
    waits = query("waits", rows=1_000, oldest_at_s=100.0)
    busy = query("busy", rows=None, running=running(rows=50_000))
    alone, queued = zstream(moment(101.0, waits), waits), zstream(moment(101.0, waits, busy), waits)
    assert queued.until_s < alone.until_s


def test_the_papers_share_the_cores_under_fair_policies() -> None:
    waits = query("waits", rows=20_000, oldest_at_s=100.0)
    busy = query("busy", rows=None, running=running(rows=0))
    shared = zstream(moment(101.0, waits, busy, policy="fair"), waits)
    whole = zstream(moment(101.0, waits, busy, policy="edf"), waits)
    assert shared.predicted_s == pytest.approx(2 * whole.predicted_s)


def test_observe_never_holds() -> None:
    waits = query(rows=10**9, oldest_at_s=0.0)
    decision = observe(moment(100.0, waits), waits)
    assert decision.open and decision.max_rows is None


def test_an_unknown_rule_is_refused_with_the_choices() -> None:
    with pytest.raises(BadParameter, match=r"admission='soon'.*slo, latest, qspark, zstream"):
        find_rule("soon")
