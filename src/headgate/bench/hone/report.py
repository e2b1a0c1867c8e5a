"""The page about Hone's algorithm: the paper's figures redrawn, its claims beside ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from headgate.bench.hone import spark_report, spark_targets
from headgate.bench.hone.fairness import fairness_section, fairness_target
from headgate.bench.hone.study import Results, counterpart, place, reduction, settings_of
from headgate.bench.report import text
from headgate.bench.report.charts import Line, legend, lines
from headgate.bench.report.colours import Style
from headgate.bench.report.page import Column, Html, Page, figure, note, paragraph, table
from headgate.bench.report.target import Sample, Target, make_target
from headgate.bench.report.targets_table import score, targets_table

TITLES = {
    "lbf": "largest backlog first", "rrb": "round robin (the paper’s)",
    "rr-skipping": "round robin, skipping empty queues",
    "proportional": "proportional to backlog",
}  # fmt: skip
STYLES = {
    "lbf": Style("headgate", "solid", 2.0), "rrb": Style("stock", "solid", 1.2),
    "rr-skipping": Style("stock", "dashed", 1.2), "proportional": Style("paper", "dotted", 1.4),
}  # fmt: skip

BACKLOG_REDUCTION, DELAY_REDUCTION, DELAY_REDUCTION_QUEUES = 0.833, 0.898, 0.701


def write_report(results: Results | None, path: Path, on_spark: Results | None = None) -> Path:
    """One page of what there is: the simulation, the testbed on Spark, or both."""
    simulated, measured = targets(results) if results else [], spark_targets.targets(on_spark) if on_spark else []
    page = Page("Largest backlog first", _lead(results, simulated, on_spark, measured))
    if results:
        page.section("Targets", targets_table(simulated), _how_to_read())
        page.section("Maximum backlog (Fig. 6)", *_pair(results, "max_backlog", "tuples", text.count))
        page.section("Jain’s index (Fig. 7)", *fairness_section(results))
        page.section("Queueing delay (Fig. 8)", *_pair(results, "delay_s", "s", text.seconds))
        page.section("Against the offline optimum", *_optimum(results))
    if on_spark:
        page.section("On Spark: targets", targets_table(measured))
        spark_report.add_sections(page, on_spark)
    return page.write(path)


def _lead(
    results: Results | None, simulated: list[Target], on_spark: Results | None, measured: list[Target]
) -> list[str]:
    lead = []
    if results:
        lead.append(
            f"Hone’s scheduler against round robin, simulated as in its paper, {results['seeds']} seeds. "
            f"{score(simulated)}."
        )
    if on_spark:
        lead.append(f"The same rule as the composition of Spark’s batches, on WordCount. {score(measured)}.")
    return lead


def targets(results: Results) -> list[Target]:
    """The paper says "up to", of one run of each setting: here the best setting of each seed, and the median seed."""
    return [
        _target(results, "Largest backlog under round robin’s, up to", "max_backlog", None, BACKLOG_REDUCTION),
        _target(results, "Average delay under round robin’s, up to, over rates", "delay_s", "rate", DELAY_REDUCTION),
        _target(
            results, "Average delay under round robin’s, up to, over numbers of queues", "delay_s", "queues",
            DELAY_REDUCTION_QUEUES,
        ),
        fairness_target(results),
    ]  # fmt: skip


def _target(results: Results, measure: str, key: str, varied: str | None, bound: float) -> Target:
    samples = []
    for ours in settings_of(results, "lbf", varied):
        found = reduction(ours[key], counterpart(results, ours, "rrb")[key])
        samples += [Sample(seed, float(value), place(ours)) for seed, value in enumerate(found)]
    return make_target(measure, bound, True, "share", samples, max, "the best setting of each seed")


def _how_to_read() -> Html:
    return note(
        "A reduction is made seed by seed on the same arrivals. The paper’s figures are the largest over its settings, "
        "of one run each, and so are these, once for every seed. Its round robin also serves empty queues; one that "
        "skips them is drawn beside it, since nobody would build the other."
    )


def _pair(results: Results, key: str, unit: str, form: Callable[[float], str]) -> list[Html]:
    panels = [
        lines(title, [_line(results, name, varied, key) for name in TITLES], what, form)
        for varied, title, what in (
            ("rate", f"10 queues, {unit}", "tuples/s per queue"),
            ("queues", f"1,000 tuples/s per queue, {unit}", "queues"),
        )
    ]
    caption = "Medians over seeds; dots are the 5th and the 95th percentile of the seeds."
    return [figure(panels, caption, legend([(TITLES[name], STYLES[name]) for name in TITLES]))]


def _line(results: Results, name: str, varied: str, key: str) -> Line:
    places = {
        float(each[varied]): np.percentile(each[key], [5, 50, 95]).tolist()
        for each in settings_of(results, name, varied)
    }
    return Line(TITLES[name], STYLES[name], places)


def _optimum(results: Results) -> list[Html]:
    rows = [
        [
            str(each["queues"]), f"{each['rate']:,}", f"{np.mean(each['lbf']):.1f}", f"{np.mean(each['optimum']):.1f}",
            f"{max(a / b for a, b in zip(each['lbf'], each['optimum'], strict=True) if b):.2f}", str(each["proven"]),
        ]
        for each in results["optimum"]
    ]  # fmt: skip
    columns = [
        Column("queues", True), Column("tuples/s each", True), Column("LBF", True), Column("optimum", True),
        Column("worst ratio", True), Column("proven bound", True),
    ]  # fmt: skip
    return [
        paragraph("The largest backlog against the least that is possible for somebody who knows all arrivals."),
        table(columns, rows),
    ]
