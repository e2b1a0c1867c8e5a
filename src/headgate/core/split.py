"""Cutting a batch into tasks of equal cost, however uneven its ranges are: no task of the stage is a straggler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Cut(NamedTuple):
    """Records `first` up to, but not including, `end` of a range, by its number."""

    range: int
    first: int
    end: int


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
