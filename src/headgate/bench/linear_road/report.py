"""The page about one run of the Linear Road benchmark, for somebody who does not believe it yet."""

from __future__ import annotations

from pathlib import Path

from headgate.bench.linear_road import sections
from headgate.bench.linear_road.lookup import FEW_BATCHES, OURS, Results, title_of
from headgate.bench.linear_road.measures import targets
from headgate.bench.linear_road.noise import speeds
from headgate.bench.linear_road.sections import NOT_MEASURED
from headgate.bench.linear_road.tables import (
    calibration_table,
    cells_table,
    contenders_table,
    noise_table,
    run_table,
)
from headgate.bench.linear_road.view import View
from headgate.bench.report.page import Html, Page, details, heading, note, paragraph
from headgate.bench.report.targets_table import score, targets_table


def write_report(results: Results, path: Path) -> Path:
    """Write the page to `path`; what the results do not hold is said to be missing."""
    return report(results).write(path)


def report(results: Results) -> Page:
    """The page, section by section: the verdict first, then what to doubt, then every figure."""
    view = View.of(results)
    page = Page("Linear Road: deadlines kept, and at what cost", _lead(results))
    page.section("Targets", *_targets(results))
    page.section("What was run", *_what(results))
    page.section("Noise", *_noise(results))
    page.section("Tail latency in the papers’ cells", *sections.tails(view))
    page.section("Average latency and throughput", *sections.averages(view))
    page.section("Late records", *sections.violations(view))
    page.section("Scaling over cores", *sections.scaling(view))
    page.section("What each module brings", *sections.modules(view))
    page.section("How much load keeps every promise", *sections.capacity(view))
    page.section("Mixed deadlines", *sections.mixed(view))
    page.section("Beside the clairvoyant limit", *sections.limit(view))
    page.section("What it costs", *sections.cpu(view))
    page.section("All cells", *_cells(results))
    return page


def _lead(results: Results) -> list[str]:
    where = results.get("machine") or {}
    on = f" on {where['cores']} cores" if where.get("cores") else ""
    return [
        "Streaming queries with deadlines on one Spark: Headgate against stock Spark with fixed triggers and against "
        f"the rules of Q-Spark and zStream, all in the same benchmark{on}. {score(targets(results))}."
    ]


def _targets(results: Results) -> list[Html]:
    return [
        paragraph(
            f"All rows are about {title_of(results, OURS)} as it comes. A ratio is made from runs of the same repeat, "
            "and the median over repeats is held against the target. “Close” means that some repeats meet it and some "
            "do not."
        ),
        targets_table(targets(results)),
        note(
            "A run of Headgate that was cut short counts as infinitely late, and a query that finished nothing as late "
            "with everything. Records that had no result at the end although their deadline had passed count in every "
            "share: a quantile among them lies beyond the end of the measurement (∞), and so does a mean. The other "
            "side counts with what it did finish, and records without a result with the least that they had waited, "
            "which flatters it; rows in which that happened say so."
        ),
    ]


def _what(results: Results) -> list[Html]:
    known = calibration_table(results)
    return [
        run_table(results),
        contenders_table(results),
        heading("Calibration"),
        paragraph(
            "Load 1.0 is the rate that stock Spark (FAIR, trigger 0) gets through all queries together at saturation, "
            "deadlines aside. Each query alone:"
        )
        if known
        else paragraph(NOT_MEASURED),
        known,
    ]


def _noise(results: Results) -> list[Html]:
    found = noise_table(results)
    if not found:
        alone = "No cell was measured more than once: differences in this report may be chance."
        return [paragraph(alone), *_speeds(results)]
    return [
        *_speeds(results),
        paragraph(
            "The same contender against itself: the highest repeat of a cell minus the lowest, for p95 latency and CPU "
            "as a share of the median. A difference between contenders that is smaller than this says nothing. Each "
            "repeat has traffic from a seed of its own, the same for all contenders, so this is the chance of the "
            "traffic and of the machine together."
        ),
        found,
    ]


def _speeds(results: Results) -> list[Html]:
    found = speeds(results)
    if found is None:
        return []
    lowest, middle, highest = found
    return [
        paragraph(
            "The machine itself: a little loop on each core, twice a second, took "
            f"{lowest:.2f} to {highest:.2f} times as long (median {middle:.2f}) during single measurements as during "
            "the calibration. A load is a share of what the machine could do at its speed in those minutes, and CPU "
            "seconds are told at the calibration’s speed; latencies are as measured."
        )
    ]


def _cells(results: Results) -> list[Html]:
    found = cells_table(results)
    if not found:
        return [paragraph(NOT_MEASURED)]
    explained = note(
        "∞: beyond the end of the measurement, or cut short. (max): some run had fewer than "
        f"{FEW_BATCHES} batches, whose p95 is their maximum. CPU and records are counted over the same measured time; "
        "a dash: results that did not count records so."
    )
    return [details("Every cell and query, medians over repeats", explained, found)]
