"""Whole runs on simulated time: promises are kept where they can be, and overload ends when its cause does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.bench.machine import Stretched
from headgate.bench.simulator import SimulatedQuery, simulate


def steady(
    deadline_s: float | None, fixed_s: float, rate: float, per_row_s: float = 1e-4, rule: str = "slo"
) -> SimulatedQuery:
    return SimulatedQuery(deadline_s, fixed_s, per_row_s, lambda _: rate, rule)


@pytest.mark.parametrize("stretch", [0.0, 0.7])
@pytest.mark.parametrize("rule", ["slo", "latest"])
@pytest.mark.parametrize(
    "queries",
    [
        pytest.param([(5.0, 0.7, 200.0)] * 3, id="three equal"),
        pytest.param([(10.0, 0.48, 20.0)] * 10, id="ten equal"),
        pytest.param([(3.0, 0.15, 10.0)] * 10, id="ten tight"),
        pytest.param([(2.0, 0.4, 100.0)] + [(10.0, 1.2, 100.0)] * 3, id="one tight, three relaxed"),
        pytest.param([(1.5, 0.2, 500.0), (6.0, 0.5, 1000.0), (20.0, 1.0, 1000.0)], id="mixed"),
    ],
)
def test_promises_that_can_be_kept_are_kept(
    queries: list[tuple[float, float, float]], rule: str, stretch: float
) -> None:
    specs = [steady(deadline_s, fixed_s, rate, rule=rule) for deadline_s, fixed_s, rate in queries]
    # A tight query beside relaxed ones: in single minutes 0 to 2.5 % late (slo), 0 to 5 % (latest, which keeps no
    # reserve); over eight seeds 1.2 and 2.3 %. So three minutes are judged together, and `latest` has more room.
    bound = 0.02 if rule == "slo" else 0.03
    machine = Stretched(stretch)
    runs = [simulate(specs, 120.0, machine, warm_up_s=60.0, tick_s=0.02, seed=seed) for seed in (1, 2, 3)]
    for results in zip(*runs, strict=True):
        assert all(result.rows > 0 for result in results)
        assert sum(result.late_rows for result in results) <= bound * sum(result.rows for result in results)


@pytest.mark.parametrize("rule", ["slo", "latest"])
@pytest.mark.parametrize("queries", [[(5.0, 0.7, 200.0)] * 3, [(10.0, 0.48, 20.0)] * 10, [(3.0, 0.15, 10.0)] * 10])
def test_equals_keep_their_promises_even_if_batches_fully_add_up(
    queries: list[tuple[float, float, float]], rule: str
) -> None:
    """Having once run together they must not stay so: each would be due at once because of the others."""
    specs = [steady(deadline_s, fixed_s, rate, rule=rule) for deadline_s, fixed_s, rate in queries]
    machine = Stretched(1.0)
    runs = [simulate(specs, 120.0, machine, warm_up_s=60.0, tick_s=0.02, seed=seed) for seed in (1, 2, 3)]
    for results in zip(*runs, strict=True):
        assert sum(result.late_rows for result in results) <= 0.02 * sum(result.rows for result in results)


@pytest.mark.parametrize("stretch", [0.0, 0.1])
def test_batches_that_leave_cores_idle_run_side_by_side(stretch: float) -> None:
    """In turns these would need almost twice the time that there is."""
    specs = [steady(5.0, 0.5, 4_000.0, 1e-4)] * 3
    for result in simulate(specs, 150.0, Stretched(stretch), warm_up_s=90.0, tick_s=0.02):
        assert result.late_share <= 0.02


def test_near_the_limit_batches_of_a_size_take_turns() -> None:
    """Side by side each would take three times as long, and all would be due at once for ever."""
    specs = [steady(8.0, fixed_s, 1_800.0, 1e-4) for fixed_s in (1.0, 0.5, 0.5)]
    for result in simulate(specs, 180.0, Stretched(1.2), warm_up_s=90.0, tick_s=0.02):
        assert result.late_share <= 0.02


def test_stealing_slack_lowers_latency_and_waiting_lowers_the_number_of_batches() -> None:
    (early,) = simulate([steady(10.0, 0.4, 500.0, rule="slo")], 120.0, warm_up_s=30.0)
    (latest,) = simulate([steady(10.0, 0.4, 500.0, rule="latest")], 120.0, warm_up_s=30.0)
    assert early.max_latency_s < 0.5 * latest.max_latency_s
    assert latest.batches < 0.5 * early.batches


@pytest.mark.parametrize(
    "deadline_s,fixed_s,per_row_s,rate",
    [(1.2, 1.0, 1e-4, 6_000.0), (1.0, 0.4, 2e-4, 4_200.0), (0.3, 0.4, 1e-6, 1_000.0)],
)
def test_a_load_that_plain_spark_could_bear_never_grows_a_backlog(
    deadline_s: float, fixed_s: float, per_row_s: float, rate: float
) -> None:
    """Even where the deadline itself cannot be kept, taking parts must not lower the throughput."""
    (result,) = simulate([steady(deadline_s, fixed_s, rate, per_row_s)], 250.0, warm_up_s=170.0, tick_s=0.02)
    equilibrium_s = fixed_s / (1.0 - rate * per_row_s)
    assert result.max_latency_s < 6.0 * equilibrium_s + deadline_s


def test_a_stall_is_worked_off() -> None:
    def burst(now_s: float) -> float:
        return 30_000.0 if 60.0 <= now_s < 65.0 else 500.0

    queries = [SimulatedQuery(4.0, 0.4, 1e-4, burst), steady(8.0, 0.4, 200.0)]
    hit, other = simulate(queries, 200.0, warm_up_s=120.0, tick_s=0.02)
    assert hit.late_share <= 0.02 and other.late_share <= 0.02
    assert hit.left_rows < 5_000


@pytest.mark.parametrize("stretch", [0.7, 1.2])
def test_a_backlog_of_one_query_makes_no_other_late(stretch: float) -> None:
    """It comes back with five minutes of work; the others' batches go first as long as they can be in time."""

    def after_an_outage(now_s: float) -> float:
        return 300_000.0 if 60.0 <= now_s < 70.0 else 500.0

    queries = [SimulatedQuery(5.0, 0.4, 1e-4, after_an_outage), steady(5.0, 0.4, 500.0), steady(8.0, 0.4, 500.0)]
    hit, *others = simulate(queries, 200.0, Stretched(stretch), warm_up_s=60.0, tick_s=0.02)
    for other in others:
        assert other.late_share <= 0.02 and other.rows > 0.98 * 140.0 * 500.0
    assert hit.rows > 0.4 * 140.0 / 1e-4, "and what is left of the machine works the backlog off"


