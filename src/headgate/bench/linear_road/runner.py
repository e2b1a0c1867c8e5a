"""Cells and searches inside a contender's application: what calibration, sweep and judge have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from headgate.bench.application import Application
from headgate.bench.gauge import Gauge
from headgate.bench.jvm import Jvm
from headgate.bench.linear_road.load import is_rate
from headgate.bench.linear_road.programmes import Programme
from headgate.bench.linear_road.scenarios import CONTENDERS, Scenario
from headgate.bench.linear_road.search import CapacitySearch
from headgate.bench.linear_road.store import Store
from headgate.bench.plan import BenchQuery, Cell, Contender, Measured, Outcome
from headgate.engine.session import local_cores

WARM_UP_LOAD = 0.5

LONGEST_WARM_UP = 3.0
"""A contender's warm-up that never becomes steady ends after this many times its least time."""

DRIVE_IN_LEAST_S = 60.0

DISTURBED = 0.3
"""A cell in whose worst seconds the host took more of the cores than this is measured again. Up to a quarter is usual
on the machine of docs/results, and a sixth was taken there on average within an hour."""

TRIES = 3
"""... but no more often than this."""

DRIVE_IN_PER_CORE = 2_000
"""Reports per second and core into each query: batch follows batch, and the state is large enough to be worked on."""

_RELAXED_S = 30.0
"""A deadline for runs in which nobody looks at deadlines."""

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
        self._jvms: dict[int, Jvm] = {}
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
        """A fresh one, in a JVM that has compiled what the programme runs."""
        return Application(contender, self._driven_in(cores or local_cores()), gauge=self.gauge)

    def driven_in(self, cores: int) -> bool:
        """Whether there is a JVM with so many cores already."""
        return cores in self._jvms

    def _driven_in(self, cores: int) -> Jvm:
        if cores not in self._jvms:
            self._jvms[cores] = Jvm(cores, kafka=self._kafka)
            self.say("driving in: stock Spark without a pause, until the JVM has compiled what it runs")
            queries = list(dict.fromkeys(name for names in self.programme.query_sets.values() for name in names))
            Application(CONTENDERS["trigger-0"], self._jvms[cores]).run(drive_in(queries, self.programme.drive_in_s))
        return self._jvms[cores]

    def close(self) -> None:
        for jvm in self._jvms.values():
            jvm.close()

    def warm(self, app: Application, scenario: Scenario) -> None:
        """Let a contender run on the queries that it will be measured with, until its batch times are what they are."""
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
        found = self._undisturbed(
            app, Cell(queries, programme.settle_s, programme.measure_s, window.seed, give_up=give_up)
        )
        measured = Measured(found, rate, rate * found.slowness / self.full_rate(scenario))
        title = (setting or app.contender).title
        self.say(f"{title}: {what} {scenario.name} at load {measured.load:.2f}: {_short(found)}")
        return measured

    def _undisturbed(self, app: Application, cell: Cell) -> Outcome:
        """Run it again if the host took the machine away meanwhile, whatever came of it; in the end the calmest counts.

        A host that gives somebody else most of the cores for some seconds breaks everybody's promises.
        """
        found: list[Outcome] = []
        while not found or (found[-1].stolen > DISTURBED and len(found) < TRIES):
            if found:
                self.say(f"{app.contender.title}: again, the host took {found[-1].stolen:.0%} of the cores for seconds")
            found.append(app.run(cell))
        return min(found, key=lambda outcome: outcome.stolen)

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
            probe = {"load": measured.load, "rate": measured.rate, "slowness": found.slowness, "stolen": found.stolen}
            probes.append(probe | {"kept": kept, "worst_query": query, "worst_violation_rate": late})
            self.store.save()
        return probes


def drive_in(queries: Sequence[str], longest_s: float) -> Cell:
    """All queries at an easy rate."""
    rate = f"B({DRIVE_IN_PER_CORE * local_cores()})"
    easy = tuple(BenchQuery(name, _RELAXED_S, rate) for name in queries)
    return Cell(easy, min(DRIVE_IN_LEAST_S, longest_s), 1.0, longest_settle_s=longest_s)


def warm_up(queries: tuple[BenchQuery, ...], seconds: float) -> Cell:
    """The queries that will be measured, under their own kind of traffic: bursts are something to learn, too."""
    return Cell(queries, seconds, 1.0, longest_settle_s=LONGEST_WARM_UP * seconds)


def _worst(found: Outcome) -> tuple[str, float]:
    name = max(found.queries, key=lambda query: float(found.queries[query]["violation_rate"]))
    return name, float(found.queries[name]["violation_rate"])


def _short(found: Outcome) -> str:
    late = ", ".join(f"{name} {query['violation_rate']:.1%}" for name, query in found.queries.items())
    broken = "; ended early: a promise was broken" if found.aborted else ""
    busy = found.cpu_s / max(found.measured_s, 1e-9)
    return f"late {late}; {busy:.2f} cores busy; slowness {found.slowness:.2f}, stolen {found.stolen:.0%}{broken}"
