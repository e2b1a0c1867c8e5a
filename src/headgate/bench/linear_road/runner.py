"""Cells and searches inside a contender's application: what calibration, sweep and judge have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headgate.bench.application import Application
from headgate.bench.gauge import Gauge
from headgate.bench.linear_road.load import is_rate
from headgate.bench.linear_road.programmes import Programme
from headgate.bench.linear_road.scenarios import Scenario
from headgate.bench.linear_road.search import CapacitySearch
from headgate.bench.linear_road.store import Store
from headgate.bench.plan import BenchQuery, Cell, Contender, Measured, Outcome

WARM_UP_LOAD = 0.5

Tell = Callable[[str, float, float], None]
"""Takes what happened, the seconds since the beginning and a forecast of those that are left."""


class Runner:
    """Runs cells at loads of the calibrated machine and says what they found."""

    def __init__(
        self,
        programme: Programme,
        store: Store,
        tell: Tell,
        left_s: Callable[[], float],
        kafka: str | None = None,
        gauge: Gauge | None = None,
    ) -> None:
        """`kafka` is a broker's address, if reports go through one; without a `gauge` the machine's speed is 1."""
        self._kafka = kafka
        self.gauge = gauge
        self.programme = programme
        self.store = store
        self._tell = tell
        self._left_s = left_s
        self._begun_s = time.monotonic()

    def say(self, text: str) -> None:
        self._tell(text, time.monotonic() - self._begun_s, self._left_s())

    def rate(self, scenario: Scenario, load: float) -> float:
        """Reports per second into each query, for the machine at the calibration's speed."""
        return load if is_rate(load) else load * self.full_rate(scenario)

    def full_rate(self, scenario: Scenario) -> float:
        """Load 1.0 of the scenario's queries."""
        return float(self.store.data["calibration"]["query_sets"][scenario.query_set])

    def slowness(self) -> float:
        """Of the machine, lately."""
        return self.gauge.lately() if self.gauge is not None else 1.0

    def application(self, contender: Contender, cores: int | None = None) -> Application:
        """A fresh one."""
        return Application(contender, cores, kafka=self._kafka, gauge=self.gauge)

    def warm(self, app: Application, scenario: Scenario) -> None:
        """Let the JVM get as fast as it gets, on the queries that it will run."""
        self.say(f"{app.contender.title}: warming up until batch times stop falling")
        rate = self.rate(scenario, WARM_UP_LOAD) / self.slowness()
        app.run(warm_up(scenario.queries(rate), self.programme.warm_up_s))

    def cell(
        self, app: Application, scenario: Scenario, load: float, what: str, repeat: int,
        *, setting: Contender | None = None, give_up: bool = False,
    ) -> Measured:  # fmt: skip
        """One measurement; `setting` has fixed triggers other than those of the application's own contender."""
        window = self.programme.window(repeat)
        rate = self.rate(scenario, load) / (1.0 if is_rate(load) else self.slowness())
        queries = scenario.queries(rate, window)
        if setting is not None:
            queries = tuple(replace(query, trigger_s=setting.trigger_s(query, queries)) for query in queries)
        programme = self.programme
        found = app.run(Cell(queries, programme.settle_s, programme.measure_s, window.seed, give_up=give_up))
        measured = Measured(found, rate, rate * found.slowness / self.full_rate(scenario))
        title = (setting or app.contender).title
        self.say(f"{title}: {what} {scenario.name} at load {measured.load:.2f}: {_short(found)}")
        return measured

    def search(
        self, app: Application, scenario: Scenario, search: CapacitySearch, what: str, repeat: int,
        setting: Contender | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Run `search` to its end and return its probes; one that was interrupted goes on with those it had."""
        contender = (setting or app.contender).name
        probes = self.store.open_search(what, scenario.name, contender, repeat)
        for probe in probes:
            search.tell(probe["load"], kept=probe["kept"])
        while (load := search.next()) is not None:
            measured = self.cell(app, scenario, load, what, repeat, setting=setting, give_up=True)
            found = measured.found
            kept = not found.aborted and all(query["keeps_promise"] for query in found.queries.values())
            search.tell(measured.load, kept=kept)
            query, late = _worst(found)
            probe = {"load": measured.load, "rate": measured.rate, "slowness": found.slowness, "kept": kept}
            probes.append(probe | {"worst_query": query, "worst_violation_rate": late})
            self.store.save()
        return probes


def warm_up(queries: tuple[BenchQuery, ...], seconds: float) -> Cell:
    """The queries that will be measured, under their own kind of traffic: bursts are something to learn, too."""
    return Cell(queries, seconds, 1.0, until_steady=True)


def _worst(found: Outcome) -> tuple[str, float]:
    name = max(found.queries, key=lambda query: float(found.queries[query]["violation_rate"]))
    return name, float(found.queries[name]["violation_rate"])


def _short(found: Outcome) -> str:
    late = ", ".join(f"{name} {query['violation_rate']:.1%}" for name, query in found.queries.items())
    broken = "; ended early: a promise was broken" if found.aborted else ""
    busy = found.cpu_s / max(found.measured_s, 1e-9)
    return f"late {late}; {busy:.2f} cores busy; slowness {found.slowness:.2f}{broken}"