def test_queries_without_a_deadline_take_turns_with_a_backlog() -> None:
    """Whose batch has just ended asks first: one of the three never ran."""

    def backlog(now_s: float) -> float:
        return 50_000.0 if 60.0 <= now_s < 70.0 else 100.0

    free = [SimulatedQuery(None, 0.4, 1e-4, backlog) for _ in range(3)]
    promised, *others = simulate([steady(4.0, 0.3, 300.0), *free], 140.0, warm_up_s=70.0, tick_s=0.02)
    assert promised.late_share <= 0.02
    turns = [other.batches for other in others]  # who was slower to learn that rows are cheap takes fewer in each
    assert min(turns) >= max(turns) - 1 >= 2


def test_overload_starves_nobody() -> None:
    """Five minutes of work beside two that need most of the machine: none is kept, and all go on."""

    def after_an_outage(now_s: float) -> float:
        return 300_000.0 if 60.0 <= now_s < 70.0 else 500.0

    queries = [SimulatedQuery(5.0, 0.4, 1e-4, after_an_outage), steady(5.0, 1.0, 500.0), steady(8.0, 1.0, 500.0)]
    hit, *others = simulate(queries, 200.0, Stretched(1.2), warm_up_s=60.0, tick_s=0.02)
    assert hit.rows > 0.2 * 140.0 / 1e-4
    for other in others:
        assert other.rows > 0.9 * 140.0 * 500.0 and other.max_latency_s < 30.0


def test_a_query_without_a_deadline_lives_from_the_slack_but_does_live() -> None:
    promised, free = simulate([steady(2.0, 0.3, 300.0), steady(None, 0.8, 300.0)], 120.0, warm_up_s=40.0)
    assert promised.late_share <= 0.02
    assert free.batches >= 3
    assert free.max_latency_s < 60.0


@given(
    st.lists(st.tuples(st.floats(1.0, 30.0), st.floats(0.05, 0.3), st.floats(10.0, 800.0)), min_size=1, max_size=5),
    st.sampled_from(["slo", "latest", "zstream", "qspark", "observe"]),
    st.integers(0, 5),
)
@settings(max_examples=15, deadline=None)
def test_every_row_is_in_exactly_one_batch(queries: list[tuple[float, float, float]], rule: str, seed: int) -> None:
    specs = [steady(deadline_s, fixed_s, rate, rule=rule) for deadline_s, fixed_s, rate in queries]
    for (_, _, rate), result in zip(queries, simulate(specs, 20.0, seed=seed), strict=True):
        # What is still running at the end is in neither count, but nothing is in both.
        assert result.rows + result.left_rows <= rate * 20.0 + 1
        assert result.rows > 0
