"""How far the same contender strays from itself: the spread over repeats of the same cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from headgate.bench.linear_road import lookup
from headgate.bench.linear_road.lookup import Results, Run


@dataclass(frozen=True, slots=True)
class Spread:
    """Spreads (highest minus lowest repeat) over many cells: the middle one and the widest."""

    median: float
    worst: float
    cells: int


@dataclass(frozen=True, slots=True)
class Noise:
    """One contender against itself."""

    contender: str
    repeats: int
    p95: Spread | None
    """Relative, of a query's p95 latency."""
    cpu: Spread | None
    """Relative, of CPU seconds per million records."""
    violations: Spread | None
    """Absolute, of a query's share of late records."""


def noise(results: Results) -> list[Noise]:
    """For every contender with a cell that was measured more than once."""
    repeated = {cell: list(runs.values()) for cell, runs in lookup.by_cell(lookup.runs_of(results)).items()}
    repeated = {cell: runs for cell, runs in repeated.items() if len(runs) > 1}
    names = lookup.contenders(results, {cell.contender for cell in repeated})
    return [_noise(name, [runs for cell, runs in repeated.items() if cell.contender == name]) for name in names]


def _noise(contender: str, cells: Sequence[list[Run]]) -> Noise:
    queries = [(runs, query) for runs in cells for query in runs[0]["queries"]]
    return Noise(
        contender,
        max(len(runs) for runs in cells),
        _spread(relative_spread([lookup.latency_s(run, query, "p95_s") for run in runs]) for runs, query in queries),
        _spread(relative_spread([lookup.cpu_s_per_million(run) for run in runs]) for runs in cells),
        _spread(spread([lookup.violation_rate(run, query) for run in runs]) for runs, query in queries),
    )


def speeds(results: Results) -> tuple[float, float, float] | None:
    """The machine's slowness over all runs and probes: lowest, median, highest."""
    runs = [run for run in results.get("runs") or [] if "slowness" in run]
    searches = [entry for kind in ("sweep", "capacity") for entry in results.get(kind) or []]
    probes = [probe for entry in searches for probe in entry.get("probes") or [] if "slowness" in probe]
    found = [float(each["slowness"]) for each in (*runs, *probes)]
    return (min(found), median(found), max(found)) if found else None


def spread(values: Sequence[float | None]) -> float | None:
    """Highest minus lowest; nothing with fewer than two figures, or where one is infinite (a run that broke down)."""
    known = [value for value in values if value is not None]
    if len(known) < 2 or not all(map(math.isfinite, known)):
        return None
    return max(known) - min(known)


def relative_spread(values: Sequence[float | None]) -> float | None:
    """The same over the median."""
    wide = spread(values)
    middle = median(value for value in values if value is not None) if wide is not None else 0.0
    return wide / middle if wide is not None and middle > 0 else None


def _spread(spreads: Iterable[float | None]) -> Spread | None:
    known = [value for value in spreads if value is not None]
    return Spread(median(known), max(known), len(known)) if known else None
