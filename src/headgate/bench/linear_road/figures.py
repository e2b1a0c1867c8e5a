"""The pictures of the Linear Road report: the papers' figures redrawn, then what they did not ask."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from headgate.bench.linear_road import lookup
from headgate.bench.linear_road.load import is_rate, load_text
from headgate.bench.linear_road.lookup import OURS, TRIGGER_0, Run, figure_of
from headgate.bench.linear_road.measures import capacities
from headgate.bench.linear_road.view import View, by_contender, group_by, queries_of
from headgate.bench.report import text
from headgate.bench.report.charts import Bar, Curve, Line, bars, cdfs, end_of_axis, legend, lines
from headgate.bench.report.colours import Style
from headgate.bench.report.page import Html, figure

Value = Callable[[Run], float | None]

PAPERS_CONTENDERS = (OURS, "zstream-edf", "zstream-rdas", TRIGGER_0, "sb-fifo", "sb-fair")
"""The four of zStream's figures, Headgate, and Spark's default, which zStream does not compare itself with."""

LIMIT_STYLE = Style("ink", "solid", 1.0)


def cdf_figure(view: View, runs: Sequence[Run], key: str, caption: str, what: str) -> Html:
    """A panel per query: the CDFs of every contender, repeats pooled, against the query's deadline."""
    found = by_contender(runs)
    curves = {query: list(_curves(view, found, query, key)) for query in queries_of(runs)}
    deadlines = {query: float(run["queries"][query]["deadline_s"]) for run in runs for query in run["queries"]}
    ends = {query: end_of_axis(curves[query], deadlines[query]) for query in curves}
    if len(set(deadlines.values())) == 1:  # then panels can be compared by eye
        ends = dict.fromkeys(ends, max(ends.values()))
    panels = [
        cdfs(_name(query), curves[query], deadlines[query], what, end=ends[query], stepped=key == "batch_max_cdf")
        for query in curves
        if curves[query]
    ]
    return figure(panels, f"{caption}{_missing(view, runs)}", view.legend(found))


def _curves(view: View, found: dict[str, list[Run]], query: str, key: str) -> Iterable[Curve]:
    for name in lookup.contenders(view.results, found):
        points = lookup.pooled(run["queries"][query].get(key) or [] for run in found[name] if query in run["queries"])
        if points:
            yield Curve(view.title(name), view.styles[name], points)


def _missing(view: View, runs: Sequence[Run]) -> str:
    """What curves cannot show: records that never got a result."""
    cut = dict.fromkeys(view.title(run["contender"]) for run in runs if run.get("aborted"))
    empty = dict.fromkeys(
        f"{view.title(run['contender'])} ({_name(query)})"
        for run in runs
        for query in run["queries"]
        if not lookup.finished(run, query)
    )
    left = dict.fromkeys(
        f"{view.title(run['contender'])} ({_name(query)})"
        for run in runs
        for query, found in run["queries"].items()
        if found.get("left_late_rows") and lookup.finished(run, query)
    )
    told = f" Cut short, so in truth worse than drawn: {', '.join(cut)}." if cut else ""
    told += f" Ends below 100 % because records had no result at the end: {', '.join(left)}." if left else ""
    return told + (f" Finished nothing: {', '.join(empty)}." if empty else "")


def bar_panel(view: View, title: str, runs: Sequence[Run], value: Value, form: Callable[[float], str]) -> Html:
    """A bar per contender, with the repeats as dots."""
    found = by_contender(runs)
    rows = []
    for name in lookup.contenders(view.results, found):
        values = [known for run in found[name] if (known := value(run)) is not None]
        rows.append(Bar(view.title(name), view.styles[name], values))
    return bars(title, rows, form)


def average_figures(view: View, runs: Sequence[Run], where: str) -> list[Html]:
    """zStream's Figs. 13-14: average latency and throughput of LR1 for every deadline."""
    kinds: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        ("mean_s", f"Average latency of LR1, {where}.", text.seconds),
        (
            "rows_per_busy_s",
            f"Throughput of LR1 while a batch runs (Q-Spark's definition), rows/s, {where}.",
            text.count,
        ),
    )
    return [_per_scenario(view, runs, "lr1", metric, caption, form) for metric, caption, form in kinds]


def _per_scenario(
    view: View, runs: Sequence[Run], query: str, metric: str, caption: str, form: Callable[[float], str]
) -> Html:
    used = [run for run in runs if query in run["queries"]]
    panels = [
        bar_panel(view, _deadline(group[0]), group, _of(query, metric), form) for group in group_by(used, "scenario")
    ]
    return figure(panels, caption)


def violation_figure(view: View, runs: Sequence[Run], caption: str) -> Html:
    """Q-Spark's Fig. 5: the share of late records, a panel per query."""
    panels = [
        bar_panel(view, _name(query), runs, _of(query, "violation_rate"), text.share) for query in queries_of(runs)
    ]
    return figure(panels, caption)


