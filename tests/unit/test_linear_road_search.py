"""The search for capacity against machines whose capacity is known."""

from __future__ import annotations

import pytest

from headgate.bench.linear_road.search import ENOUGH_PROBES, HIGHEST, LOWEST, CapacitySearch


def searched(true_capacity: float, start: float) -> CapacitySearch:
    search = CapacitySearch(start)
    while (load := search.next()) is not None:
        assert load not in [probed for probed, _ in search.probes]
        search.tell(load, kept=load <= true_capacity)
    return search


@pytest.mark.parametrize("true_capacity", [0.11, 0.4, 0.77, 1.3])
@pytest.mark.parametrize("start", [0.3, 0.5, 0.9])
def test_it_comes_within_its_precision(true_capacity: float, start: float) -> None:
    found = searched(true_capacity, start)
    assert found.kept <= true_capacity < (found.broken or 0.0)
    if len(found.probes) < ENOUGH_PROBES:
        assert true_capacity / found.precision <= found.capacity <= true_capacity * found.precision
    else:
        assert found.capacity == pytest.approx(true_capacity, rel=found.stride - 1)


def test_one_that_starts_near_its_goal_is_short() -> None:
    assert len(searched(0.5, 0.48).probes) <= 5


def test_who_does_not_keep_what_another_has_kept_is_out_at_once() -> None:
    search = CapacitySearch(0.45, bar=0.45)
    search.tell(0.45, kept=False)
    assert search.next() is None
    assert search.lost and search.capacity == 0.0


def test_a_machine_that_got_slow_meanwhile_does_not_put_one_out() -> None:
    search = CapacitySearch(0.45, bar=0.45)
    search.tell(0.6, kept=False)  # a third more than was asked for
    assert not search.lost
    assert search.next() == 0.45


def test_who_keeps_it_goes_on_upwards() -> None:
    search = CapacitySearch(0.45, stride=1.35, precision=1.35, bar=0.45)
    search.tell(0.45, kept=True)
    assert search.next() == pytest.approx(0.45 * 1.35)
    search.tell(0.45 * 1.35, kept=False)
    assert search.next() is None
    assert not search.lost and search.kept == 0.45


def test_one_probe_that_contradicts_the_others_does_not_decide() -> None:
    search = CapacitySearch(0.4)
    for load, kept in ((0.4, True), (0.45, False), (0.47, True), (0.5, True), (0.53, False)):
        search.tell(load, kept=kept)
    assert (search.kept, search.broken) == (0.5, 0.53)
    assert 0.5 < search.capacity < 0.53


@pytest.mark.parametrize(("vote", "kept", "broken"), [(True, 0.59, None), (False, 0.545, 0.58)])
def test_where_two_boundaries_are_equally_good_one_more_probe_decides(
    vote: bool, kept: float, broken: float | None
) -> None:
    search = CapacitySearch(0.5)
    for load, was_kept in ((0.58, False), (0.47, True), (0.46, True), (0.59, True), (0.545, True)):
        search.tell(load, kept=was_kept)
    between = search.next()
    assert between is not None and 0.58 < between < 0.59
    search.tell(between, kept=vote)
    assert (search.kept, search.broken) == (kept, broken)
    assert (search.next() is None) == (not vote)  # one that is still keeping its promises goes on upwards


def test_steps_of_the_precision_end_with_the_first_change() -> None:
    search = CapacitySearch(0.5, stride=1.07)
    search.tell(0.5, kept=True)
    search.tell(0.5 * 1.07, kept=False)
    assert search.next() is None
    assert search.kept == 0.5


def test_a_search_that_chance_keeps_open_ends() -> None:
    search, loads = CapacitySearch(0.5), iter([0.5, 0.9, 0.55, 0.9, 0.5, 0.95, 0.52, 0.9])
    while search.next() is not None:
        search.tell(load := next(loads), kept=load < 0.7)
    assert len(search.probes) == ENOUGH_PROBES
    assert (search.kept, search.broken) == (0.55, 0.9)


def test_nothing_can_be_kept() -> None:
    found = searched(0.0, 0.5)
    assert found.capacity == 0.0
    assert min(load for load, _ in found.probes) >= LOWEST


def test_everything_can_be_kept() -> None:
    assert HIGHEST / 1.25 <= searched(99.0, 0.5).capacity <= HIGHEST
