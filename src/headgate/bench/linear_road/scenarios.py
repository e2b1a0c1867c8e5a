"""Who competes in what: the promises, the traffic and the contenders of the Linear Road benchmark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from headgate.bench.plan import BenchQuery, Contender
from headgate.core.traffic import parse_traffic
from headgate.errors import BadParameter

BURST_FACTOR, BURST_S, BURST_EVERY_S = 3, 5, 30
"""Bursts of three times the base rate for 5 s in every 30 s."""

_BURST_MEAN = 1 + (BURST_FACTOR - 1) * BURST_S / BURST_EVERY_S

DAY_S, DAY_DEPTH = 60, 0.8
"""A day of the diurnal traffic: as long as a measurement, so that every window holds a whole one."""


@dataclass(frozen=True, slots=True)
class Window:
    """The measured seconds of a trace with one realisation of its traffic."""

    begin_s: float
    end_s: float
    seed: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """Queries with promises under one kind of traffic."""

    name: str
    title: str
    traffic: str
    """U (random per second), bursty, constant, diurnal, or file:PATH with a count per second on each line."""
    deadlines_s: dict[str, float]

    @property
    def mixed(self) -> bool:
        """Whether some promises are tighter than others."""
        return len(set(self.deadlines_s.values())) > 1

    @property
    def query_names(self) -> list[str]:
        return sorted(self.deadlines_s)

    @property
    def query_set(self) -> str:
        """The queries, whatever their promises: what a calibration is made for."""
        return "+".join(self.query_names)

    def queries(self, rate: float, window: Window | None = None) -> tuple[BenchQuery, ...]:
        """Every query with `rate` reports per second on average: in the long run, or within `window`."""
        text = traffic_text(self.traffic, rate) if window is None else traffic_within(self.traffic, rate, window)
        return tuple(BenchQuery(name, deadline_s, text) for name, deadline_s in self.deadlines_s.items())


def traffic_text(kind: str, rate: float) -> str:
    """`rate` is the mean, also under bursts."""
    if kind == "U":
        return f"U({rate:.0f})"
    if kind == "constant":
        return f"B({rate:.0f})"
    if kind == "diurnal":
        return f"diurnal({rate:.0f}, period {DAY_S}s, depth {DAY_DEPTH})"
    if kind.startswith(_FILE):
        return f"file({rate:.0f}, {kind.removeprefix(_FILE)})"
    return f"burst({rate / _BURST_MEAN:.0f}, x{BURST_FACTOR}, {BURST_S}s, every {BURST_EVERY_S}s)"


def traffic_within(kind: str, rate: float, window: Window) -> str:
    """Traffic whose realised mean within `window` is `rate`: a minute of chance is often a tenth off its own mean."""
    nominal = rate
    for _ in range(3):  # counts are whole and so is the rate in the text: the first correction is nearly right
        realised = realised_rate(traffic_text(kind, nominal), window)
        if realised == 0:
            problem = f"no report arrives from second {window.begin_s:g} to {window.end_s:g}, which are measured"
            raise BadParameter("scenarios", kind, problem, "give a file with counts there; a shorter one is repeated")
        nominal *= rate / realised
    return traffic_text(kind, nominal)


def realised_rate(text: str, window: Window) -> float:
    """The mean rate of the records that do arrive within `window`."""
    traffic = parse_traffic(text, window.seed)
    arrived = traffic.count_before(window.end_s) - traffic.count_before(window.begin_s)
    return arrived / (window.end_s - window.begin_s)


def _scenario(promises: str, traffic: str) -> Scenario:
    what, deadlines_s = _PROMISES[promises]
    how = _TRAFFIC_TITLES.get(traffic) or f"counts of {Path(traffic.removeprefix(_FILE)).name}"
    name = traffic if traffic.startswith(_FILE) else traffic.lower()
    return Scenario(f"{promises}-{name}", f"{what}, {how}", traffic, deadlines_s)


_MIXED = {"alerts": 1.5, "lr2": 6.0, "lr3": 20.0, "lr1": 20.0}

_PROMISES: dict[str, tuple[str, dict[str, float]]] = {
    "mixed": ("mixed deadlines (alerts 1.5 s, LR2 6 s, LR3 20 s, LR1 20 s)", _MIXED),
    **{
        f"equal-{seconds}": (f"LR1-3, deadline {seconds} s", dict.fromkeys(("lr1", "lr2", "lr3"), float(seconds)))
        for seconds in (5, 8, 10)
    },
}
"""What each query promises, by the first part of a scenario's name."""

_TRAFFIC_TITLES = {
    "U": "random rate per second",
    "bursty": f"bursts of {BURST_FACTOR}x, {BURST_S} s in {BURST_EVERY_S}",
    "constant": "constant rate",
    "diurnal": f"a day of {DAY_S} s, {1 - DAY_DEPTH:.1f} to {1 + DAY_DEPTH:.1f} times the mean",
}

