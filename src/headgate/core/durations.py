"""Durations as people write them: ``"5s"``, ``"250ms"``, ``"1.5 min"``, or seconds as a number."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from headgate.errors import BadParameter

_UNIT_S = {
    "ms": 1e-3, "millisecond": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0,
    "m": 60.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0,
}  # fmt: skip
_PATTERN = re.compile(r"\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-z]+)\s*", re.IGNORECASE)
_REMEDY = 'write a positive duration such as "5s", "250ms" or "1.5 min"'

Duration = str | float | int | timedelta
"""What an argument that means a duration accepts."""


def parse_duration(value: Duration, parameter: str) -> float:
    """Return `value` in seconds; `parameter` is the name that an error shows."""
    seconds = _seconds(value)
    if seconds is None:
        raise BadParameter(parameter, value, "this is not a duration", _REMEDY)
    if not math.isfinite(seconds) or seconds <= 0:
        raise BadParameter(parameter, value, "a duration must be positive and finite", _REMEDY)
    return seconds


def _seconds(value: object) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool):  # True would otherwise be one second
        return None
    if isinstance(value, int | float):
        return float(value)
    return _from_text(value) if isinstance(value, str) else None


def _from_text(text: str) -> float | None:
    match = _PATTERN.fullmatch(text)
    if match is None:
        return float(text) if re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", text) else None
    unit = match["unit"].lower()
    factor = _UNIT_S.get(unit, _UNIT_S.get(unit.removesuffix("s")))
    return None if factor is None else float(match["number"]) * factor


def format_duration(seconds: float) -> str:
    """Return a short text for people: ``380 ms``, ``1.50 s``, ``2.0 min``."""
    if seconds < 1.0:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
