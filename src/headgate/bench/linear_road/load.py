"""How much arrives: as a share of what this machine can do, or, as in the papers, in reports per second.

One number tells both. Nobody bears a load of a hundred, and nobody asks for fewer than a hundred reports per second, so
what is larger is a rate.
"""

from __future__ import annotations

LEAST_RATE = 100.0


def is_rate(load: float) -> bool:
    """Whether this is a rate, the same on every machine, rather than a share of what this one can do."""
    return load >= LEAST_RATE


def load_text(load: float) -> str:
    """As people read it."""
    return f"{load:,.0f} reports/s" if is_rate(load) else f"load {load:g}"
