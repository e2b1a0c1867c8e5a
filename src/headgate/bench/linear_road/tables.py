"""The tables of the Linear Road report."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from headgate.bench.linear_road import lookup
from headgate.bench.linear_road.claims import CLAIMS, Topic
from headgate.bench.linear_road.evidence import answer
from headgate.bench.linear_road.load import load_text
from headgate.bench.linear_road.lookup import OURS, Results, Run
from headgate.bench.linear_road.noise import Spread, noise
from headgate.bench.report import text
from headgate.bench.report.page import Column, Html, Row, Text, code, element, join, table

Value = Callable[[Run], float | None]


def run_table(results: Results) -> Html:
    """What was run, where and how."""
    machine, settings = results.get("machine") or {}, results.get("settings") or {}
    facts: list[tuple[str, Text | None]] = [
        *(("command", code(command)) for command in lookup.commands(results)),
        ("began", results.get("began")),
        ("took", text.minutes(results["took_s"]) if results.get("took_s") else None),
        ("machine", _machine(machine)),
        ("software", _software(results, machine)),
        ("settings", _settings(settings)),
        ("load 1.0", _load_one(results)),
    ]
    return table(["", ""], [(name, value) for name, value in facts if value])


def _machine(machine: Mapping[str, Any]) -> str:
    known = {"cores": "{} cores", "cpu": "{}", "memory_gb": "{} GB of memory", "system": "{}"}
    return ", ".join(form.format(machine[key]) for key, form in known.items() if machine.get(key))


def _software(results: Results, machine: Mapping[str, Any]) -> str:
    versions = {"Headgate": results.get("headgate"), "Spark": results.get("spark"), "Python": machine.get("python")}
    return ", ".join(f"{name} {version}" for name, version in versions.items() if version)


def _settings(settings: Mapping[str, Any]) -> str:
    shown = {key: ", ".join(map(str, value)) if isinstance(value, list) else value for key, value in settings.items()}
    return "; ".join(f"{key} {value}" for key, value in shown.items())


def _load_one(results: Results) -> str:
    sets = (results.get("calibration") or {}).get("query_sets") or {}
    return "; ".join(f"{text.count(rate)} reports/s into each query of {name}" for name, rate in sets.items())


def calibration_table(results: Results) -> Html:
    """What each query costs on this machine when it runs alone."""
    columns = [
        Column("query"), Column("rows/s alone", True), Column("from … to", True), Column("a batch", True),
        Column("a row", True),
    ]  # fmt: skip
    queries = (results.get("calibration") or {}).get("queries") or {}
    return table(columns, [_cost(name, cost) for name, cost in queries.items()])


def _cost(name: str, cost: Mapping[str, Any]) -> list[str]:
    low, high = (cost.get("spread") or [None, None])[:2]
    per_row_s = cost.get("per_row_s")
    return [
        name,
        text.count(cost.get("rows_per_s")),
        f"{text.count(low)} … {text.count(high)}",
        text.seconds(cost.get("fixed_s")),
        text.NOTHING if per_row_s is None else f"{text.digits(per_row_s * 1e6)} µs",
    ]


def contenders_table(results: Results) -> Html:
    """Who competes."""
    kinds = {"headgate": "Headgate", "stock": "stock Spark", "paper": "a paper’s rule, carried out by Headgate"}
    rows = [
        [code(name), lookup.title_of(results, name), kinds.get(kind := lookup.kind_of(results, name), kind)]
        for name in lookup.contenders(results)
    ]
    return table(["contender", "", "kind"], rows)


def grid_table(results: Results, runs: Sequence[Run], value: Value, form: Callable[[float], str]) -> Html:
    """A figure of whole runs: contenders down, cells across, medians over repeats."""
    cells = lookup.by_cell(runs)
    places = sorted(
        {(cell.load, _deadline_s(next(iter(found.values()))), cell.scenario) for cell, found in cells.items()}
    )
    names = lookup.contenders(results, {cell.contender for cell in cells})
    columns = [
        Column("contender"),
        *(Column(f"{deadline_s:g} s, {load_text(load)}", True) for load, deadline_s, _ in places),
    ]
    found: dict[tuple[str, float, str], list[float]] = {}
    for run in runs:
        if (known := value(run)) is not None:
            found.setdefault((run["contender"], round(run["load"], 3), run["scenario"]), []).append(known)
    rows = [
        Row(
            [
                lookup.title_of(results, name),
                *(_median(found.get((name, load, where)), form) for load, _, where in places),
            ],
            "ours" if name == OURS else "",
        )
        for name in names
    ]
    return table(columns, rows)


def _median(values: Sequence[float] | None, form: Callable[[float], str]) -> str:
    return form(median(values)) if values else text.NOTHING


def _deadline_s(run: Run) -> float:
    return float(next(iter(run["queries"].values()))["deadline_s"])


def sweep_table(results: Results) -> Html:
    """The race for the best static setting of each scenario: the highest load kept, or the one that was not."""
    entries = results.get("sweep") or []
    found = {(entry["scenario"], entry["contender"]): entry for entry in entries}
    scenarios = list(dict.fromkeys(entry["scenario"] for entry in entries))
    best = results.get("best_static") or {}
    columns = [Column("static setting"), *(Column(name, True) for name in scenarios)]
    rows = [
        [
            lookup.title_of(results, name),
            *(_load(found.get((scenario, name)), best.get(scenario) == name) for scenario in scenarios),
        ]
        for name in lookup.contenders(results, {entry["contender"] for entry in entries})
    ]
    return table(columns, rows)


def _load(entry: Mapping[str, Any] | None, best: bool) -> str:
    if entry is None:
        return text.NOTHING
    if not entry["load"]:
        return f"< {entry['below']:.2f}"
    return f"{'best  ' if best else ''}{entry['load']:.2f}"


def noise_table(results: Results) -> Html:
    """Every contender against itself."""
    columns = [
        Column("contender"), Column("cells", True), Column("p95, typical", True), Column("widest", True),
        Column("CPU, typical", True), Column("widest", True), Column("late, typical", True), Column("widest", True),
    ]  # fmt: skip
    rows = [
        Row(
            [
                lookup.title_of(results, found.contender),
                text.count(found.cpu.cells if found.cpu else None),
                *_percent(found.p95),
                *_percent(found.cpu),
                *_points(found.violations),
            ],
            "ours" if found.contender == OURS else "",
        )
        for found in noise(results)
    ]
    return table(columns, rows)


def _percent(found: Spread | None) -> tuple[str, str]:
    return (f"{100 * found.median:.0f} %", f"{100 * found.worst:.0f} %") if found else (text.NOTHING, text.NOTHING)


def _points(found: Spread | None) -> tuple[str, str]:
    if found is None:
        return text.NOTHING, text.NOTHING
    return f"{100 * found.median:.2f} points", f"{100 * found.worst:.2f} points"


def claims_table(results: Results, topic: Topic) -> Html:
    """A paper's words beside our own figures."""
    rows = [
        [
            _with_small(_unbroken(claim.says), _unbroken(claim.source)),
            _with_small(*answer(results, claim, claim.rule)),
            _with_small(*answer(results, claim, claim.ours)),
        ]
        for claim in CLAIMS
        if claim.topic == topic
    ]
    return table([Column("the paper says"), Column("theirs, here", True), Column("Headgate, here", True)], rows)


