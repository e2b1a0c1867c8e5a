"""How often queries run: the closed form must be the optimum that it claims to be."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.admission.pacing import (
    EARLY_END_BY,
    EARLY_LEAST_AGE,
    EARLY_MAX_AGE,
    LEAST_FIXED_S,
    LEAST_FIXED_SHARE,
    MOST_FIXED_SHARE,
    fixed_s,
    longest_s,
    pace_s,
)
from headgate.core.cost import CostModel
from headgate.core.snapshot import QueryView, Snapshot
from tests.making import model, moment, query

fixed_costs = st.floats(0.02, 2.0)
deadlines = st.floats(0.5, 60.0)


def fleet(needs: list[tuple[float, float]], rate_rows_s: float = 0.0) -> Snapshot:
    """Queries with (fixed cost, deadline); about half of a usual batch of them is fixed."""
    return moment(
        101.0,
        *(
            query(f"q{index}", cost=model(fixed, fixed / 10_000), deadline_s=deadline_s, rate_rows_s=rate_rows_s)
            for index, (fixed, deadline_s) in enumerate(needs)
        ),
    )


def paces(snapshot: Snapshot) -> list[float]:
    return [pace_s(snapshot, each) for each in snapshot.queries]


def longest(snapshot: Snapshot) -> list[float]:
    return [longest_s(each, snapshot.now_s) for each in snapshot.queries]


def fixed_share(snapshot: Snapshot, every_s: list[float]) -> float:
    return sum(fixed_s(each) / pace for each, pace in zip(snapshot.queries, every_s, strict=True))


@given(st.lists(st.tuples(fixed_costs, deadlines), min_size=1, max_size=6))
def test_the_share_is_spent_and_no_more_unless_deadlines_ask_for_it(needs: list[tuple[float, float]]) -> None:
    snapshot = fleet(needs)
    least = fixed_share(snapshot, longest(snapshot))
    assert fixed_share(snapshot, paces(snapshot)) == pytest.approx(max(MOST_FIXED_SHARE, least))


@given(st.lists(fixed_costs, min_size=2, max_size=6), st.data())
def test_no_other_division_has_a_smaller_product_of_waits(fixed: list[float], data: st.DataObject) -> None:
    snapshot = fleet([(each, 300.0) for each in fixed])  # which bear every pace
    best = paces(snapshot)
    other = [pace * data.draw(st.floats(0.3, 3.0)) for pace in best]
    scale = fixed_share(snapshot, other) / fixed_share(snapshot, best)  # the same share of the time
    other = [pace * scale for pace in other]
    assert math.prod(best) <= math.prod(other) * (1 + 1e-9)


@given(st.lists(st.tuples(fixed_costs, deadlines), min_size=2, max_size=6))
def test_who_is_not_held_back_by_a_deadline_gets_the_same_part(needs: list[tuple[float, float]]) -> None:
    snapshot = fleet(needs)
    parts = {
        fixed_s(each) / pace: pace < 0.999 * limit
        for each, pace, limit in zip(snapshot.queries, paces(snapshot), longest(snapshot), strict=True)
    }
    free = [part for part, is_free in parts.items() if is_free]
    assert all(part == pytest.approx(free[0]) for part in free)
    assert all(part >= free[0] * (1 - 1e-9) for part in parts for _ in free[:1]), "a deadline only ever asks for more"


@given(fixed_costs, deadlines, st.floats(0, 1e5), st.floats(0, 50_000), st.floats(0.0, 3.0))
def test_the_longest_wait_still_ends_in_good_time(
    fixed: float, deadline_s: float, rate_rows_s: float, rows: float, age_s: float
) -> None:
    each = query(cost=model(fixed), deadline_s=deadline_s, rate_rows_s=rate_rows_s, rows=rows, oldest_at_s=100.0)
    start_s = longest_s(each, 100.0 + age_s)
    assert EARLY_LEAST_AGE * deadline_s <= start_s <= EARLY_MAX_AGE * deadline_s
    taken = each.cost.expected_s(rows + rate_rows_s * (start_s - age_s), each.cost.usual_overlap)
    if EARLY_LEAST_AGE * deadline_s < start_s < EARLY_MAX_AGE * deadline_s and start_s > age_s:
        assert start_s + taken == pytest.approx(EARLY_END_BY * deadline_s)


@given(st.lists(st.tuples(fixed_costs, deadlines), min_size=1, max_size=6), st.floats(0, 1e6))
def test_never_longer_than_the_deadline_bears(needs: list[tuple[float, float]], rate_rows_s: float) -> None:
    snapshot = fleet(needs, rate_rows_s)
    for each, pace in zip(snapshot.queries, paces(snapshot), strict=True):
        assert 0 < pace <= EARLY_MAX_AGE * (each.promise.deadline_s or math.inf)


@given(st.floats(0, 1e5), st.floats(1.0, 10.0))
def test_more_load_means_fewer_batches(rate_rows_s: float, more: float) -> None:
    needs = [(0.1, 5.0), (0.3, 20.0)]
    calm, busy = fleet(needs, rate_rows_s), fleet(needs, rate_rows_s * more)
    for sooner, later, limit in zip(paces(calm), paces(busy), longest(busy), strict=True):
        assert later >= sooner * (1 - 1e-9) or later == limit, "fewer, as far as deadlines bear it"


def test_worked_by_hand() -> None:
    #  four times the fixed cost: a quarter as often, whatever the deadlines;  .08 * 2 / .4 and .32 * 2 / .4
    assert paces(fleet([(0.08, 9.0), (0.32, 30.0)])) == pytest.approx([0.4, 1.6], rel=0.03)
    #  the second bears no more than .65 * 3 s less the .72 s of a batch in usual company: it takes .26, .14 is left
    assert paces(fleet([(0.08, 9.0), (0.32, 3.0)])) == pytest.approx([0.08 / 0.14, 1.23], rel=0.03)


def test_overload_leaves_the_least_share() -> None:
    snapshot = fleet([(0.09, 900.0)], rate_rows_s=1e6)
    assert paces(snapshot) == pytest.approx([0.09 / LEAST_FIXED_SHARE], rel=0.03)


def test_a_doubtful_fixed_cost_changes_the_pace_by_its_root() -> None:
    sure, doubtful = model(0.1, 1e-5), model(0.1, 1e-5)
    doubtful = replace(doubtful, fixed_s=4 * sure.fixed_s)
    each, other = query(cost=sure, deadline_s=60.0), query(cost=doubtful, deadline_s=60.0)
    assert pace_s(moment(101.0, other), other) == pytest.approx(2 * pace_s(moment(101.0, each), each))


def unknown(deadline_s: float | None) -> QueryView:
    return query("other", cost=CostModel(), deadline_s=deadline_s)


def test_who_counts() -> None:
    """Idle queries, those without a deadline and those that are still unknown take nothing away."""
    alone = pace_s(moment(101.0, query()), query())
    for other in (query("other", rows=None), query("other", deadline_s=None), unknown(5.0), unknown(None)):
        assert pace_s(moment(101.0, query(), other), query()) == alone
    assert pace_s(moment(101.0, query(), query("other")), query()) > alone


def test_a_batch_is_never_taken_for_free() -> None:
    snapshot = fleet([(0.0, 4.0)])
    assert pace_s(snapshot, snapshot.queries[0]) >= LEAST_FIXED_S / MOST_FIXED_SHARE
