"""The clairvoyant scheduler on cases small enough to be reckoned by hand."""

from __future__ import annotations

import math

import pytest

from headgate.bench.clairvoyant import BUCKET_S, ClairvoyantQuery, bound, capacity, fixed_trigger, limit, schedule
from headgate.core.traffic import Constant, Recorded, Traffic, Uniform
from headgate.errors import BadParameter


def steady(
    name: str = "q", deadline_s: float = 2.0, fixed_s: float = 0.2, per_row_s: float = 0.0, rate: float = 100.0
) -> ClairvoyantQuery:
    return ClairvoyantQuery(name, deadline_s, fixed_s, per_row_s, Traffic(Constant(rate)))


def test_what_can_be_in_time_is() -> None:
    assert limit([steady()], 30.0) == {"q": 0.0}


def test_every_query_has_its_share_by_name() -> None:
    assert limit([steady("b"), steady("a", deadline_s=3.0)], 20.0) == {"b": 0.0, "a": 0.0}


def test_a_deadline_shorter_than_any_batch_cannot_be_kept() -> None:
    assert limit([steady(deadline_s=0.5, fixed_s=0.6)], 20.0) == {"q": 1.0}


def test_a_trigger_as_long_as_the_deadline_is_late_by_the_time_a_batch_takes() -> None:
    """Of each span of 2 s the first 0.5 s are too old when the batch is done, and a bucket is late as a whole."""
    share = fixed_trigger([steady(deadline_s=2.0, fixed_s=0.5)], 42.0, share=1.0)["q"]
    assert 0.25 - 1e-9 <= share <= 0.25 + BUCKET_S / 2.0 + 1e-9


def test_stock_batches_wait_for_those_before_them() -> None:
    """Both are triggered every 2 s; the second is done 1.5 s after its trigger although its own batch takes 0.5 s."""
    first, second = fixed_trigger([steady("a", fixed_s=1.0), steady("b", fixed_s=0.5)], 42.0, share=1.0).values()
    assert first == pytest.approx(0.5, abs=0.03)
    assert second == pytest.approx(0.75, abs=0.03)


def test_a_trigger_that_batches_overrun_starts_again_at_once() -> None:
    """Batches of 1.5 s back to back: a record waits at most 1.5 s for one of them to begin."""
    assert fixed_trigger([steady(deadline_s=3.1, fixed_s=1.5)], 40.0, share=0.25)["q"] == 0.0


def test_an_urgent_batch_sets_a_long_one_aside() -> None:
    """The long batch takes 4 s and more and the urgent query has 1 s: without that one of them must be late."""
    long = steady("long", deadline_s=20.0, fixed_s=4.0)
    urgent = steady("urgent", deadline_s=1.0, fixed_s=0.2)
    assert limit([long, urgent], 60.0) == {"long": 0.0, "urgent": 0.0}
    assert max(fixed_trigger([long, urgent], 60.0, share=0.5).values()) > 0.3


def test_if_not_all_batches_find_room_each_in_time_saves_as_many_records_as_it_can() -> None:
    """Two queries whose batches take the machine in turns: 1.2 s of fixed costs for what came in 1 s."""
    shares = limit([steady("a", 1.6, 0.6), steady("b", 1.6, 0.6)], 60.0).values()
    assert 0.0 < max(shares) < 0.3


def test_records_before_the_skip_and_with_later_deadlines_do_not_count() -> None:
    rush = Traffic(Recorded((50_000,) * 5 + (10,) * 35))
    query = ClairvoyantQuery("q", 2.0, 0.1, 1e-4, rush)
    assert limit([query], 40.0)["q"] > 0.3
    assert limit([query], 40.0, skip_s=30.0) == {"q": 0.0}
    assert limit([query], 1.9) == {"q": 0.0}


def test_the_schedule_is_the_one_that_the_limit_tells_of() -> None:
    batches = schedule([steady(rate=7.0)], 20.0)["q"]
    assert batches[0].first == 0
    assert batches[-1].last > 0.8 * 7 * 20
    assert all(batch.finished_s - batch.begun_s >= 0.2 - 1e-9 for batch in batches)


def test_seconds_without_records_are_fine() -> None:
    silent = Traffic(Recorded((0, 0, 0, 5, 0, 0)))
    assert limit([ClairvoyantQuery("q", 1.0, 0.3, 1e-3, silent)], 30.0) == {"q": 0.0}


def test_batches_that_cost_nothing_are_never_late() -> None:
    assert limit([steady(fixed_s=0.0)], 10.0) == {"q": 0.0}


def test_the_same_question_has_the_same_answer() -> None:
    queries = [ClairvoyantQuery("q", 1.0, 0.3, 0.7e-2, Traffic(Uniform(100.0, seed=3)))]
    assert limit(queries, 20.0) == limit(queries, 20.0)


def test_capacity_without_fixed_costs_is_the_whole_machine() -> None:
    found = capacity(lambda load: [steady(fixed_s=0.0, per_row_s=load / 100.0)], 40.0, 0.96, 1.08)
    assert 0.97 <= found <= 1.05


def test_capacity_leaves_room_for_fixed_costs() -> None:
    """At least 0.2 s in every 2 s."""
    found = capacity(lambda load: [steady(fixed_s=0.2, per_row_s=load / 100.0)], 40.0, 0.3, 1.5)
    assert 0.6 <= found <= 0.92


def test_capacity_says_when_the_range_is_too_high_or_too_low() -> None:
    assert capacity(lambda load: [steady(per_row_s=load / 100.0)], 30.0, 1.5, 2.0) == 0.0
    assert capacity(lambda load: [steady(per_row_s=load / 100.0)], 30.0, 0.1, 0.2) == 0.2


def test_the_bound_knows_overload_by_rows_and_by_batches() -> None:
    assert bound([steady()], 60.0) == 0.0
    assert 0.3 < bound([steady(fixed_s=0.0, per_row_s=2.0 / 100.0)], 60.0) < 0.5
    assert bound([steady("a", 1.0, 0.6), steady("b", 1.0, 0.6), steady("c", 1.0, 0.6)], 60.0) > 0.1


@pytest.mark.parametrize(
    "wrong,times_s",
    [("deadline_s", (0.0, 0.2, 0.0)), ("fixed_s", (2.0, -1.0, 0.0)), ("per_row_s", (2.0, 0.2, math.nan))],
)
def test_times_that_cannot_be_are_refused(wrong: str, times_s: tuple[float, float, float]) -> None:
    with pytest.raises(BadParameter, match=wrong):
        ClairvoyantQuery("q", *times_s, Traffic(Constant(100.0)))


def test_names_must_differ() -> None:
    with pytest.raises(BadParameter, match="queries"):
        limit([steady(), steady()], 10.0)
    with pytest.raises(BadParameter, match="queries"):
        limit([], 10.0)
