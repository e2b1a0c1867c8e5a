"""Which stock settings are searched finely, and which one is the best in the end."""

from __future__ import annotations

from typing import Any

from headgate.bench.linear_road import sweep
from headgate.bench.linear_road.programmes import Programme

PROGRAMME = Programme(capacity=("mixed-u",), sweep=("trigger-0", "static-0.25-fair", "static-0.5-fair"))


def swept(*found: tuple[str, float, float]) -> dict[str, Any]:
    entries = [
        {"scenario": "mixed-u", "contender": name, "load": load, "worst_violation_rate": late}
        for name, load, late in found
    ]
    return {"sweep": entries, "capacity": [], "best_static": {}}


def searched(data: dict[str, Any], contender: str, *loads: float) -> None:
    data["capacity"] += [{"scenario": "mixed-u", "contender": contender, "load": load} for load in loads]


def test_who_kept_the_highest_load_is_a_candidate_the_least_late_first_but_only_two() -> None:
    data = swept(("trigger-0", 0.0, 0.1), ("static-0.25-fair", 0.45, 0.002), ("static-0.5-fair", 0.45, 0.001))
    assert sweep._ranked(data, "mixed-u") == ["static-0.5-fair", "static-0.25-fair"]
    data = swept(("trigger-0", 0.45, 0.0), ("static-0.25-fair", 0.6, 0.002), ("static-0.5-fair", 0.0, 0.05))
    assert sweep._ranked(data, "mixed-u") == ["static-0.25-fair"]
    data = swept(*((name, 0.45, 0.0) for name in PROGRAMME.sweep))
    assert len(sweep._ranked(data, "mixed-u")) == sweep.CANDIDATES


def test_the_fine_searches_decide() -> None:
    data = swept() | {"static_candidates": {"mixed-u": ["static-0.25-fair", "trigger-0"]}}
    data["best_static"] = {"mixed-u": "static-0.25-fair"}
    searched(data, "static-0.25-fair", 0.40, 0.42, 0.60)
    sweep.decide(data, "mixed-u")
    assert data["best_static"]["mixed-u"] == "static-0.25-fair"
    searched(data, "trigger-0", 0.50, 0.52, 0.30)
    sweep.decide(data, "mixed-u")
    assert data["best_static"]["mixed-u"] == "trigger-0"


def test_lateness_is_that_of_the_load_that_was_found() -> None:
    probes = [
        {"load": 0.45, "kept": True, "worst_violation_rate": 0.0},
        {"load": 0.6, "kept": True, "worst_violation_rate": 0.008},
        {"load": 0.8, "kept": False, "worst_violation_rate": 0.2},
    ]
    assert sweep.late_at(probes, 0.6) == 0.008
    assert sweep.late_at(probes[2:], 0.0) == 0.2


def test_candidates_are_assumed_before_the_sweep_and_one_chosen_by_hand_is_alone() -> None:
    data = swept()
    assert len(sweep.candidates(data, PROGRAMME, "mixed-u")) == sweep.CANDIDATES
    assert sweep.candidates(data, PROGRAMME, "mixed-bursty") == []
    data["best_static"] = {"mixed-u": "trigger-0"}
    assert sweep.candidates(data, PROGRAMME, "mixed-u") == ["trigger-0"]
