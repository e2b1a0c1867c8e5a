"""The few kinds of picture a report needs: CDFs, bars with their repeats as dots, lines over a load."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from headgate.bench.report.colours import Style
from headgate.bench.report.page import Html, element
from headgate.bench.report.svg import colour, drawing, new_figure, to_svg

WIDTH_IN = 3.3
"""One panel; three of them stand side by side on a large screen."""
HEIGHT_IN = 2.35

KEPT_POINTS = 60
"""Of a CDF: more cannot be seen in a panel, and a page has hundreds of curves."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A CDF: (value, share) pairs, both ascending."""

    title: str
    style: Style
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure per repeat."""

    title: str
    style: Style
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Line:
    """One figure per repeat at each place of the x axis."""

    title: str
    style: Style
    places: Mapping[float, Sequence[float]]
    dots: bool = True


def cdfs(
    title: str, curves: Sequence[Curve], deadline_s: float | None, what: str = "latency, s",
    *, end: float | None = None, stepped: bool = False,
) -> Html:  # fmt: skip
    """Curves against a deadline; `stepped` for a few figures (batches), smooth for many (records)."""
    with drawing():
        figure, axes = _panel(title, HEIGHT_IN)
        for curve in reversed(curves):  # the first one, Headgate's, lies on top
            points = decimate(curve.points)
            values, shares = [points[0][0], *(x for x, _ in points)], [0.0, *(y for _, y in points)]
            axes.plot(values, shares, drawstyle="steps-post" if stepped else "default", **_stroke(curve.style))
        if deadline_s is not None:
            axes.axvline(deadline_s, color=colour("ink"), lw=0.8, ls=(0, (2, 2)))
            axes.text(deadline_s, 1.015, f"{deadline_s:g} s", ha="center", va="bottom", fontsize=7)
        axes.set_xlim(0, end or end_of_axis(curves, deadline_s))
        axes.set_ylim(0, 1)
        axes.set_yticks([0, 0.5, 0.95], ["0", "50 %", "95 %"])
        axes.set_xlabel(what)
        axes.grid(axis="y", alpha=0.35, lw=0.5)
        return to_svg(figure, f"{title}: CDFs of {', '.join(curve.title for curve in curves)}")


def bars(title: str, rows: Sequence[Bar], form: Callable[[float], str], *, end: float | None = None) -> Html:
    """A bar to the median with the repeats as dots on it; `end` makes the lengths of several panels comparable."""
    with drawing():
        figure, axes = _panel(title, 0.42 + 0.34 * len(rows), left=0.01, right=0.86, bottom_in=0.08)
        for place, bar in enumerate(rows):
            _bar(axes, -float(place), bar, form)
        finite = [value for bar in rows for value in bar.values if math.isfinite(value)]
        axes.set_xlim(0, max([*finite, end or 0.0, 1e-9]) * 1.02)
        axes.set_ylim(-len(rows) + 0.55, 0.62)
        axes.set_axis_off()
        return to_svg(figure, f"{title}: {'; '.join(f'{bar.title} {_middle(bar, form)}' for bar in rows)}")


def _bar(axes: Any, y: float, bar: Bar, form: Callable[[float], str]) -> None:
    finite = [value for value in bar.values if math.isfinite(value)]
    weight = "bold" if bar.style.role == "headgate" else "normal"
    axes.text(0, y + 0.2, bar.title, fontsize=7, va="bottom", weight=weight)
    axes.barh(y, median(finite) if finite else 0, height=0.32, color=colour(bar.style.role), alpha=0.55)
    axes.plot(finite, [y] * len(finite), "o", ms=2.6, mew=0, color=colour(bar.style.role), clip_on=False)
    end = max(finite, default=0.0)
    axes.annotate(
        _middle(bar, form), (end, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=7.5,
        annotation_clip=False,
    )  # fmt: skip


def _middle(bar: Bar, form: Callable[[float], str]) -> str:
    return form(median(bar.values)) if bar.values else "not measured"


def lines(
    title: str, series: Sequence[Line], what: str, form: Callable[[float], str],
    *, mark: float | None = None, squeezed: bool = False,
) -> Html:  # fmt: skip
    """Medians as lines, repeats as dots. `squeezed` is a square-root axis for shares, so that one per cent shows."""
    with drawing():
        figure, axes = _panel(title, HEIGHT_IN, left=0.16)
        for line in reversed(series):
            xs = sorted(line.places)
            axes.plot(xs, [median(line.places[x]) for x in xs], **_stroke(line.style))
            for x in xs if line.dots else []:
                dots = line.places[x]
                axes.plot([x] * len(dots), dots, "o", ms=2.6, mew=0, color=colour(line.style.role), clip_on=False)
        if mark is not None:
            axes.axhline(mark, color=colour("faint"), lw=0.9, ls=(0, (3, 2)))
        finite = [y for line in series for dots in line.places.values() for y in dots if math.isfinite(y)]
        _heights(axes, max([*finite, mark or 0.0, 1e-9]), form, squeezed)
        axes.set_xlabel(what)
        axes.set_xticks(sorted({x for line in series for x in line.places}))
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axes.grid(axis="y", alpha=0.35, lw=0.5)
        return to_svg(figure, f"{title}: lines of {', '.join(line.title for line in series)} over {what}")


def _heights(axes: Any, top: float, form: Callable[[float], str], squeezed: bool) -> None:
    if squeezed:
        axes.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))
        ticks = [tick for tick in (0, 0.01, 0.05, 0.2, 0.5, 1.0) if tick <= top * 1.2] + ([0.05] if top < 0.04 else [])
        axes.set_yticks(sorted(set(ticks)), [form(tick) for tick in sorted(set(ticks))])
        axes.minorticks_off()
    else:
        axes.yaxis.set_major_formatter(lambda y, _: form(y))
        axes.locator_params(axis="y", nbins=5)
    axes.set_ylim(0, top * 1.06 if not squeezed else max(top * 1.06, 0.02))


def legend(entries: Sequence[tuple[str, Style]]) -> Html:
    """The same line samples for all panels of a figure."""
    return element("ul", *(element("li", _sample(style), title) for title, style in entries), class_="legend")


def _sample(style: Style) -> Html:
    dashes = {"solid": "", "dashed": "6 3", "dotted": "1.5 2.5", "dashdot": "6 2 1.5 2"}[style.dash]
    dash = f"; stroke-dasharray: {dashes}" if dashes else ""
    line = f'<path d="M1 6H27" style="stroke: var(--{style.role}); stroke-width: {style.width + 0.7:g}{dash}"/>'
    return Html(f'<svg viewBox="0 0 28 12" aria-hidden="true">{line}</svg>')


def decimate(points: Sequence[tuple[float, float]], keep: int = KEPT_POINTS) -> list[tuple[float, float]]:
    """At most about `keep` points that are spread evenly over the shares, the ends always among them."""
    if len(points) <= keep:
        return list(points)
    shares = np.array([share for _, share in points])
    wanted = np.append(np.linspace(0, 0.95, keep - 10, endpoint=False), np.linspace(0.95, 1.0, 9))
    found = np.minimum(np.searchsorted(shares, wanted * shares[-1] - 1e-9), len(points) - 1)
    return [points[index] for index in sorted({0, *found.tolist(), len(points) - 1})]


def _panel(title: str, height_in: float, *, left: float = 0.13, right: float = 0.97, bottom_in: float = 0.4) -> Any:
    figure = new_figure(WIDTH_IN, height_in)
    axes = figure.add_axes((left, bottom_in / height_in, right - left, 1 - (bottom_in + 0.34) / height_in))
    figure.text(0.01 if left < 0.1 else left, 1 - 0.02 / height_in, title, fontsize=9, weight="bold", va="top")
    return figure, axes


def _stroke(style: Style) -> dict[str, Any]:
    return {"color": colour(style.role), "ls": style.dash, "lw": style.width, "solid_capstyle": "round"}


def end_of_axis(curves: Sequence[Curve], deadline_s: float | None) -> float:
    """Where all curves have (nearly) ended, or three deadlines if some go on for longer."""
    last = max((x for curve in curves for x, share in curve.points if share <= 0.998), default=1.0) * 1.03
    return last if deadline_s is None else max(min(last, 3 * deadline_s), 1.25 * deadline_s)
