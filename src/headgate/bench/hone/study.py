"""All settings of the paper's Figs. 6 to 8, every scheduler on the same arrivals, many seeds."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.bench.hone.optimum import least_max_backlog, proven_ratio
from headgate.bench.hone.simulator import SCHEDULERS, Found, arrivals, simulate
from headgate.bench.race import Say

Results = dict[str, Any]

RATES = (500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500, 5_000)
QUEUES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
FIXED_QUEUES, FIXED_RATE = 10, 1_000

OPTIMUM_SEEDS, OPTIMUM_SLOTS = 5, 2_000
"""The optimum is searched for in fewer and shorter cases: it takes a heap and a bisection each."""


def study(seeds: int, say: Say) -> Results:
    """Everything, as JSON."""
    begun_s = time.monotonic()
    settings = [("rate", FIXED_QUEUES, rate) for rate in RATES] + [("queues", n, FIXED_RATE) for n in QUEUES]
    found = []
    for number, (varied, queues, rate) in enumerate(settings, 1):
        say(f"{number} of {len(settings)}: {queues} queues, {rate:,} tuples/s each, {seeds} seeds")
        arriving = arrivals(queues, rate, seeds, seed=number)
        for name, scheduler in SCHEDULERS.items():
            figures = _figures(simulate(arriving, scheduler))
            found.append({"varied": varied, "queues": queues, "rate": rate, "scheduler": name} | figures)
    say("the offline optimum")
    return {
        "seeds": seeds, "settings": found, "optimum": list(_optima()), "took_s": time.monotonic() - begun_s,
    }  # fmt: skip


def _figures(found: Found) -> dict[str, Any]:
    """As JSON; Jain's index by seed and sampled slot."""
    return {
        "max_backlog": found.max_backlog.tolist(), "delay_s": found.delay_s.tolist(),
        "jain_samples": [[_or_null(index) for index in seed] for seed in found.jain.tolist()],
    }  # fmt: skip


def _or_null(index: float) -> float | None:
    """JSON knows no "not a number"."""
    return None if math.isnan(index) else round(index, 4)


def _optima() -> Iterable[dict[str, Any]]:
    for queues, rate in ((2, 2_500), (4, 1_500), (10, 500), (10, 1_000), (10, 2_000), (40, 250), (100, 100)):
        arriving = arrivals(queues, rate, OPTIMUM_SEEDS, seed=7, slots=OPTIMUM_SLOTS)
        lbf = simulate(arriving, SCHEDULERS["lbf"]).max_backlog
        best = [least_max_backlog(arriving[:, seed]) for seed in range(OPTIMUM_SEEDS)]
        yield {
            "queues": queues, "rate": rate, "lbf": lbf.tolist(), "optimum": best, "proven": proven_ratio(queues),
        }  # fmt: skip


def reduction(ours: Iterable[float], theirs: Iterable[float]) -> NDArray[np.float64]:
    """1 - ours / theirs, seed by seed; nothing to reduce is no reduction."""
    mine, other = np.array(list(ours), float), np.array(list(theirs), float)
    return np.where(other > 0, 1 - mine / np.maximum(other, 1e-300), 0.0)


def settings_of(results: Results, scheduler: str, varied: str | None = None) -> list[dict[str, Any]]:
    """What a scheduler did, over rates or over numbers of queues or over both."""
    return [
        each
        for each in results["settings"]
        if each["scheduler"] == scheduler and (varied is None or each["varied"] == varied)
    ]


def counterpart(results: Results, setting: dict[str, Any], scheduler: str) -> dict[str, Any]:
    """What another scheduler did with the same arrivals."""
    keys = ("varied", "queues", "rate")
    return next(each for each in settings_of(results, scheduler) if all(each[key] == setting[key] for key in keys))


def place(setting: dict[str, Any]) -> str:
    """In words."""
    return f"{setting['queues']} queues, {setting['rate']:,} tuples/s each"
