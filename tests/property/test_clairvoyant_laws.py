"""Whatever the queries, the clairvoyant schedule can be carried out, and nothing it is compared with beats it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.bench.clairvoyant import Batch, ClairvoyantQuery, bound, fixed_trigger, limit, schedule
from headgate.core.traffic import Burst, Constant, Shape, Traffic, Uniform

SECONDS = 12.0

# A search per example. The same examples every time, because the search is a heuristic: laws with a tolerance may have
# an exception somewhere, and that is no reason for a test to fail on some days.
few = settings(deadline=None, max_examples=5, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

shapes: st.SearchStrategy[Shape] = st.one_of(
    st.builds(Constant, st.just(100.0)),
    st.builds(Uniform, st.just(100.0), st.integers(0, 9)),
    st.builds(Burst, st.just(75.0), st.just(3.0), st.just(2.0), st.just(12.0)),
)


@st.composite
def query_sets(draw: st.DrawFn, low: float = 0.2, high: float = 1.2) -> list[ClairvoyantQuery]:
    """One to three queries whose rows alone load the machine by `low` to `high`."""
    count, load = draw(st.integers(1, 3)), draw(st.floats(low, high))
    times = st.tuples(st.floats(0.5, 4.0), st.floats(0.02, 0.3))
    drawn = draw(st.lists(st.tuples(times, shapes), min_size=count, max_size=count))
    return [
        ClairvoyantQuery(f"q{index}", deadline_s, fixed_s, load / count / 100.0, Traffic(shape))
        for index, ((deadline_s, fixed_s), shape) in enumerate(drawn)
    ]


def worst(shares: dict[str, float]) -> float:
    return max(shares.values())


@few
@given(query_sets())
def test_no_record_is_lost_or_done_twice_or_taken_before_it_comes(queries: list[ClairvoyantQuery]) -> None:
    plan = schedule(queries, SECONDS)
    for query in queries:
        batches = plan[query.name]
        assert [batch.first for batch in batches] == [0, *(batch.last for batch in batches)][: len(batches)]
        assert all(batch.first < batch.last for batch in batches)
        assert all(query.traffic.stamp_s(batch.last - 1) <= batch.begun_s + 1e-6 for batch in batches)
        assert all(before.finished_s <= after.begun_s for before, after in pairwise(batches))


@few
@given(query_sets())
def test_one_machine_can_carry_the_schedule_out(queries: list[ClairvoyantQuery]) -> None:
    """Work that begins and ends within an interval never exceeds it: on one machine that is enough for a schedule."""
    plan = schedule(queries, SECONDS)
    jobs = np.array([job for query in queries for job in jobs_of(query, plan[query.name])]).reshape(-1, 3)
    begun_s, finished_s, work_s = jobs.T
    for from_s in begun_s:
        inside = begun_s >= from_s
        order = np.argsort(finished_s[inside])
        assert (np.cumsum(work_s[inside][order]) <= finished_s[inside][order] - from_s + 1e-6).all()


def jobs_of(query: ClairvoyantQuery, batches: list[Batch]) -> list[tuple[float, float, float]]:
    return [(at.begun_s, at.finished_s, query.fixed_s + query.per_row_s * (at.last - at.first)) for at in batches]


@few
@given(query_sets())
def test_record_by_record_no_more_are_late_than_the_limit_says(queries: list[ClairvoyantQuery]) -> None:
    plan, shares = schedule(queries, SECONDS), limit(queries, SECONDS)
    for query in queries:
        stamps_s = query.traffic.stamps_s(0, query.traffic.count_before(SECONDS - query.deadline_s - 0.05))
        finished_s = np.full(max(len(stamps_s), *(batch.last for batch in plan[query.name]), 0), np.inf)
        for batch in plan[query.name]:
            finished_s[batch.first : batch.last] = batch.finished_s
        late = (finished_s[: len(stamps_s)] - stamps_s > query.deadline_s + 1e-6).sum()
        assert late <= shares[query.name] * query.traffic.count_before(SECONDS) + 1e-6


@few
@given(query_sets(), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
def test_no_fixed_trigger_is_better_and_nothing_is_below_the_bound(
    queries: list[ClairvoyantQuery], share: float
) -> None:
    found = worst(limit(queries, SECONDS))
    assert bound(queries, SECONDS) <= found <= worst(fixed_trigger(queries, SECONDS, share))


@few
@given(query_sets(), st.floats(0.5, 1.0))
def test_lower_costs_are_no_harm(queries: list[ClairvoyantQuery], factor: float) -> None:
    cheaper = [replace(query, fixed_s=query.fixed_s * factor, per_row_s=query.per_row_s * factor) for query in queries]
    assert worst(limit(cheaper, SECONDS)) <= worst(limit(queries, SECONDS)) + 0.02
    assert bound(cheaper, SECONDS) <= bound(queries, SECONDS) + 1e-9


@few
@given(query_sets(high=0.8), st.floats(1.0, 2.0))
def test_promises_kept_are_kept_with_longer_deadlines(queries: list[ClairvoyantQuery], factor: float) -> None:
    """Only those: in overload a longer deadline also changes which records count before the end."""
    longer = [replace(query, deadline_s=query.deadline_s * factor) for query in queries]
    assert worst(limit(longer, SECONDS)) <= 0.01 or worst(limit(queries, SECONDS)) > 0.01


@few
@given(st.integers(1, 3), st.floats(0.1, 0.95), st.floats(1.0, 6.0))
def test_without_fixed_costs_and_overload_nothing_is_late(count: int, load: float, deadline_s: float) -> None:
    traffic = Traffic(Constant(100.0))
    queries = [ClairvoyantQuery(f"q{i}", deadline_s, 0.0, load / count / 100.0, traffic) for i in range(count)]
    assert worst(limit(queries, SECONDS)) == 0.0


@few
@given(query_sets(low=1.5, high=2.5))
def test_in_lasting_overload_somebody_is_late(queries: list[ClairvoyantQuery]) -> None:
    assert worst(limit(queries, 20.0)) > 0.0
    assert bound(queries, 20.0) > 0.0