def module_figure(view: View, runs: Sequence[Run], caption: str) -> Html:
    """zStream's Fig. 16: average latency of LR1 with each module, over that of SB-FIFO in the same repeat."""
    base = {
        (run["scenario"], run["load"], run["repeat"]): figure_of(run, "lr1", "mean_s", lenient=True)
        for run in runs
        if run["contender"] == "sb-fifo"
    }

    def normalised(run: Run) -> float | None:
        stock_s = base.get((run["scenario"], run["load"], run["repeat"]))
        return figure_of(run, "lr1", "mean_s") / stock_s if stock_s and math.isfinite(stock_s) else None

    panels = [
        bar_panel(view, f"{_deadline(group[0])}, {load_text(group[0]['load'])}", group, normalised, text.times)
        for group in group_by(runs, "scenario", "load")
    ]
    return figure(panels, caption)


def scaling_figure(view: View, runs: Sequence[Run], caption: str) -> Html:
    """zStream's Fig. 15, for all queries: p95 of the maximum latency per batch over the number of cores."""
    found = by_contender(runs)
    panels = []
    for query in queries_of(runs):
        series = [
            _line(view, name, found[name], "cores", _of(query, "batch_max_p95_s"))
            for name in lookup.contenders(view.results, found)
        ]
        panels.append(lines(_name(query), series, "cores", lambda value: f"{value:g} s"))
    return figure(panels, caption, view.legend(found))


def limit_figure(view: View, runs: Sequence[Run], scenario: str, caption: str) -> Html:
    """Late records over the load, a panel per query, with the clairvoyant limit as a thin line."""
    found = by_contender(runs)
    limits = {
        entry["load"]: entry["violation_rates"]
        for entry in view.results.get("limit") or []
        if entry["scenario"] == scenario and not is_rate(entry["load"])
    }
    panels = []
    for query in queries_of(runs):
        series = [
            _line(view, name, found[name], "load", _of(query, "violation_rate"))
            for name in lookup.contenders(view.results, found)
        ]
        known = {load: [rates[query]] for load, rates in limits.items() if query in rates}
        series += [Line("clairvoyant limit", LIMIT_STYLE, known, dots=False)] if known else []
        panels.append(lines(_name(query), series, "load", _whole_share, mark=0.01, squeezed=True))
    return figure(panels, caption, _with_limit(view, found, bool(limits)))


def _with_limit(view: View, names: Iterable[str], limit: bool) -> Html:
    entries = [(view.title(name), view.styles[name]) for name in lookup.contenders(view.results, names)]
    return legend(entries + ([("clairvoyant limit (simulated)", LIMIT_STYLE)] if limit else []))


def cpu_figure(view: View, runs: Sequence[Run], caption: str) -> Html:
    """CPU seconds per million records over the load, a panel per scenario."""
    found = by_contender(runs)
    panels = []
    for group in group_by(runs, "scenario"):
        members = by_contender(group)
        series = [
            _line(view, name, members[name], "load", lookup.cpu_s_per_million)
            for name in lookup.contenders(view.results, members)
        ]
        panels.append(lines(group[0]["scenario"], series, "load", lambda value: f"{value:g}"))
    return figure(panels, caption, view.legend(found))


def capacity_figure(view: View, caption: str) -> Html:
    """Bars per scenario, all on one scale; the best static setting is named as such."""
    entries, limits = view.results.get("capacity") or [], view.results.get("capacity_limit") or []
    end = max((entry["load"] for entry in [*entries, *limits]), default=1.0)
    panels = []
    for scenario in dict.fromkeys(entry["scenario"] for entry in entries):
        best = (view.results.get("best_static") or {}).get(scenario)
        found = capacities(view.results, scenario)
        rows = [
            Bar(
                view.title(name) + (" – best static" if name == best else ""),
                view.styles[name],
                [*found[name].values()],
            )
            for name in lookup.contenders(view.results, found)
        ]
        if unbeaten := [entry["load"] for entry in limits if entry["scenario"] == scenario]:
            rows.append(Bar("clairvoyant limit (simulated)", LIMIT_STYLE, unbeaten))
        panels.append(bars(scenario, rows, lambda load: f"{load:.2f}", end=end))
    return figure(panels, caption)


def _line(view: View, name: str, runs: Sequence[Run], axis: str, value: Value) -> Line:
    places: dict[float, list[float]] = {}
    for run in runs:
        if (known := value(run)) is not None:
            places.setdefault(float(run[axis]), []).append(known)
    return Line(view.title(name), view.styles[name], places)


def _of(query: str, metric: str) -> Value:
    """The figure of one query, as a function of the run."""
    return lambda run: figure_of(run, query, metric) if query in run["queries"] else None


def _name(query: str) -> str:
    return query.upper() if query.startswith("lr") else query


def _deadline(run: Run) -> str:
    return f"deadline {next(iter(run['queries'].values()))['deadline_s']:g} s"


def _whole_share(value: float) -> str:
    return f"{100 * value:g} %"
