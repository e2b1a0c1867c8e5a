"""Figures as people read them: few digits, a unit, and a dash where nothing was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from headgate.bench.report.target import Unit

NOTHING = "–"


def seconds(value: float | None) -> str:
    return _or_nothing(value, lambda known: f"{digits(known)} s")


def share(value: float | None, places: int = 2) -> str:
    """A share as per cent; two digits, since a promise is about one per cent."""
    return _or_nothing(value, lambda known: f"{100 * known:.{places}f} %")


def points(value: float | None, places: int = 2) -> str:
    """A difference of two shares."""
    return _or_nothing(value, lambda known: f"{_signed(100 * known, places)} points")


def change(ratio: float | None) -> str:
    """new / old as a change in per cent."""
    return _or_nothing(ratio, lambda known: f"{_signed(100 * (known - 1), 0)} %")


def times(value: float | None, places: int = 2) -> str:
    return _or_nothing(value, lambda known: f"{known:.{places}f} ×")


def count(value: float | None) -> str:
    return _or_nothing(value, lambda known: f"{known:,.0f}")


def digits(value: float) -> str:
    """Three digits that count, without an exponent."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def in_unit(value: float | None, unit: Unit, places: int = 2) -> str:
    return {"ratio": times, "share": share, "points": points}[unit](value, places)


def from_to(values: Sequence[float] | None, unit: Unit) -> str:
    """Lowest and highest; a dash if there is only one figure, which has no spread."""
    if not values or len(values) < 2:
        return NOTHING
    return f"{in_unit(min(values), unit)} … {in_unit(max(values), unit)}"


def minutes(value_s: float | None) -> str:
    return _or_nothing(value_s, lambda known: f"{known / 60:,.0f} min" if known >= 120 else f"{known:.0f} s")


def _signed(value: float, places: int) -> str:
    """With a real minus sign, and none before a zero."""
    rounded = round(value, places)
    sign = "−" if rounded < 0 else "+" if rounded > 0 else ""
    return f"{sign}{abs(rounded):.{places}f}"


def _or_nothing(value: float | None, form: Callable[[float], str]) -> str:
    if value is None or math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return form(value)
