"""The testbed's part of the page: latencies over rates by contender, every figure in a table, and where it loses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from headgate.bench.hone.forecast import most_to_gain
from headgate.bench.hone.programme import CONTENDERS, MAIN, middle
from headgate.bench.hone.skew import CATCH_UP, PARTITIONS, TITLES, WHY
from headgate.bench.hone.spark_targets import OURS, Comparison, Results, Run, losses, slowest_s
from headgate.bench.report import text
from headgate.bench.report.charts import Bar, Line, bars, legend, lines
from headgate.bench.report.colours import styles
from headgate.bench.report.page import (
    Column,
    Html,
    Page,
    Row,
    Text,
    badge,
    details,
    figure,
    heading,
    join,
    note,
    paragraph,
    table,
)

STYLES = styles({each.name: each.kind for each in CONTENDERS.values()})

LATE_FEEDER = 0.5
"""Of a trigger: records that come later than planned by more than that are often in another batch than planned."""

MEASURES: dict[str, Callable[[Run], float]] = {
    "average": lambda run: float(run["mean_s"]),
    "p99 of all records": lambda run: float(run["p99_s"]),
    "p99 of the slowest partition": slowest_s,
}


def add_sections(page: Page, results: Results) -> None:
    """Everything that was measured on Spark."""
    page.section("On Spark: how it was measured", *_method(results))
    page.section("On Spark: latency over input rate", *_over_rates(results))
    page.section("On Spark: partition by partition", *_by_partition(results))
    page.section("On Spark: grouping and length of sentences", *_workloads(results))
    page.section("On Spark: where largest backlog first loses", *_losses(results))
    page.section("On Spark: why", *_why())
    page.section("On Spark: all figures", *_everything(results))


def _method(results: Results) -> list[Html]:
    about, settings = results["machine"], results["settings"]
    rows = [
        [
            name, text.seconds(each["trigger_s"]), text.count(each["rows"]),
            text.count(each["rows"] / each["trigger_s"]),
            *(text.seconds(each["costs"][source]["fixed_s"]) for source in ("lbf", "spark")),
        ]
        for name, each in results["calibration"].items()
    ]  # fmt: skip
    columns = [
        Column("workload"), Column("trigger", True), Column("room, records", True), Column("records/s", True),
        Column("empty batch, Headgate’s source", True), Column("empty batch, Spark’s", True),
    ]  # fmt: skip
    return [
        paragraph(
            f"WordCount over sentences in {PARTITIONS} partitions of a real Kafka broker, Spark {results['spark']}, "
            f"{about['cores']} cores shared with broker and feeder. Every contender has the same trigger and the same "
            "room in a batch (maxOffsetsPerTrigger); they differ in which records fill it. Latency is from the "
            "broker’s timestamp to the commit of the batch, of every record, read from checkpoint and topic. "
            f"Records count that came within {settings['measure_s']:g} s, after {settings['settle_s']:g} s."
        ),
        paragraph(
            "Hone decides every 10 to 130 ms. A micro-batch costs more than that before it has read a record; the "
            "trigger is the shortest that both sources bear, and the room what the slower one can do in it."
        ),
        table(columns, rows),
        paragraph(_punctuality(results)),
        *(paragraph(f"{TITLES[skew]}: {why}") for skew, why in WHY.items() if skew in _values(results["runs"], "skew")),
    ]


def _punctuality(results: Results) -> str:
    runs = [run for run in results["runs"] if "feeder_lag_p99_s" in run]
    return (
        "The feeder’s lag is how much later than planned the broker got a record. It is known of "
        f"{len(runs)} of {len(results['runs'])} runs. Its p99 is above {LATE_FEEDER:g} of the trigger in "
        f"{_late(results, runs)} of them. Such runs are marked in the table of all figures: their traffic may have "
        "been easier than planned."
    )


def _late(results: Results, runs: Sequence[Run]) -> int:
    """How many of these runs had a feeder that was held up."""
    calibration = results["calibration"]
    return sum(run["feeder_lag_p99_s"] > LATE_FEEDER * calibration[run["workload"]]["trigger_s"] for run in runs)


def _over_rates(results: Results) -> list[Html]:
    parts: list[Html] = []
    for skew in _values(results["runs"], "skew"):
        runs = [run for run in results["runs"] if run["skew"] == skew and run["workload"] == MAIN.name]
        panels = [
            lines(f"{name}, s", _lines(runs, measure), "load", text.seconds) for name, measure in MEASURES.items()
        ]
        caption = "Medians over repeats, dots are the repeats. Load 1 is all that the batch room can take."
        parts += [heading(TITLES[skew]), figure(panels, caption, _legend(runs))]
    return parts


def _lines(runs: Sequence[Run], measure: Callable[[Run], float]) -> list[Line]:
    found = []
    for name in _values(runs, "contender"):
        places: dict[float, list[float]] = {}
        for run in runs:
            if run["contender"] == name and run["rows"]:
                places.setdefault(float(run["load"]), []).append(measure(run))
        if places:
            found.append(Line(CONTENDERS[name].title, STYLES[name], places))
    return found


def _by_partition(results: Results) -> list[Html]:
    """As the paper's Fig. 11, at the middle rate; partitions are ranked, since another one is hit in each repeat."""
    panels = []
    chosen = [run for run in results["runs"] if run["workload"] == MAIN.name and run["rows"]]
    for skew in _values(chosen, "skew"):
        load = middle(_values([run for run in chosen if run["skew"] == skew], "load"))
        runs = [run for run in chosen if run["skew"] == skew and run["load"] == load]
        shown = [
            Line(CONTENDERS[name].title, STYLES[name], _ranked(runs, name), dots=False)
            for name in _values(runs, "contender")
        ]
        panels.append(lines(f"{TITLES[skew]}, s", shown, f"partition by its p99, load {load:g}", text.seconds))
    return [figure(panels, "p99 of each partition, the slowest first; medians over repeats.", _legend(chosen))]