def _with_small(words: str, detail: str) -> Html:
    return join([words, element("small", detail)]) if detail else join([words])


def _unbroken(words: str) -> str:
    """No line ends between a figure and its unit."""
    return re.sub(r"(?<=\d) (?=[%s])|(?<=Sec\.) |(?<=Figs\.) |(?<=Fig\.) ", "\u00a0", words)


def cells_table(results: Results) -> Html:
    """Every cell and query: medians over repeats."""
    places = [
        Column(name, name in ("load", "cores")) for name in ("part", "scenario", "load", "cores", "contender", "query")
    ]
    measured = ("p50", "p95", "p99", "max per batch, p95", "late", "CPU s / million", "repeats")
    return table([*places, *(Column(name, True) for name in measured)], list(_cell_rows(results)))


def _cell_rows(results: Results) -> Iterable[Row]:
    for cell, repeats in lookup.by_cell(lookup.runs_of(results)).items():
        runs = list(repeats.values())
        place = [cell.part, cell.scenario, f"{cell.load:,g}", str(cell.cores), cell.contender]
        kind = "ours" if cell.contender == OURS else ""
        yield from (Row([*place, query, *_figures(runs, query)], kind) for query in runs[0]["queries"])


def few_batches_mark(runs: Sequence[Run], query: str) -> str:
    """Says that a p95 of batches is a maximum in some of the repeats."""
    return " (max)" if any(lookup.few_batches(run, query) for run in runs) else ""


def _figures(runs: Sequence[Run], query: str) -> list[Text]:
    latencies = {"p50_s": "", "p95_s": "", "p99_s": "", "batch_max_p95_s": few_batches_mark(runs, query)}
    cpu_s = [cost for run in runs if (cost := lookup.cpu_s_per_million(run)) is not None]
    aborted = sum(bool(run.get("aborted")) for run in runs)
    return [
        *(
            text.seconds(median(lookup.latency_s(run, query, key) for run in runs)) + mark
            for key, mark in latencies.items()
        ),
        text.share(median(lookup.violation_rate(run, query) for run in runs)),
        text.digits(median(cpu_s)) if cpu_s and math.isfinite(median(cpu_s)) else text.NOTHING,
        join([str(len(runs)), f", {aborted} cut short" if aborted else ""]),
    ]
