"""What an expert would choose: the fixed triggers and the scheduler with the highest SLO capacity, per scenario."""

from __future__ import annotations

import math
from typing import Any

from headgate.bench.linear_road.programmes import Programme
from headgate.bench.linear_road.runner import Runner
from headgate.bench.linear_road.scenarios import SCENARIOS, find_contender
from headgate.bench.linear_road.search import CapacitySearch
from headgate.bench.plan import Contender

START, STRIDE = 0.45, 1.35
"""A coarse search: it need only rank the settings; the best one is searched again, finely, turn by turn with ours."""


WORTH_TRYING = 0.65
"""A setting that carried less than this share of the best one's load is not tried again in other scenarios of the same
queries. A guess that saves hours: one that is far behind in one scenario should not win in another."""


def sweep(runner: Runner) -> None:
    """Find the best static setting of every scenario that needs one and has none yet."""
    data, programme = runner.store.data, runner.programme
    missing = _missing(data, programme)
    first = [name for name in missing if _first_of_its_queries(name, programme)]
    for scenarios in (first, [name for name in missing if name not in first]):
        _try(runner, [(name, setting) for name in scenarios for setting in _untried(data, programme, name)])
        for scenario in scenarios:
            data["best_static"][scenario] = best = _best(data, scenario)
            runner.say(f"best static setting for {scenario}: {find_contender(best).title}")
            runner.store.save()


def tries_left(data: dict[str, Any], programme: Programme) -> int:
    """How many searches a sweep still has to make, as far as that is known."""
    return sum(len(_untried(data, programme, name)) for name in _missing(data, programme))


def _missing(data: dict[str, Any], programme: Programme) -> list[str]:
    return [name for name in programme.needs_sweep if name not in data["best_static"]]


def _first_of_its_queries(scenario: str, programme: Programme) -> bool:
    return scenario == next(name for name in programme.needs_sweep if _same_queries(name, scenario))


def _same_queries(one: str, other: str) -> bool:
    return SCENARIOS[one].query_set == SCENARIOS[other].query_set


def _untried(data: dict[str, Any], programme: Programme, scenario: str) -> list[str]:
    """All settings for the first scenario of some queries, those that came near its best for the others."""
    names = programme.sweep
    known = next((name for name in data["best_static"] if name != scenario and _same_queries(name, scenario)), None)
    if known is not None and (loads := _loads(data, known)):
        names = tuple(name for name in names if loads.get(name, math.inf) >= WORTH_TRYING * max(loads.values()))
    return [name for name in names if name not in _loads(data, scenario)]


def _loads(data: dict[str, Any], scenario: str) -> dict[str, float]:
    return {entry["contender"]: entry["load"] for entry in data["sweep"] if entry["scenario"] == scenario}


def _try(runner: Runner, todo: list[tuple[str, str]]) -> None:
    """All triggers of one kind of session in one application: a trigger belongs to a query, not to Spark."""
    searches = [(scenario, find_contender(name)) for scenario, name in todo]
    for session in dict.fromkeys(_session(setting) for _, setting in searches):
        _try_triggers(runner, [search for search in searches if _session(search[1]) == session])


def _session(setting: Contender) -> tuple[str, bool]:
    """What belongs to an application rather than to a query."""
    return setting.mode, setting.plain_slots


def _best(data: dict[str, Any], scenario: str) -> str:
    """The highest capacity; among equals the one that was least late there."""
    tried = [entry for entry in data["sweep"] if entry["scenario"] == scenario]
    return str(max(tried, key=lambda entry: (entry["load"], -entry["worst_violation_rate"]))["contender"])


def _try_triggers(runner: Runner, todo: list[tuple[str, Contender]]) -> None:
    with runner.application(todo[0][1]) as app:
        runner.warm(app, SCENARIOS[todo[0][0]])
        for name, setting in todo:
            search = CapacitySearch(START, stride=STRIDE, precision=1.01 * STRIDE)
            probes = runner.search(app, SCENARIOS[name], search, "sweep", setting)
            late = [probe["worst_violation_rate"] for probe in probes if probe["kept"] or not search.capacity]
            entry = {"scenario": name, "contender": setting.name, "load": search.capacity}
            runner.store.append("sweep", entry | {"worst_violation_rate": min(late), "probes": probes})
