"""Who competes in what: the promises, the traffic and the contenders of the Linear Road benchmark."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headgate.bench.plan import BenchQuery, Contender
from headgate.errors import BadParameter

BURST_FACTOR, BURST_S, BURST_EVERY_S = 3, 5, 30
"""Bursts of three times the base rate for 5 s in every 30 s."""

_BURST_MEAN = 1 + (BURST_FACTOR - 1) * BURST_S / BURST_EVERY_S


@dataclass(frozen=True, slots=True)
class Scenario:
    """Queries with promises under one kind of traffic."""

    name: str
    title: str
    traffic: str
    """U (random per second) or bursty."""
    deadlines_s: dict[str, float]

    @property
    def query_set(self) -> str:
        """The queries, whatever their promises: what a calibration is made for."""
        return "+".join(sorted(self.deadlines_s))

    def queries(self, rate: float) -> tuple[BenchQuery, ...]:
        """Every query with `rate` reports per second on average."""
        text = traffic_text(self.traffic, rate)
        return tuple(BenchQuery(name, deadline_s, text) for name, deadline_s in self.deadlines_s.items())


def traffic_text(kind: str, rate: float) -> str:
    """`rate` is the mean, also under bursts."""
    if kind == "U":
        return f"U({rate:.0f})"
    if kind == "B":
        return f"B({rate:.0f})"
    return f"burst({rate / _BURST_MEAN:.0f}, x{BURST_FACTOR}, {BURST_S}s, every {BURST_EVERY_S}s)"


def _equal(deadline_s: int, traffic: str) -> Scenario:
    deadlines_s = {name: float(deadline_s) for name in ("lr1", "lr2", "lr3")}
    title = f"LR1-3, deadline {deadline_s} s, {_TRAFFIC_TITLES[traffic]}"
    return Scenario(f"equal-{deadline_s}-{traffic.lower()}", title, traffic, deadlines_s)


def _mixed(traffic: str) -> Scenario:
    deadlines_s = {"alerts": 1.5, "lr2": 6.0, "lr3": 20.0, "lr1": 20.0}
    title = f"mixed deadlines (alerts 1.5 s, LR2 6 s, LR3 20 s, LR1 20 s), {_TRAFFIC_TITLES[traffic]}"
    return Scenario(f"mixed-{traffic.lower()}", title, traffic, deadlines_s)


_TRAFFIC_TITLES = {
    "U": "random rate per second",
    "bursty": f"bursts of {BURST_FACTOR}x, {BURST_S} s in {BURST_EVERY_S}",
}

SCENARIOS = {
    scenario.name: scenario
    for traffic in ("U", "bursty")
    for scenario in (_mixed(traffic), *(_equal(deadline_s, traffic) for deadline_s in (5, 8, 10)))
}

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
    "trigger-0",
    *(f"static-{share:g}-{mode}" for mode in ("fair", "fair-plain", "fifo-plain") for share in (0.25, 0.5)),
)
"""What an expert would try: fixed triggers as shares of each query's deadline (0 is Spark's default), FAIR with slots
to spare as Headgate's session has them, FAIR and FIFO with a slot per core. FIFO with slots to spare is left out: where
nearly every task has a slot at once, the order should matter little. The papers' choice, the whole deadline, is
measured in the cells: half of its records are late by design."""


def static(share: float, mode: str, *, plain_slots: bool = False) -> Contender:
    """Stock Spark with one choice of triggers, scheduler and slots."""
    for known in (CONTENDERS["trigger-0"], CONTENDERS["sb-fair"], CONTENDERS["sb-fifo"]):
        if (known.trigger_share, known.mode, known.plain_slots) == (share, mode, plain_slots):
            return known
    trigger = "trigger 0" if share == 0 else f"trigger = {share:g} x deadline"
    name, title = f"static-{share:g}-{mode.lower()}", f"stock {mode}, {trigger}"
    if plain_slots:
        name, title = f"{name}-plain", f"{title}, a slot per core"
    return Contender(name, title, trigger_share=share, mode=mode, plain_slots=plain_slots)


def find_contender(name: str) -> Contender:
    """A contender by its name, also one of the sweep's."""
    if name in CONTENDERS:
        return CONTENDERS[name]
    found = re.fullmatch(r"static-(\d+(?:\.\d+)?)-(fair|fifo)(-plain)?", name)
    if found is None:
        raise BadParameter(
            "contender", name, "there is none of this name",
            f"use static-SHARE-fair, static-SHARE-fifo (-plain for a slot per core), {', '.join(CONTENDERS)}",
        )  # fmt: skip
    share, mode, plain = found.groups()
    return static(float(share), mode.upper(), plain_slots=plain is not None)
