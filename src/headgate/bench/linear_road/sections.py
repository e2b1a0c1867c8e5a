"""The sections of the Linear Road report that show what was measured, each with a paper's words beside it."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.bench.linear_road import figures, lookup, tables
from headgate.bench.linear_road.figures import PAPERS_CONTENDERS
from headgate.bench.linear_road.load import is_rate, load_text
from headgate.bench.linear_road.lookup import OURS, TRIGGER_0, Results, Run
from headgate.bench.linear_road.tables import claims_table, grid_table, sweep_table
from headgate.bench.linear_road.view import View, group_by
from headgate.bench.report import text
from headgate.bench.report.page import Html, heading, note, paragraph

PAPER_FIGURES: dict[tuple[float, str], int] = {
    (5, "low"): 7,
    (8, "low"): 8,
    (10, "low"): 9,
    (5, "high"): 10,
    (8, "high"): 11,
    (10, "high"): 12,
}
"""zStream's figures by deadline and traffic."""

NOT_MEASURED = "Not measured in this run."

_FEW = f" (the maximum, in runs with fewer than {lookup.FEW_BATCHES} batches)"


_RACE = "A race in coarse steps, one run each: who broke a load (<) that another had kept was out."


def tails(view: View) -> list[Html]:
    runs = [run for run in lookup.papers_cells(view.results) if run["contender"] in PAPERS_CONTENDERS]
    bursty = [
        run
        for run in lookup.runs_of(view.results, parts=["cells"])
        if run["scenario"].endswith("-bursty") and run["contender"] in PAPERS_CONTENDERS
    ]
    if not runs and not bursty:
        return [paragraph(NOT_MEASURED)]
    intro = (
        "The maximum latency of each batch, as in zStream’s Figs. 7–12, with 1,000 and 10,000 reports per second as "
        "their low and high traffic. Loads are shares of what this machine can do; where the papers’ rates were not "
        "measured, the lowest and the highest load stand for them, and a single load for the high one."
    )
    return [
        paragraph(intro),
        claims_table(view.results, "tail"),
        note(
            "Changes are medians over cells (from … to). “Theirs” is the paper’s rule carried out by Headgate on "
            "today’s Spark. Curves pool all repeats; one that ends below 100 % had records without a result at the "
            "end, which count as one more batch. An axis that ends at three deadlines cuts off slower curves."
        ),
        *(_tail(view, group) for group in group_by(sorted([*runs, *bursty], key=_papers_order), "load", "scenario")),
    ]


def _tail(view: View, runs: Sequence[Run]) -> Html:
    first = runs[0]
    caption = f"{_scenario(view.results, first['scenario'])}, {load_text(first['load'])}."
    if number := _paper_figure(view.results, first):
        caption += f" zStream’s Fig. {number}."
    return figures.cdf_figure(view, runs, "batch_max_cdf", caption, "maximum latency of a batch, s")


def _papers_order(run: Run) -> tuple[bool, float, float]:
    """What the papers show first, then by load and deadline."""
    return run["scenario"].endswith("-bursty"), run["load"], _deadline_s(run)


def _deadline_s(run: Run) -> float:
    return float(next(iter(run["queries"].values()))["deadline_s"])


def _paper_figure(results: Results, run: Run) -> str:
    """Which figure of zStream this is."""
    if not run["scenario"].endswith("-u"):
        return ""
    deadline_s = _deadline_s(run)
    loads = lookup.traffic_loads(results)
    numbers = [
        PAPER_FIGURES[deadline_s, name]
        for name in ("low", "high")
        if (deadline_s, name) in PAPER_FIGURES and name in loads and lookup.same_load(run["load"], loads[name])
    ]
    return " and ".join(map(str, numbers))


def averages(view: View) -> list[Html]:
    runs = [run for run in lookup.papers_cells(view.results) if run["contender"] in PAPERS_CONTENDERS]
    if not runs:
        return [paragraph(NOT_MEASURED)]
    drawn = [
        picture
        for group in group_by(runs, "load")
        for picture in figures.average_figures(view, group, load_text(group[0]["load"]))
    ]
    return [
        paragraph(
            "zStream’s Figs. 13–14, for LR1 as there. Bars are medians, dots single repeats. Throughput is told twice, "
            "since the papers define it differently."
        ),
        claims_table(view.results, "average"),
        *drawn,
        heading("Finished records per second, all queries together"),
        grid_table(view.results, runs, lookup.rows_per_s, text.count),
    ]


