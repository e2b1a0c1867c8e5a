"""The page about state: Sl-Stream's figures 20 to 25 redrawn, its claims beside ours."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, median
from typing import Any

from headgate.bench.report import text
from headgate.bench.report.charts import Line, legend, lines
from headgate.bench.report.colours import Style
from headgate.bench.report.page import Column, Html, Page, figure, note, paragraph, table
from headgate.bench.report.target import Sample, Target, make_target
from headgate.bench.report.targets_table import score, targets_table

Results = dict[str, Any]

OURS, COPY = Style("headgate", "solid", 2.0), Style("stock", "solid", 1.4)
NAMES = [("7 + 3 fragments", OURS), ("single-stream copy", COPY)]

KINDS = {
    "aggregate-paced": "an aggregate with pauses",
    "join-paced": "a stream-stream join with pauses",
    "aggregate": "an aggregate without a pause",
    "join": "a stream-stream join without a pause",
}
"""Without a pause both cores are busy all the time; nobody who promises a latency runs a query like that."""

RESTORE_RATIO, GB_PER_S, SLOWDOWN = 0.5, 1.0, 1.03
PAPER = [
    ("recovery, 40 to 200 MB", "5.2 to 31.4 % faster than a checkpoint", "restore_s", "copy_back_s"),
    ("saving, 80 MB", "2.9 s against 3.7 s", "save_s", "copy_s"),
    ("saving, 200 MB", "6.2 s against 8.2 s", "save_s", "copy_s"),
]


def write_report(results: Results, path: Path) -> Path:
    """One page of what there is: without Spark, on Spark, or both."""
    rows = targets(results)
    page = Page("State in erasure-coded fragments", [f"7 raw and 3 check blocks at ten places. {score(rows)}."])
    page.section("Targets", targets_table(rows))
    if "sizes" in results:
        page.section("Recovery and saving (Figs 20, 21)", _how_to_read(results), *_sizes(results))
        page.section("Several instances at once (Fig. 22)", *_instances(results))
        page.section("The code (Figs 23, 24, 25)", *_code(results))
    for kind in KINDS:
        if kind in results:
            page.section(f"What it costs a running query: {KINDS[kind]}", *_spark(results[kind]))
    if "sizes" in results:
        page.section("The paper’s claims", *_claims(results))
    return page.write(path)


def targets(results: Results) -> list[Target]:
    rows = [_restore_target(results)] if "sizes" in results else []
    for name in ("encode", "decode") if "speed" in results else ():
        samples = [Sample(n, value / 1000, "two threads") for n, value in enumerate(results["speed"][name])]
        rows.append(
            make_target(f"{name.capitalize()}, in GB/s", GB_PER_S, True, "ratio", samples, _first, "7 + 3, 3 lost")
        )
    measured = [kind for kind in KINDS if kind in results] or ["aggregate-paced"]
    return rows + [_slowdown_target(results, kind) for kind in measured]


def _restore_target(results: Results) -> Target:
    largest = max(results["sizes"], key=lambda each: each["size_mb"])
    size = largest["size_mb"]
    pairs = zip(largest["restore_s"], largest["copy_back_s"], strict=True)
    samples = [Sample(n, ours / copy, f"{ours:.2f} s / {copy:.2f} s") for n, (ours, copy) in enumerate(pairs)]
    lost = results["programme"]["lost"]
    what = f"Restore of {size} MB with {lost} of 10 places lost, against a single-stream copy"
    return make_target(what, RESTORE_RATIO, False, "ratio", samples, _first, f"{size} MB")


def _slowdown_target(results: Results, kind: str) -> Target:
    what = f"Batch time with backups against without, {KINDS[kind]}"
    if kind not in results:
        return Target(what, SLOWDOWN, False, "ratio", note="run it with --spark aggregate --pace 1")
    found = results[kind]
    samples = [Sample(n, group["ratio"], f"group {n + 1}") for n, group in enumerate(found["groups"])]
    made_from = f"{found['state_mb']:,.0f} MB of state, a backup every {found['every']}"
    return make_target(what, SLOWDOWN, False, "ratio", samples, _first, made_from)


def _first(values: Any) -> float:
    return float(values[0])


def _bandwidth(results: Results) -> str:
    return f"{results['programme']['bandwidth_mb_s']:g}"


def _how_to_read(results: Results) -> Html:
    return note(
        f"Every place passes {_bandwidth(results)} MB/s, both ways. A copy goes file by file to one such place. "
        "Fragments go to ten, and come back from the seven that are left: three raw blocks have to be computed. "
        "Whatever comes back is compared with what was saved, byte by byte."
    )


def _sizes(results: Results) -> list[Html]:
    panels = [
        lines(
            title, [_line(results["sizes"], "size_mb", key, style) for key, style in pair], "MB of state", text.seconds
        )
        for title, pair in (
            (f"recovery, {results['programme']['lost']} places lost", (("restore_s", OURS), ("copy_back_s", COPY))),
            ("saving", (("save_s", OURS), ("copy_s", COPY))),
        )
    ]
    return [figure(panels, "Medians over repeats; dots are single repeats.", legend(NAMES))]


def _instances(results: Results) -> list[Html]:
    pair = (("restore_s", OURS), ("copy_back_s", COPY))
    shown = [_line(results["instances"], "instances", key, style) for key, style in pair]
    size = results["programme"]["instance_mb"]
    panel = lines(f"all restored, {size} MB each", shown, "instances", text.seconds)
    return [
        figure(
            [panel],
            "Fragments and copies share the seven places that are left; a copy is at one of them.",
            legend(NAMES),
        )
    ]


def _code(results: Results) -> list[Html]:
    panels = []
    for key, title, what in (
        ("raw", "3 check blocks, 3 lost", "raw blocks"),
        ("check", "8 raw blocks, all check blocks needed", "check blocks"),
        ("lost", "8 + 8 blocks", "lost blocks"),
    ):
        rows = results["code"][key]
        shown = [_line(rows, "at", "decode_ms", OURS), _line(rows, "at", "encode_ms", COPY)]
        panels.append(lines(title, shown, what, lambda value: f"{value:.1f} ms"))
    caption = "10 MB, one thread; the least needed work is in the best repeats, dots are single repeats."
    return [figure(panels, caption, legend([("rebuild", OURS), ("encode", COPY)]))]


def _line(rows: list[Results], x: str, key: str, style: Style) -> Line:
    return Line(key, style, {float(each[x]): list(each[key]) for each in rows})


def _spark(found: Results) -> list[Html]:
    columns = [
        Column("group"), Column("batch time with", True), Column("without", True), Column("ratio", True),
        Column("batches", True), Column("backups", True), Column("coded, MB", True), Column("longest backup", True),
    ]  # fmt: skip
    rows = [
        [
            f"{n + 1}", f"{fmean(group['batch_s']['with']):.2f} s", f"{fmean(group['batch_s']['without']):.2f} s",
            f"{group['ratio']:.3f}", str(sum(len(times) for times in group["batch_s"].values())),
            str(group["backups"]), f"{group['coded_mb']:,.0f}", f"{group['took_s']:.2f} s",
        ]
        for n, group in enumerate(found["groups"])
    ]  # fmt: skip
    went_on = "the query went on with the next batch" if found["went_on"] else "THE QUERY DID NOT GO ON"
    return [
        paragraph(
            f"On RocksDB, {_pace(found['pace_s'])}. A group is four phases: with backups every "
            f"{found['every']}, without, without, with. Means of all batch times of each kind."
        ),
        table(columns, rows),
        paragraph(
            f"At the end {found['state_mb']:,.0f} MB in {found['files']:,} files were restored in "
            f"{found['restore_s']:.2f} s with three places lost, and {went_on}."
        ),
    ]


def _pace(pace_s: float) -> str:
    return f"a batch every {pace_s:g} s" if pace_s else "batch after batch"


def _claims(results: Results) -> list[Html]:
    columns = [Column("what"), Column("the paper"), Column("here")]
    rows = []
    for what, claim, ours, theirs in PAPER:
        wanted = (40, 200) if "to 200" in what else (int(what.split()[1]),)
        found = [each for each in results["sizes"] if each["size_mb"] in wanted]
        here = "; ".join(
            f"{each['size_mb']} MB: {median(each[ours]):.2f} s against {median(each[theirs]):.2f} s" for each in found
        )
        rows.append([what, claim, here or "not measured"])
    return [
        table(columns, rows),
        note("The paper’s nodes and network were others; what carries over is the ratio at equal bandwidth per place."),
    ]
