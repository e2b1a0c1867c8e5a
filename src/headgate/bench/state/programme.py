"""What is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

Results = dict[str, Any]

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Programme:
    """Sizes and numbers as in the paper's figures 20 to 22."""

    sizes_mb: tuple[int, ...] = (2, 10, 20, 30, 40, 80, 120, 160, 200)
    instances: tuple[int, ...] = (1, 2, 4, 8, 16)
    instance_mb: int = 20
    bandwidth_mb_s: float = 50.0
    """Of every place: the same for the fragments and for the copy they are held against."""
    repeats: int = 5
    lost: int = 3
    """Places that are gone when the state is restored, raw blocks among them."""


QUICK = replace(Programme(), sizes_mb=(2, 40, 200), instances=(1, 4), repeats=2)