def _ranked(runs: Sequence[Run], name: str) -> dict[float, list[float]]:
    places: dict[float, list[float]] = {}
    for run in runs:
        known = sorted((each["p99_s"] for each in run["partitions"] if each["rows"]), reverse=True)
        for rank, value in enumerate(known if run["contender"] == name else [], 1):
            places.setdefault(float(rank), []).append(value)
    return places


def _workloads(results: Results) -> list[Html]:
    chosen = [run for run in results["runs"] if run["skew"] == CATCH_UP and run["rows"]]
    load = middle(_values(chosen, "load") or [0.0])
    runs = [run for run in chosen if run["load"] == load]
    names = _values(runs, "workload")
    if len(names) < 2:
        return []
    panels = [bars(name, _bars([run for run in runs if run["workload"] == name]), text.seconds) for name in names]
    return [figure(panels, f"p99 of the slowest partition, {TITLES[CATCH_UP]}, load {load:g}; dots are the repeats.")]


def _bars(runs: Sequence[Run]) -> list[Bar]:
    return [
        Bar(CONTENDERS[name].title, STYLES[name], [slowest_s(run) for run in runs if run["contender"] == name])
        for name in CONTENDERS
        if name in _values(runs, "contender")
    ]


def _losses(results: Results) -> list[Html]:
    found = losses(results)
    if not found:
        return [paragraph("Nowhere by more than 5 % of the slowest partition’s p99, against any other contender.")]
    columns = [
        Column("setting"), Column("against"), Column("p99 of the slowest partition", True), Column("repeats", True),
    ]  # fmt: skip
    return [table(columns, [_loss(each) for each in found])]


def _loss(each: Comparison) -> list[str]:
    setting = f"{each.workload}, {TITLES[each.skew]}, load {each.load:g}"
    return [setting, CONTENDERS[each.peer].title, text.times(each.ratio), text.from_to(each.ratios, "ratio")]