_FILE = "file:"

SCENARIOS = {
    scenario.name: scenario
    for traffic in _TRAFFIC_TITLES
    for scenario in (_scenario(promises, traffic) for promises in _PROMISES)
}
"""The scenarios with traffic of a known shape; those with a file's are named after it: mixed-file:PATH."""


def find_scenario(name: str) -> Scenario:
    """A scenario by its name, also one whose traffic is in a file."""
    if name in SCENARIOS:
        return SCENARIOS[name]
    promises, found, path = name.partition(f"-{_FILE}")
    if not (found and path and promises in _PROMISES):
        remedy = f"use one of {', '.join(SCENARIOS)}, or PROMISES-file:PATH such as mixed-file:counts.txt"
        raise BadParameter("scenarios", name, "there is none of this name", remedy)
    return _scenario(promises, _FILE + path)


def same_queries(one: str, other: str) -> bool:
    """Whether two scenarios run the same queries, whatever they promise and however records arrive."""
    return find_scenario(one).query_set == find_scenario(other).query_set


CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender("sb-fifo", "stock FIFO, trigger = deadline", trigger_share=1.0, mode="FIFO"),
        Contender("sb-fair", "stock FAIR, trigger = deadline", trigger_share=1.0),
        Contender("trigger-0", "stock FAIR, trigger 0", trigger_share=0.0),
        Contender("qspark-fair", "Q-Spark's admission, FAIR", "qspark", "fair"),
        Contender("zstream-edf", "zStream DB-EDF", "zstream", "edf"),
        Contender("zstream-rdas", "zStream DB-RDAS", "zstream", "rdas"),
        Contender("slo-edf", "Headgate (slo, EDF)", "slo", "edf"),
        Contender("slo-rdas", "Headgate (slo, RDAS)", "slo", "rdas"),
        Contender("admission-only", "only Headgate's admission (FAIR)", "slo", "fair"),
        Contender("scheduling-only", "only EDF (trigger = deadline)", "observe", "edf", trigger_share=1.0),
    )
}

SWEEP = (
    *("trigger-0", "static-0.25-fair", "static-0.5-fair", "static-0.25-0.5-fair"),
    *("static-0-fifo", "static-0.25-fifo", "static-0.5-fifo", "static-0.25-0.5-fifo"),
    "static-0.25-fair-plain",
)
"""What an expert would try: fixed triggers (shares of each query's deadline; 0 is Spark's default; where deadlines
differ, also a smaller share for the tightest than for the others) with FAIR and with FIFO, all with slots to spare as
Headgate's session has them; and one with a slot per core, which tells what the slots do. The papers' choice, the whole
deadline, is measured in the cells: half of its records are late by design."""


def static(share: float, mode: str, *, tight_share: float | None = None, plain_slots: bool = False) -> Contender:
    """Stock Spark with one choice of triggers, scheduler and slots."""
    for known in (CONTENDERS["trigger-0"], CONTENDERS["sb-fair"], CONTENDERS["sb-fifo"]):
        chosen = share, tight_share, mode, plain_slots
        if (known.trigger_share, known.tight_share, known.mode, known.plain_slots) == chosen:
            return known
    trigger = "trigger 0" if share == 0 else f"trigger = {share:g} x deadline"
    name, title = f"{share:g}-{mode.lower()}", f"stock {mode}, {trigger}"
    if tight_share is not None:
        name, title = f"{tight_share:g}-{name}", f"{title}, {tight_share:g} x for the tightest"
    if plain_slots:
        name, title = f"{name}-plain", f"{title}, a slot per core"
    return Contender(
        f"static-{name}", title, trigger_share=share, tight_share=tight_share, mode=mode, plain_slots=plain_slots
    )


def find_contender(name: str) -> Contender:
    """A contender by its name, also one of the sweep's."""
    if name in CONTENDERS:
        return CONTENDERS[name]
    number = r"\d+(?:\.\d+)?"
    found = re.fullmatch(rf"static-(?:({number})-)?({number})-(fair|fifo)(-plain)?", name)
    if found is None:
        raise BadParameter(
            "contender", name, "there is none of this name",
            "use static-SHARE-fair, static-SHARE-fifo (static-TIGHT-SHARE-fair with a share of its own for the "
            f"tightest query, -plain for a slot per core), {', '.join(CONTENDERS)}",
        )  # fmt: skip
    tight, share, mode, plain = found.groups()
    tight_share = None if tight is None else float(tight)
    return static(float(share), mode.upper(), tight_share=tight_share, plain_slots=plain is not None)
