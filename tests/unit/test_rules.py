"""The simulated capacity of rules."""

from __future__ import annotations

import pytest

from headgate.bench.rules import Costs, Minute, capacity
from headgate.errors import BadParameter

COSTS = Costs(
    {
        "lr1": {"fixed_s": 0.52, "per_row_s": 1.4e-5},
        "lr2": {"fixed_s": 0.29, "per_row_s": 7e-6},
        "lr3": {"fixed_s": 0.32, "per_row_s": 5e-6},
    },
    {"lr1+lr2+lr3": 30_000.0},
)


@pytest.mark.parametrize("contender", ["slo-edf", "static-0.25-fair", "static-0.25-fair-plain"])
def test_a_part_of_the_load_is_kept_and_twice_of_it_is_not(contender: str) -> None:
    assert Minute(contender, "equal-8-u", 0.4, 1).kept(COSTS)
    assert not Minute(contender, "equal-8-u", 2.0, 1).kept(COSTS)


def test_a_trigger_as_long_as_the_deadline_is_late() -> None:
    assert not Minute("sb-fair", "equal-8-u", 0.5, 1).kept(COSTS)


def test_capacity_is_the_mean_boundary() -> None:
    assert capacity({0.5: 1.0, 0.55: 1.0, 0.6: 0.0, 0.65: 0.0}) == pytest.approx(0.575)
    assert capacity({0.5: 1.0, 0.55: 0.5, 0.6: 0.0}) == pytest.approx(0.55)


def test_results_without_the_costs_are_refused() -> None:
    with pytest.raises(BadParameter, match="no calibration of alerts"):
        COSTS.check("mixed-u")
    COSTS.check("equal-5-bursty")
    with pytest.raises(BadParameter, match="no calibration"):
        Costs.of({"calibration": None}).check("equal-8-u")
