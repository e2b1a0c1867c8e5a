"""The search for capacity against machines whose capacity is known."""

from __future__ import annotations

import pytest

from headgate.bench.linear_road.search import HIGHEST, LOWEST, CapacitySearch


def searched(true_capacity: float, start: float) -> CapacitySearch:
    search = CapacitySearch(start)
    while (load := search.next()) is not None:
        assert load not in search.probes
        search.tell(load, kept=load <= true_capacity)
    return search


@pytest.mark.parametrize("true_capacity", [0.11, 0.4, 0.77, 1.3])
@pytest.mark.parametrize("start", [0.3, 0.5, 0.9])
def test_it_comes_within_its_precision(true_capacity: float, start: float) -> None:
    found = searched(true_capacity, start)
    assert true_capacity / found.precision <= found.capacity <= true_capacity
    assert len(found.probes) <= 13


def test_one_that_starts_near_its_goal_is_short() -> None:
    assert len(searched(0.5, 0.48).probes) <= 5


def test_nothing_can_be_kept() -> None:
    found = searched(0.0, 0.5)
    assert found.capacity == 0.0
    assert min(found.probes) >= LOWEST


def test_everything_can_be_kept() -> None:
    assert HIGHEST / 1.25 <= searched(99.0, 0.5).capacity <= HIGHEST
