"""How even the backlogs are, by Jain's index: as the paper's Fig. 7 has it, and where something waits at all.

The index of empty queues is 0 / 0, and the paper does not say what it makes of that. Taken as 1, as even as can be, it
rewards a rule for leaving nothing over, which is another virtue than sharing out what is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.bench.hone.simulator import SAMPLED
from headgate.bench.hone.study import Results, counterpart, place, settings_of
from headgate.bench.report import text
from headgate.bench.report.charts import Line, legend, lines
from headgate.bench.report.colours import Style
from headgate.bench.report.page import Column, Html, figure, paragraph, table
from headgate.bench.report.target import Sample, Target, make_target

FloatArray = NDArray[np.float64]

IMPROVEMENT = 10.0
DRAWN = {"rate": (500, 1_000, 5_000), "queues": (10, 20, 100)}
TITLES = {"rate": "10 queues", "queues": "1,000 tuples/s per queue"}
UNITS = {"rate": "tuples/s", "queues": "queues"}


def fairness_target(results: Results) -> Target:
    """The paper's "10 times better" is of one sampled slot of one run: here the best slot and setting of each seed."""
    settings = settings_of(results, "lbf") if _known(results) else []
    samples = []
    for ours in settings:
        mine, other = map(with_empty_as_even, _ours_and_theirs(results, ours))
        samples += [Sample(seed, float(best), place(ours)) for seed, best in enumerate((mine / other).max(axis=1))]
    return make_target(
        "Jain’s index over round robin’s, up to", IMPROVEMENT, True, "ratio", samples, max,
        "the best sampled slot and setting of each seed", _caveat(results) if settings else "",
    )  # fmt: skip


def _caveat(results: Results) -> str:
    return (
        "Empty queues count as even, index 1. Ten queues cannot have more than 10 ×, and have it when nothing waits "
        "under largest backlog first and one queue under round robin: that tells who is empty more often, not who is "
        f"fairer. Where something waits under both it is up to {text.times(_best_where_both_wait(results))}."
    )


def _best_where_both_wait(results: Results) -> float:
    """The best sampled slot and setting of each seed, and the median seed."""
    ratios = [mine / other for mine, other in (_ours_and_theirs(results, ours) for ours in settings_of(results, "lbf"))]
    return float(np.median(np.fmax.reduce(ratios, axis=(0, 2))))


def _ours_and_theirs(results: Results, ours: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
    """The indices of largest backlog first and of round robin."""
    return indices(ours), indices(counterpart(results, ours, "rrb"))


def _known(results: Results) -> bool:
    """Files that were made before the samples were kept have only means, in which empty queues cannot be told."""
    return all("jain_samples" in each for each in results["settings"])


def indices(setting: dict[str, Any]) -> FloatArray:
    """By seed and sampled slot; not a number where nothing waits."""
    return np.array(setting["jain_samples"], np.float64)


def with_empty_as_even(found: FloatArray) -> FloatArray:
    return np.where(np.isnan(found), 1.0, found)


def fairness_section(results: Results) -> list[Html]:
    """Fig. 7, and what of it comes from empty queues."""
    if not _known(results):
        return [paragraph("These results are older than this figure; simulate again to see it.")]
    return [
        paragraph(
            "Jain’s index of the backlogs under largest backlog first, over that under round robin; 1 is no "
            "difference. Empty queues count as even: index 1."
        ),
        _drawn(results),
        paragraph(
            "How much of it comes from empty queues: the index with them, the share of samples in which all queues are "
            "empty, and the index of the other samples alone. At a low load largest backlog first mostly leaves tuples "
            "in a single queue, which is as uneven as can be, and round robin has the better index."
        ),
        _with_and_without_empty(results),
    ]


def _drawn(results: Results) -> Html:
    shown = {varied: _curves(results, varied) for varied in DRAWN}
    panels = [lines(TITLES[varied], curves, "slot", text.times) for varied, curves in shown.items()]
    entries = [
        (f"{left.title} (left), {right.title} (right)", left.style)
        for left, right in zip(*shown.values(), strict=False)
    ]
    return figure(panels, "Means over seeds, by sampled slot.", legend(entries))


def _curves(results: Results, varied: str) -> list[Line]:
    return [
        Line(
            f"{each[varied]:,} {UNITS[varied]}",
            Style(role, "solid", 1.5),
            {float(at): [ratio] for at, ratio in zip(SAMPLED, _improvement(results, each), strict=True)},
        )
        for each, role in zip(_chosen(results, varied), ("headgate", "paper", "stock"), strict=False)
    ]


def _chosen(results: Results, varied: str) -> list[dict[str, Any]]:
    return [each for each in settings_of(results, "lbf", varied) if each[varied] in DRAWN[varied]]


def _improvement(results: Results, ours: dict[str, Any]) -> list[float]:
    """By sampled slot, of the means over seeds."""
    mine, other = map(with_empty_as_even, _ours_and_theirs(results, ours))
    ratios: list[float] = (mine.mean(axis=0) / other.mean(axis=0)).tolist()
    return ratios


def _with_and_without_empty(results: Results) -> Html:
    columns = [Column("queues", True), Column("tuples/s each", True)] + [
        Column(f"{what}, {rule}", True) for what in ("index", "empty", "else") for rule in ("LBF", "RR")
    ]
    drawn = {(each["queues"], each["rate"]): each for varied in DRAWN for each in _chosen(results, varied)}
    return table(
        columns,
        [_row(results, each) for each in drawn.values()],
        "Means over seeds and sampled slots.",
    )


def _row(results: Results, ours: dict[str, Any]) -> list[str]:
    pair = _ours_and_theirs(results, ours)
    return [
        str(ours["queues"]), f"{ours['rate']:,}",
        *(f"{with_empty_as_even(each).mean():.3f}" for each in pair),
        *(text.share(empty_share(each), 0) for each in pair),
        *(_index(where_something_waits(each)) for each in pair),
    ]  # fmt: skip


def empty_share(found: FloatArray) -> float:
    return float(np.isnan(found).mean())


def where_something_waits(found: FloatArray) -> float | None:
    """The mean index of those samples; None if there are none."""
    known = found[~np.isnan(found)]
    return float(known.mean()) if known.size else None


def _index(value: float | None) -> str:
    return text.NOTHING if value is None else f"{value:.3f}"