def _why() -> list[Html]:
    most = text.share(most_to_gain(PARTITIONS), 0)
    return [
        paragraph(
            "Every rule takes as many records into a batch as any other. So at every moment as many wait in all, and "
            "the average over all records is the same once nothing waits any more: a rule can only choose who waits. "
            "Hone’s average falls because its peer leaves room unused; Spark’s split does not, but for a rounding."
        ),
        paragraph(
            "Taking the oldest first makes the largest latency as small as it can be. Largest backlog first does the "
            "same where all partitions have the same rate and one of them has had a burst: it serves the burst alone, "
            f"and a proportional split takes longer over it. With {PARTITIONS} partitions the most that any rule can "
            f"save there is {most} of a large burst’s largest latency, a little more with more partitions."
        ),
        paragraph(
            "Where rates differ for long, backlog is no measure of age. Ten records of a quiet partition may be older "
            "than a thousand of a busy one, and largest backlog first lets them wait until they are as many. A "
            "proportional split keeps the same age everywhere there."
        ),
    ]


def _everything(results: Results) -> list[Html]:
    columns = [Column("setting"), Column("contender")] + [
        Column(title, True)
        for title in (
            "average", "p50", "p95", "p99", "slowest partition’s p99", "forecast", "largest backlog", "batch p50",
            "batches over the trigger", "never taken", "feeder’s lag, p99", "feeder’s lag, largest",
        )
    ]  # fmt: skip
    places = dict.fromkeys((run["workload"], run["skew"], run["load"]) for run in results["runs"])
    rows = [row for place in places for row in _rows(results, place)]
    return [
        note(
            "Medians over repeats, but for the largest lag and the records never taken. The forecast is a simulation "
            "of the rule alone, with batches that are never late, made before the runs; Spark’s own source is held "
            "against the forecast of a proportional split."
        ),
        details(f"{len(results['runs'])} runs", table(columns, rows)),
    ]


def _rows(results: Results, place: tuple[Any, ...]) -> list[Row]:
    runs = [run for run in results["runs"] if (run["workload"], run["skew"], run["load"]) == place and run["rows"]]
    rows = []
    for name in _values(runs, "contender"):
        mine = [run for run in runs if run["contender"] == name]
        cells = [
            f"{place[0]}, {place[1]}, {place[2]:g}", CONTENDERS[name].title,
            *(text.seconds(median(run[key] for run in mine)) for key in ("mean_s", "p50_s", "p95_s", "p99_s")),
            text.seconds(median(map(slowest_s, mine))), text.seconds(_forecast(results, place, name)),
            text.count(median(run["largest_backlog_rows"] for run in mine)),
            text.seconds(median(run["batch_p50_s"] for run in mine)),
            text.share(median(run["overruns"] for run in mine), 0),
            text.count(sum(run["unfinished_rows"] for run in mine)),
            *_feeder_lag(results, mine),
        ]  # fmt: skip
        rows.append(Row(cells, "ours" if name == OURS else ""))
    return rows


def _feeder_lag(results: Results, runs: Sequence[Run]) -> list[Text]:
    """p99 with a mark if runs were late, and the largest; results that are older than these figures have none."""
    known = [run for run in runs if "feeder_lag_p99_s" in run]
    if not known:
        return [text.NOTHING, text.NOTHING]
    late = _late(results, known)
    p99 = text.seconds(median(run["feeder_lag_p99_s"] for run in known))
    marked = join([p99, " ", badge(f"late in {late} of {len(known)}", "bad")]) if late else p99
    return [marked, text.seconds(max(run["feeder_lag_max_s"] for run in known))]


def _forecast(results: Results, place: tuple[Any, ...], name: str) -> float | None:
    rule = CONTENDERS[name].compose or "proportional"
    found = (e for e in results["forecast"] if (e["workload"], e["skew"], e["load"], e["contender"]) == (*place, rule))
    return next((slowest_s(each) for each in found if each["rows"]), None)


def _legend(runs: Sequence[Run]) -> Html:
    return legend([(CONTENDERS[name].title, STYLES[name]) for name in CONTENDERS if name in _values(runs, "contender")])


def _values(runs: Sequence[Run], key: str) -> list[Any]:
    """Different values in a stable order: contenders as they are known, others as they came."""
    found = list(dict.fromkeys(run[key] for run in runs))
    return [name for name in CONTENDERS if name in found] if key == "contender" else found
