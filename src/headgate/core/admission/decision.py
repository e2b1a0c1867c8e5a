"""A decision about one prospective batch, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """Open the gate now, or hold it and ask again at `until_s` (or earlier, when something changes)."""

    open: bool
    code: str
    """One word for counting: due, fits, late, early, learning, slack, patience, observe, busy, turn, buffer, idle."""
    reason: str
    """One line for people."""
    until_s: float = math.inf
    max_rows: int | None = None
    """The most rows that this batch may hold; None for all that waits."""
    latest_start_s: float = math.inf
    predicted_s: float = 0.0
    """Expected duration if it started now."""
    first: str | None = None
    """Who should start before this one, and is to be asked now."""
