"""What an expert would choose: the fixed triggers and the scheduler with the highest SLO capacity, per scenario."""

from __future__ import annotations

from headgate.bench.application import Application
from headgate.bench.linear_road.runner import Runner
from headgate.bench.linear_road.scenarios import SCENARIOS, find_contender
from headgate.bench.linear_road.search import CapacitySearch
from headgate.bench.plan import Contender

START, STRIDE = 0.45, 1.35
"""A coarse search: it need only rank the settings; the best one is searched again, finely, turn by turn with ours."""


def sweep(runner: Runner) -> None:
    """Find the best static setting of every scenario that needs one and has none yet."""
    best, programme = runner.store.data["best_static"], runner.programme
    missing = [name for name in programme.needs_sweep if name not in best]
    settings = [find_contender(name) for name in programme.sweep]
    for session in dict.fromkeys(map(_session, settings)) if missing else ():
        todo = [
            (scenario, setting)
            for scenario in missing
            for setting in settings
            if _session(setting) == session and not _tried(runner, scenario, setting.name)
        ]
        if todo:
            _try_triggers(runner, todo)
    for scenario in missing:
        best[scenario] = _best(runner, scenario)
        runner.say(f"best static setting for {scenario}: {find_contender(best[scenario]).title}")
        runner.store.save()


def _session(setting: Contender) -> tuple[str, bool]:
    """What belongs to an application rather than to a query."""
    return setting.mode, setting.plain_slots


def _tried(runner: Runner, scenario: str, contender: str) -> bool:
    return any((e["scenario"], e["contender"]) == (scenario, contender) for e in runner.store.data["sweep"])


def _best(runner: Runner, scenario: str) -> str:
    """The highest capacity; among equals the one that was least late there."""
    tried = [entry for entry in runner.store.data["sweep"] if entry["scenario"] == scenario]
    return str(max(tried, key=lambda entry: (entry["load"], -entry["worst_violation_rate"]))["contender"])


def _try_triggers(runner: Runner, todo: list[tuple[str, Contender]]) -> None:
    """All triggers of one kind of session in one application: a trigger belongs to a query, not to Spark."""
    with Application(todo[0][1]) as app:
        runner.warm(app, SCENARIOS[todo[0][0]])
        for name, setting in todo:
            search = CapacitySearch(START, stride=STRIDE, precision=1.01 * STRIDE)
            probes = runner.search(app, SCENARIOS[name], search, "sweep", setting)
            late = [probe["worst_violation_rate"] for probe in probes if probe["kept"] or not search.capacity]
            entry = {"scenario": name, "contender": setting.name, "load": search.capacity}
            runner.store.append("sweep", entry | {"worst_violation_rate": min(late), "probes": probes})