def violations(view: View) -> list[Html]:
    runs = lookup.papers_cells(view.results)
    if not runs:
        return [paragraph(NOT_MEASURED)]
    longest_s = max(map(_deadline_s, runs))
    drawn = [
        figures.violation_figure(
            view, group, f"{_scenario(view.results, group[0]['scenario'])}, {load_text(group[0]['load'])}."
        )
        for group in group_by([run for run in runs if _deadline_s(run) == longest_s], "scenario", "load")
    ]
    return [
        paragraph("The share of records later than their deadline, as in Q-Spark’s Fig. 5 (there with 10 s)."),
        claims_table(view.results, "violations"),
        *drawn,
        heading("The worst query of each cell"),
        grid_table(view.results, runs, lookup.worst_violation_rate, text.share),
    ]


def scaling(view: View) -> list[Html]:
    runs = lookup.runs_of(view.results, parts=["scaling"])
    if not runs:
        return [paragraph(NOT_MEASURED)]
    loads = ", ".join(
        f"{group[0]['scenario']}, {load_text(group[0]['load'])}" for group in group_by(runs, "scenario", "load")
    )
    few = any(tables.few_batches_mark([run], query) for run in runs for query in run["queries"])
    what = f"p95 of the maximum latency per batch{_FEW if few else ''}"
    caption = f"{what}, {loads}; the rate is the same with any number of cores."
    return [
        paragraph("zStream’s Fig. 15 adds workers; here the same machine lends more of its cores."),
        claims_table(view.results, "scaling"),
        note("A change is the figure with the most cores against the one with the fewest."),
        figures.scaling_figure(view, runs, caption),
    ]


def modules(view: View) -> list[Html]:
    runs = lookup.module_runs(view.results)
    if not runs:
        return [paragraph(NOT_MEASURED)]
    caption = "Average latency of LR1 over that of stock FIFO with trigger = deadline in the same repeat."
    return [
        paragraph("zStream’s Fig. 16: admission without scheduling, scheduling without admission, and both."),
        claims_table(view.results, "modules"),
        figures.module_figure(view, runs, caption),
    ]


def capacity(view: View) -> list[Html]:
    if not view.results.get("capacity"):
        return [paragraph(NOT_MEASURED)]
    caption = "SLO capacity: the highest load at which every query keeps its promise. Bar: median; dots: repeats."
    swept = sweep_table(view.results)
    parts = [figures.capacity_figure(view, caption)]
    if swept:
        parts += [heading("The search for the best static trigger"), paragraph(_RACE), swept]
    return parts


def mixed(view: View) -> list[Html]:
    groups = group_by(lookup.runs_of(view.results, parts=["mixed"]), "scenario", "load")
    if not groups:
        return [paragraph(NOT_MEASURED)]
    drawn = [
        figures.cdf_figure(
            view, group, "cdf", f"{_scenario(view.results, group[0]['scenario'])}, {load_text(group[0]['load'])}.",
            "latency of a record, s",
        )
        for group in groups
    ]  # fmt: skip
    return [
        paragraph(
            "Record latencies against each query’s own deadline (dashed). A curve that ends below 100 % had records "
            "without a result at the end."
        ),
        *drawn,
    ]


def limit(view: View) -> list[Html]:
    best = view.results.get("best_static") or {}
    drawn = []
    for group in group_by(_at_loads(view), "scenario"):
        scenario = group[0]["scenario"]
        shown = {OURS, "zstream-edf", TRIGGER_0, best.get(scenario)}
        runs = [run for run in group if run["contender"] in shown]
        if runs and any(entry["scenario"] == scenario for entry in view.results.get("limit") or []):
            drawn.append(figures.limit_figure(view, runs, scenario, f"{_scenario(view.results, scenario)}."))
    if not drawn:
        return [paragraph(NOT_MEASURED)]
    return [
        paragraph(
            "Late records over the load, beside a simulated scheduler that knows all arrivals and costs beforehand. "
            "The axis is compressed (square root), so that the one per cent that a promise allows (dashed) can be seen."
        ),
        *drawn,
    ]


def _at_loads(view: View) -> list[Run]:
    """What can be drawn over the load."""
    return [run for run in lookup.runs_of(view.results, parts=["cells", "mixed"]) if not is_rate(run["load"])]


def cpu(view: View) -> list[Html]:
    runs = _at_loads(view)
    if not runs:
        return [paragraph(NOT_MEASURED)]
    caption = (
        "CPU seconds of the whole application (JVM, Python workers, Headgate) per million finished records, both "
        "within the measured time."
    )
    return [figures.cpu_figure(view, runs, caption)]


def _scenario(results: Results, name: str) -> str:
    title = (results.get("scenarios") or {}).get(name, {}).get("title")
    return f"{title[0].upper()}{title[1:]} ({name})" if title and title != name else name
