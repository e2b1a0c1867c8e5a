"""Who waits for whom on few cores. Batches of the model take 0.2 s and 10 µs a row; a deadline is 5 s."""

from __future__ import annotations

import math

import pytest

from headgate.core.admission import latest, slo
from headgate.core.admission.timing import latest_start
from headgate.core.admission.turns import room_at
from headgate.core.snapshot import QueryView
from tests.making import model, moment, query, running

HEAVY = model(fixed_s=1.5)


def at_work(
    name: str = "runs", *, deadline_s: float = 5.0, finish_at_s: float = 102.0, stuck: bool = False
) -> QueryView:
    """Its batch ends just in time."""
    batch = running(finish_at_s=finish_at_s, due_at_s=finish_at_s + 0.5, stuck=stuck)
    return query(name, deadline_s=deadline_s, rows=None, running=batch, cost=HEAVY)


def test_a_batch_that_is_due_waits_for_one_of_its_size() -> None:
    #  100 ..... 102 runs ends ... 103 due: side by side both would be late
    due = query("due", oldest_at_s=98.0, cost=HEAVY)
    now = moment(101.0, due, at_work())
    assert latest_start(due, 101.0, 0.0) < 101.0
    held = slo(now, due)
    assert (held.open, held.code) == (False, "turn")
    assert "waits for runs to finish" in held.reason
    assert held.until_s == pytest.approx(102.25)  # an end may come later than expected
    assert latest(now, due).open, "who always waits for the last moment cannot wait then"


def test_nobody_waits_for_a_batch_that_is_stuck_nor_counts_it_as_company() -> None:
    due, young = query("due", oldest_at_s=98.0, cost=HEAVY), query("young", oldest_at_s=100.9, cost=HEAVY)
    hangs = at_work(stuck=True)
    assert slo(moment(101.0, due, hangs), due).open
    alone, beside = slo(moment(101.0, young), young), slo(moment(101.0, young, hangs), young)
    assert (beside.latest_start_s, beside.predicted_s) == (alone.latest_start_s, alone.predicted_s)


def test_a_much_tighter_promise_does_not_wait() -> None:
    tight = query("tight", deadline_s=2.0, oldest_at_s=99.6, cost=HEAVY)
    assert slo(moment(101.0, tight, at_work(deadline_s=5.0)), tight).open
    assert not slo(moment(101.0, tight, at_work(deadline_s=3.5)), tight).open


def test_a_short_batch_that_cannot_wait_goes_beside_a_very_long_one() -> None:
    short = query("short", oldest_at_s=96.2)
    assert slo(moment(101.0, short, at_work(finish_at_s=104.0)), short).open
    assert not slo(moment(101.0, short, at_work(finish_at_s=101.5)), short).open


def test_batches_that_fill_each_others_gaps_need_not_wait() -> None:
    for stretch, beside in ((0.4, True), (0.9, False)):
        due = query("due", oldest_at_s=98.0, cost=model(fixed_s=1.5, stretch=stretch))
        runs = at_work()._replace(cost=model(fixed_s=1.5, stretch=stretch))
        assert slo(moment(101.0, due, runs), due).open == beside


def test_company_that_nobody_has_seen_for_long_is_tried() -> None:
    lonely = model(fixed_s=1.5, company=False)
    due = query("due", oldest_at_s=98.0, cost=lonely)
    assert slo(moment(101.0, due, at_work()._replace(cost=lonely)), due).open
    assert not slo(moment(101.0, due, at_work()), due).open, "the other has, and knows better"


def test_the_earlier_deadline_goes_first_whatever_the_batches_take() -> None:
    older = query("older", oldest_at_s=97.4)
    heavier = query("heavier", oldest_at_s=97.5, cost=HEAVY)
    now = moment(101.0, older, heavier)
    held = slo(now, heavier)
    assert (held.open, held.code, held.first) == (False, "turn", "older")
    assert slo(now, older).open


