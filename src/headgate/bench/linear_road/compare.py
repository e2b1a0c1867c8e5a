"""Two results of the benchmark against each other: what got better, what got worse, and what is only noise.

A change counts if the medians lie further apart than repeats of the same cell do: a few times the wider of the two
spreads, or the contender's typical spread of that measure if both happen to be narrow. A cell with one repeat has no
spread: there only a change counts that no machine makes by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, NamedTuple

from headgate.bench.linear_road import lookup
from headgate.bench.linear_road.load import load_text
from headgate.bench.linear_road.lookup import Cell, Results, Run

Verdict = Literal["better", "worse", "within noise", "cannot tell"]

BEYOND_NOISE = {2: 3.0, 3: 2.0}
BEYOND_NOISE_OF_MANY = 1.5
"""Times the spread, by repeats. If nothing changed and the noise is normal, about one row in a thousand crosses it at
most: a comparison has hundreds of rows, and one false alarm among them makes the exit code useless."""

ONE_REPEAT = {"p95, s": 1.0, "late": 0.05, "CPU s/million": 0.5}
"""Changes that count without known noise: p95 more than twice, five points more late, CPU more than 1.5 times, or the
other way round. Of the other measures one repeat tells nothing."""

NEGLIGIBLE = {"late": 0.002}
"""Changes nobody would act on; shares late in points, everything else relative."""
NEGLIGIBLE_RELATIVE = 0.02

HIGHER_IS_BETTER = {"capacity, reports/s", "saturation, rows/s"}
POINTS = {"late"}
"""Measures that are shares already: compared by difference, since a ratio to nearly nothing says nothing."""


class Key(NamedTuple):
    """What is compared; the same in both files."""

    measure: str
    contender: str
    where: str


@dataclass(frozen=True, slots=True)
class Row:
    """One measure in one cell, old and new."""

    key: Key
    ours: bool
    """Whether it is Headgate's own figure; those of stock Spark tell about the machine."""
    old: float
    new: float
    change: float
    """new / old - 1, or new - old for shares."""
    noise: float
    """How far it may change by chance, in the same unit."""
    verdict: Verdict

    @property
    def ratio(self) -> float | None:
        """new / old; shares have none."""
        return None if self.key.measure in POINTS else 1.0 + self.change


def compare(old: Results, new: Results) -> list[Row]:
    """Every measure that both hold, the cells in the order of the new file."""
    before, after = _measures(old), _measures(new)
    shared = [key for key in after if key in before]
    typical = _typical_spreads([entry for found in (before, after) for entry in found.items()])
    kinds = {**(old.get("contenders") or {}), **(new.get("contenders") or {})}
    ours = {name for name in kinds if lookup.kind_of({"contenders": kinds}, name) == "headgate"}
    return [_row(key, key.contender in ours, before[key], after[key], typical.get(key[:2], 0.0)) for key in shared]


def regressed(rows: Iterable[Row]) -> bool:
    """Whether anything of Headgate's own got worse beyond the noise."""
    return any(row.ours and row.verdict == "worse" for row in rows)


def warnings(old: Results, new: Results) -> list[str]:
    """Why the two may not be comparable."""
    return [*_differences(old, new, "machine", ("cores", "cpu", "memory_gb", "python")), *_settings(old, new)]


def _settings(old: Results, new: Results) -> list[str]:
    found = _differences(old, new, "settings", ("measure_s", "settle_s", "seed"))
    if old.get("spark") != new.get("spark"):
        found.append(f"Spark differs: {old.get('spark')} and {new.get('spark')}")
    counted = {lookup.rows_in_window(run) is not None for results in (old, new) for run in lookup.runs_of(results)}
    if len(counted) == 2:
        found.append("CPU is compared only where records were counted within the measured time, which one lacks")
    rates = [((results.get("calibration") or {}).get("query_sets") or {}) for results in (old, new)]
    for name in rates[0].keys() & rates[1].keys():
        ratio = rates[1][name] / rates[0][name]
        if abs(ratio - 1) > 0.1:
            found.append(f"load 1.0 of {name} means {ratio:.2f} times the rate: the same load is another one now")
    return found


def _differences(old: Results, new: Results, section: str, keys: Sequence[str]) -> list[str]:
    pairs = {key: [(results.get(section) or {}).get(key) for results in (old, new)] for key in keys}
    return [
        f"{section} differs: {key} {one} and {other}" for key, (one, other) in pairs.items() if not _like(one, other)
    ]


