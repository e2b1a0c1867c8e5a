"""Latency CDFs of several contenders against each query's deadline, as one PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.bench.plan import Outcome

COLOURS = ("#0b7a75", "#d1495b", "#8d96a3", "#edae49", "#30638e")


def latency_cdfs(outcomes: Sequence[Outcome], path: Path, title: str) -> Path:
    """Draw one panel per query, in the order of the first outcome; return `path`."""
    plt = _pyplot()
    queries = list(outcomes[0].queries)
    figure, axes = plt.subplots(1, len(queries), figsize=(4.2 * len(queries), 3.9), sharey=True, squeeze=False)
    for axis, query in zip(axes[0], queries, strict=True):
        _panel(axis, query, outcomes)
    axes[0][0].set_ylabel("share of records")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), fontsize=9, frameon=False)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def _panel(axis: Any, query: str, outcomes: Sequence[Outcome]) -> None:
    deadline_s = float(outcomes[0].queries[query]["deadline_s"])
    for colour, outcome in zip(COLOURS, outcomes, strict=False):
        points = outcome.queries.get(query, {}).get("cdf") or []
        if points:
            axis.step(
                [x for x, _ in points], [y for _, y in points], where="post", color=colour, label=outcome.title, lw=1.8
            )
    axis.axvline(deadline_s, color="black", ls="--", lw=1)
    axis.text(deadline_s, 0.02, f" deadline {deadline_s:g} s", fontsize=8, va="bottom", rotation=90)
    axis.set_title(query, fontsize=10)
    axis.set_xlabel("latency, s")
    axis.set_xlim(left=0)
    axis.set_ylim(0, 1.02)
    axis.grid(alpha=0.25)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise HeadgateError("pictures need matplotlib: in a checkout, pip install '.[bench]'") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
