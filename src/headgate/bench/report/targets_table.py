"""The targets of a benchmark as a table in which a miss is as plain to see as a hit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from headgate.bench.report import text
from headgate.bench.report.page import Column, Html, Row, Text, badge, element, join, table
from headgate.bench.report.target import Target

_BADGES = {"met": "good", "missed": "bad", "not measured": "mute"}


def targets_table(targets: Sequence[Target]) -> Html:
    """One row per target with its evidence in small print."""
    columns = [
        Column("verdict"),  # first: a narrow screen must not hide it
        Column("measure"),
        Column("found", True),
        Column("target", True),
        Column("repeats from … to", True),
    ]
    rows = [Row(_cells(target), "mute" if target.found is None else "") for target in targets]
    return table(columns, rows, kind="targets")


def score(targets: Sequence[Target]) -> str:
    """How many were met, in a sentence."""
    counts = Counter(target.verdict for target in targets)
    left = f"{counts['missed']} missed, {counts['not measured']} not measured"
    return f"{counts['met']} of {len(targets)} targets met, {left}"


def _cells(target: Target) -> list[Text]:
    return [
        join([badge(target.verdict, _BADGES[target.verdict]), *([element("small", "close")] if target.close else [])]),
        join([target.measure, *(element("small", line) for line in _small_print(target))]),
        found(target),
        required(target),
        text.from_to(target.by_repeat, target.unit),
    ]


def found(target: Target) -> str:
    """With more digits where rounding would hide on which side of the target it lies."""
    rounded, bound = text.in_unit(target.found, target.unit), text.in_unit(target.bound, target.unit)
    return text.in_unit(target.found, target.unit, 4) if rounded == bound and target.found != target.bound else rounded


def required(target: Target) -> str:
    return f"{'≥' if target.at_least else '≤'} {text.in_unit(target.bound, target.unit)}"


def _small_print(target: Target) -> list[str]:
    worst = target.worst
    told = f"least favourable: {text.in_unit(worst.value, target.unit)} in {worst.where}" if worst else ""
    return [line for line in (told, target.note, f"from {target.made_from}" if target.made_from else "") if line]