def _like(one: Any, other: Any) -> bool:
    """Memory is never told twice to the last digit."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=0.05)
    return bool(one == other)


def _measures(results: Results) -> dict[Key, list[float]]:
    """Figures of all repeats by what they are."""
    found: dict[Key, list[float]] = {}
    for cell, repeats in lookup.by_cell(lookup.runs_of(results)).items():
        for run in repeats.values():
            for measure, query, value in _figures(run):
                found.setdefault(Key(measure, cell.contender, _where(cell, query)), []).append(value)
    for entry in results.get("capacity") or []:
        key = Key("capacity, reports/s", entry["contender"], entry["scenario"])
        found.setdefault(key, []).append(float(entry["rate"]))
    for entry in results.get("saturation") or []:
        found.setdefault(Key("saturation, rows/s", entry["contender"], "all"), []).append(float(entry["rows_per_s"]))
    return found


def _figures(run: Run) -> Iterable[tuple[str, str, float]]:
    """(measure, query, value) of one run."""
    for query in run["queries"]:
        yield "p95, s", query, lookup.latency_s(run, query, "p95_s")
        yield "p99, s", query, lookup.latency_s(run, query, "p99_s")
        yield "late", query, lookup.violation_rate(run, query)
    if (cpu_s := lookup.cpu_s_per_million(run)) is not None:
        yield "CPU s/million", "", cpu_s


def _where(cell: Cell, query: str) -> str:
    return f"{cell.part} {cell.scenario} {load_text(cell.load)}, {cell.cores} cores{', ' + query if query else ''}"


def _row(key: Key, ours: bool, before: list[float], after: list[float], typical: float) -> Row:
    old, new = median(before), median(after)
    change = _change(key.measure, old, new)
    spread = max(_spread(key.measure, before), _spread(key.measure, after), typical)
    repeats = min(len(before), len(after))
    if repeats < 2:
        generous = ONE_REPEAT.get(key.measure, math.inf)
        return Row(key, ours, old, new, change, generous, _verdict_of_one(key.measure, change, generous))
    far = BEYOND_NOISE.get(repeats, BEYOND_NOISE_OF_MANY) * spread
    noise = max(far, NEGLIGIBLE.get(key.measure, NEGLIGIBLE_RELATIVE))
    return Row(key, ours, old, new, change, noise, _verdict(key.measure, change, noise))


def _verdict_of_one(measure: str, change: float, generous: float) -> Verdict:
    less = generous if measure in POINTS else 1 - 1 / (1 + generous)  # half as much is as far as twice as much
    if generous < math.inf and not -less <= change <= generous:
        return "better" if change < 0 else "worse"
    return "cannot tell"


def _verdict(measure: str, change: float, noise: float) -> Verdict:
    if abs(change) <= noise:
        return "within noise"
    return "better" if (change > 0) == (measure in HIGHER_IS_BETTER) else "worse"


def _change(measure: str, old: float, new: float) -> float:
    if old == new:
        return 0.0  # both infinite, or both nothing
    if measure in POINTS:
        return new - old
    return new / old - 1 if old > 0 else math.inf


def _spread(measure: str, values: Sequence[float]) -> float:
    """Highest minus lowest in the unit of a change. Repeats that broke down are no noise: they must not hide one."""
    finite = [value for value in values if math.isfinite(value)]
    wide = max(finite) - min(finite) if finite else 0.0
    if measure in POINTS or wide == 0:
        return wide
    return wide / median(finite)


def _typical_spreads(found: Sequence[tuple[Key, list[float]]]) -> dict[tuple[str, str], float]:
    """By measure and contender: one that is often late also strays more."""
    spreads: dict[tuple[str, str], list[float]] = {}
    for key, values in found:
        if len(values) > 1:
            spreads.setdefault(key[:2], []).append(_spread(key.measure, values))
    return {kind: median(values) for kind, values in spreads.items()}


def to_text(rows: Sequence[Row], *, everything: bool = False) -> str:
    """A table of what changed (or of everything), Headgate's rows marked with a star, and a line that sums up."""
    shown = rows if everything else [row for row in rows if row.verdict in ("better", "worse")]
    order = ("worse", "better", "cannot tell", "within noise")
    cells = [_cells(row) for row in sorted(shown, key=lambda row: (order.index(row.verdict), not row.ours))]
    heads = [("verdict", "contender", "measure", "old", "new", "change", "noise", "where")] if cells else []
    return "\n".join([*_aligned([*heads, *cells]), _sum(rows)])


def _cells(row: Row) -> tuple[str, ...]:
    form: Callable[[float], str] = _points if row.key.measure in POINTS else _percent
    value = "{:.2%}" if row.key.measure in POINTS else "{:,.4g}"
    noise = form(row.noise).lstrip("+") if math.isfinite(row.noise) else "unknown"
    return (
        row.verdict, f"{row.key.contender}{' *' if row.ours else ''}", row.key.measure, value.format(row.old),
        value.format(row.new), form(row.change), noise, row.key.where,
    )  # fmt: skip


def _percent(value: float) -> str:
    return f"{value:+.1%}"


def _points(value: float) -> str:
    return f"{100 * value:+.2f} points"


def _aligned(table: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _sum(rows: Sequence[Row]) -> str:
    counts = {
        verdict: sum(row.verdict == verdict for row in rows)
        for verdict in ("better", "worse", "within noise", "cannot tell")
    }
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    hint = " (a cell with one repeat has no known noise: only great changes count)" if counts["cannot tell"] else ""
    return f"{len(rows)} figures in both: {told}{hint}" if rows else "nothing was measured in both"
