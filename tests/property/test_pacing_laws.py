"""How often queries run: the closed form must be the optimum that it claims to be."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headgate.core.admission.pacing import EARLY_MAX_AGE, LEAST_FIXED_S, LEAST_FIXED_SHARE, MOST_FIXED_SHARE, pace_s
from headgate.core.cost import CostModel
from headgate.core.snapshot import QueryView, Snapshot
from tests.making import model, moment, query

fixed_costs = st.floats(0.02, 2.0)
deadlines = st.floats(0.5, 60.0)


def fleet(needs: list[tuple[float, float]], rate_rows_s: float = 0.0) -> Snapshot:
    return moment(
        101.0,
        *(
            query(f"q{index}", cost=model(fixed_s), deadline_s=deadline_s, rate_rows_s=rate_rows_s)
            for index, (fixed_s, deadline_s) in enumerate(needs)
        ),
    )


def paces(snapshot: Snapshot) -> list[float]:
    return [pace_s(snapshot, each) for each in snapshot.queries]


def uncapped(snapshot: Snapshot) -> bool:
    limits = [EARLY_MAX_AGE * (each.promise.deadline_s or math.inf) for each in snapshot.queries]
    return all(pace < 0.999 * limit for pace, limit in zip(paces(snapshot), limits, strict=True))


def fixed_share(snapshot: Snapshot, every_s: list[float]) -> float:
    return sum(each.cost.fixed_s / pace for each, pace in zip(snapshot.queries, every_s, strict=True))


def relative_waits(snapshot: Snapshot, every_s: list[float]) -> float:
    return sum(pace / (each.promise.deadline_s or 1) for each, pace in zip(snapshot.queries, every_s, strict=True))


@given(st.lists(st.tuples(fixed_costs, deadlines), min_size=1, max_size=6))
def test_the_share_is_spent_and_no_more(needs: list[tuple[float, float]]) -> None:
    snapshot = fleet(needs)
    assume(uncapped(snapshot))
    assert fixed_share(snapshot, paces(snapshot)) == pytest.approx(MOST_FIXED_SHARE)


@given(st.lists(st.tuples(fixed_costs, deadlines), min_size=2, max_size=6), st.data())
def test_no_other_division_waits_less(needs: list[tuple[float, float]], data: st.DataObject) -> None:
    snapshot = fleet(needs)
    assume(uncapped(snapshot))
    best = paces(snapshot)
    other = [pace * data.draw(st.floats(0.3, 3.0)) for pace in best]
    scale = fixed_share(snapshot, other) / fixed_share(snapshot, best)  # the same share of the time
    other = [pace * scale for pace in other]
    assert relative_waits(snapshot, best) <= relative_waits(snapshot, other) * (1 + 1e-9)


@given(st.lists(st.tuples(fixed_costs, deadlines), min_size=1, max_size=6), st.floats(0, 1e6))
def test_never_longer_than_the_deadline_bears(needs: list[tuple[float, float]], rate_rows_s: float) -> None:
    snapshot = fleet(needs, rate_rows_s)
    for each, pace in zip(snapshot.queries, paces(snapshot), strict=True):
        assert 0 < pace <= EARLY_MAX_AGE * (each.promise.deadline_s or math.inf)


@given(st.floats(0, 1e5), st.floats(1.0, 10.0))
def test_more_load_means_fewer_batches(rate_rows_s: float, more: float) -> None:
    needs = [(0.1, 5.0), (0.3, 20.0)]
    calm, busy = paces(fleet(needs, rate_rows_s)), paces(fleet(needs, rate_rows_s * more))
    assert all(later >= sooner for sooner, later in zip(calm, busy, strict=True))


def test_worked_by_hand() -> None:
    #  the same deadline, four times the fixed cost: half as often;  sqrt(.09 * 9) * (sqrt(.09/9) + sqrt(.36/9)) / .5
    snapshot = fleet([(0.09, 9.0), (0.36, 9.0)])
    assert paces(snapshot) == pytest.approx([0.9 * 0.3 / 0.5, 1.8 * 0.3 / 0.5], rel=0.03)


def test_overload_leaves_the_least_share() -> None:
    snapshot = fleet([(0.09, 900.0)], rate_rows_s=1e6)
    assert paces(snapshot) == pytest.approx([0.09 / LEAST_FIXED_SHARE], rel=0.03)


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