def test_nobody_lets_one_go_first_that_gathers_or_does_not_ask() -> None:
    due = query("due", oldest_at_s=97.5, cost=HEAVY)
    for older in (query("older", oldest_at_s=97.4, asking=False), query("older", oldest_at_s=97.4, rows=None)):
        assert slo(moment(101.0, due, older), due).open
    young = query("young", deadline_s=1.0, oldest_at_s=100.99)
    assert slo(moment(101.0, due, young), due).open


def test_what_is_late_already_lets_those_that_can_be_in_time_go_first() -> None:
    """Else a query that comes back with a backlog would be first until all are as late as it is."""
    late = query("late", oldest_at_s=50.0, rows=2_000_000)
    due, early = query("due", oldest_at_s=97.4, cost=HEAVY), query("early", oldest_at_s=98.5)
    now = moment(101.0, late, due)
    assert slo(now, late).first == "due"
    assert slo(now, due).open
    assert slo(moment(101.0, late, early), late).open, "that one can still wait"


def test_a_relaxed_query_that_is_due_does_not_wait_for_early_tight_ones() -> None:
    """There is always one of them; they start beside its batch when they have to."""
    due = query("due", deadline_s=20.0, oldest_at_s=85.0, cost=model(fixed_s=4.0))
    tight = query("tight", deadline_s=2.0, oldest_at_s=99.9)
    assert slo(moment(101.0, due, tight), due).open
    alike = query("alike", deadline_s=12.0, oldest_at_s=92.9)
    assert slo(moment(101.0, due, alike), due).first == "alike"


def test_nobody_lets_one_go_first_that_has_to_wait_itself() -> None:
    short = query("short", oldest_at_s=98.5)
    relaxed = query("relaxed", deadline_s=20.0, oldest_at_s=83.0, cost=HEAVY)
    runs = at_work(deadline_s=20.0, finish_at_s=108.0)
    now = moment(101.0, short, relaxed, runs)
    assert "waits for runs" in slo(now, relaxed).reason
    assert slo(now, short).open


def test_nobody_lets_others_go_first_for_ever() -> None:
    older, heavier = query("older", oldest_at_s=97.4), query("heavier", oldest_at_s=97.5, cost=HEAVY)
    patient, impatient = (heavier._replace(let_go_s=let_go_s) for let_go_s in (0.05, 0.1))
    assert slo(moment(101.0, older, patient), patient).first == "older"
    assert slo(moment(101.0, older, impatient), impatient).open


def test_beside_a_batch_that_is_late_anyway_one_that_would_be_late_starts() -> None:
    due = query("due", oldest_at_s=98.5, cost=model(fixed_s=1.0))
    for due_at_s, beside in ((100.5, True), (108.5, False)):
        batch = running(finish_at_s=108.0, due_at_s=due_at_s)
        runs = query("runs", rows=None, running=batch, cost=HEAVY)
        assert slo(moment(101.2, due, runs), due).open == beside


def test_a_tight_query_starts_beside_two_if_it_must() -> None:
    tight = query("tight", deadline_s=2.0, oldest_at_s=99.6, cost=HEAVY)
    late = query("late", deadline_s=20.0, rows=None, running=running(finish_at_s=108.0, due_at_s=99.0))
    free = query("free", deadline_s=None, rows=None, running=running(finish_at_s=106.0, due_at_s=math.inf))
    assert slo(moment(101.0, tight, late, free), tight).open


def test_by_backlog_the_larger_one_goes_first_until_the_other_is_due() -> None:
    large = query("large", deadline_s=50.0, rows=100_000, oldest_at_s=90.0)
    for oldest_at_s, first in ((89.0, "large"), (51.2, None)):
        small = query("small", deadline_s=50.0, oldest_at_s=oldest_at_s)
        assert slo(moment(101.0, small, large, policy="lbf"), small).first == first


def test_on_many_cores_the_first_end_makes_room() -> None:
    ends_s = (103.0, 101.8, 107.0)
    busy = [at_work(str(end_s), finish_at_s=end_s) for end_s in ends_s]
    for cores, end_s in ((2, 107.0), (8, 103.0), (12, 101.8)):
        assert room_at(moment(101.0, *busy, cores=cores), busy) == pytest.approx(101.0 + 1.25 * (end_s - 101.0))
