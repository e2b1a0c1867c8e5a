"""Cutting a batch into tasks of equal cost, however uneven its ranges are: no task of the stage is a straggler.

As many tasks as there are cores, unless they would have too little to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

TASK_WORTH_S = 0.1
"""A Python task costs tens of milliseconds of CPU whatever it reads: it should have so much work of its own."""

USUAL_ROW_S = 4e-6
"""The work of a row, until it is known: reading it, and the first steps of an ordinary query."""


class Cut(NamedTuple):
    """Records `first` up to, but not including, `end` of a range, by its number."""

    range: int
    first: int
    end: int


def worthwhile_tasks(rows: int, row_work_s: float | None, cores: int) -> int:
    """How many tasks a batch is worth, if a core works for `row_work_s` on a row before the first shuffle."""
    work_s = rows * (USUAL_ROW_S if row_work_s is None else row_work_s)
    return int(min(max(1.0, work_s / TASK_WORTH_S), cores))


def split(sizes: Sequence[int], tasks: int, weights: Sequence[float] | None = None) -> list[list[Cut]]:
    """Cut ranges of `sizes` records into at most `tasks` shares whose costs differ by less than two records'.

    The ranges are laid end to end and cut at equal distances, so a share holds neighbours and most ranges stay whole.
    A record of range i costs `weights[i]`, by default 1. No share is empty, no record is lost or doubled.
    """
    costs = [1.0] * len(sizes) if weights is None else list(weights)
    total = sum(size * cost for size, cost in zip(sizes, costs, strict=True))
    count = max(1, min(tasks, sum(sizes)))
    shares: list[list[Cut]] = [[] for _ in range(count)]
    laid = 0.0
    for index, (size, cost) in enumerate(zip(sizes, costs, strict=True)):
        first = 0
        for number, share in enumerate(shares, 1):
            if first == size:
                break
            # How many of this range's records end before the share's edge.
            end = size if number == count else min(size, round((total * number / count - laid) / cost))
            if end > first:
                share.append(Cut(index, first, end))
                first = end
        laid += size * cost
    return [share for share in shares if share]
