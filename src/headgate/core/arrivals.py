"""Arrival times of a batch's records, exact and small: runs of evenly spaced stamps.

A batch of a hundred thousand records that came at a steady rate is one run of three numbers, so its latencies can be
told exactly, record by record, without keeping a stamp for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_FEW = 4096
"""So many candidates are quicker sorted than narrowed down further."""

_CELLS_AT_ONCE = 1 << 18
"""Runs times bounds looked at in one go: keeps the temporaries at a few megabytes."""

_MOST_ROWS = 1 << 53
"""Above this a count is no longer exact as a float, and no batch is that large."""


@dataclass(frozen=True, slots=True)
class LatencyStats:
    """Latencies of one batch's records; quantiles are nearest-rank. Without records everything is zero."""

    rows: int
    max_s: float
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    violations: int


_NO_LATENCIES = LatencyStats(rows=0, max_s=0.0, mean_s=0.0, p50_s=0.0, p95_s=0.0, p99_s=0.0, violations=0)


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """When records arrived: run i holds the stamps `first_s[i] + k * step_s[i]` for k in 0..count[i]-1.

    Stamps are wall-clock seconds. Runs may overlap and come in any order; runs without records are dropped.
    Two values are equal when they hold the same runs in the same order.
    """

    first_s: FloatArray
    step_s: FloatArray
    count: IntArray

    def __post_init__(self) -> None:
        columns = np.asarray(self.first_s, np.float64), np.asarray(self.step_s, np.float64), _whole(self.count)
        _check_runs(*columns)
        kept = columns[2] > 0
        for name, column in zip(("first_s", "step_s", "count"), columns, strict=True):
            # Indexing by a mask copies, so that freezing the array does not freeze the caller's.
            mine = column[kept]
            mine.setflags(write=False)
            object.__setattr__(self, name, mine)

    @classmethod
    def of(cls, runs: Iterable[tuple[float, float, int]]) -> Arrivals:
        """Runs of (first stamp, step, count)."""
        rows = list(runs)
        return cls(
            np.array([first_s for first_s, _, _ in rows], np.float64),
            np.array([step_s for _, step_s, _ in rows], np.float64),
            np.array([count for _, _, count in rows] or np.zeros(0, np.int64)),
        )

    @classmethod
    def empty(cls) -> Arrivals:
        return cls.of(())

    @classmethod
    def concat(cls, parts: Iterable[Arrivals]) -> Arrivals:
        """All records of several batches, in one copy."""
        parts = [cls.empty(), *parts]
        return cls(
            np.concatenate([part.first_s for part in parts]),
            np.concatenate([part.step_s for part in parts]),
            np.concatenate([part.count for part in parts]),
        )

    @classmethod
    def from_json(cls, value: object) -> Arrivals:
        """The inverse of `to_json`; anything that is not a list of runs is a ValueError."""
        if not isinstance(value, list):
            raise ValueError(f"arrivals must be a list of [first_s, step_s, count], not {type(value).__name__}")
        try:
            return cls.of(_checked_run(run) for run in value)
        except OverflowError as error:
            raise ValueError("arrivals hold a number that is out of range") from error

    def to_json(self) -> list[list[float | int]]:
        """A JSON value: one [first_s, step_s, count] per run."""
        columns = self.first_s.tolist(), self.step_s.tolist(), self.count.tolist()
        return [list(run) for run in zip(*columns, strict=True)]

    def __add__(self, other: Arrivals) -> Arrivals:
        return Arrivals.concat((self, other))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Arrivals):
            return NotImplemented
        return self._columns_equal(other)

    def __hash__(self) -> int:
        return hash(tuple(self.first_s.tolist()))

    @property
    def total(self) -> int:
        return int(self.count.sum())

    @property
    def oldest_s(self) -> float | None:
        return float(self.first_s.min()) if self.first_s.size else None

    @property
    def newest_s(self) -> float | None:
        return float(self._at(self.count - 1).max()) if self.first_s.size else None

    @property
    def mean_s(self) -> float | None:
        oldest_s = self.oldest_s
        if oldest_s is None:
            return None
        # Relative to the oldest: sums of epoch seconds would lose the digits that matter.
        middle_s = (self.first_s - oldest_s) + self.step_s * (self.count - 1) / 2
        return oldest_s + float(np.dot(middle_s, self.count)) / self.total

    def expand(self) -> FloatArray:
        """Every stamp, run by run: for tests and small batches."""
        return self._between(np.zeros_like(self.count), self.count)

    def count_at_most(self, t_s: float) -> int:
        """How many records arrived at `t_s` or before."""
        return int(self._ranks(t_s).sum())

    def counts_over(self, finished_s: float, bounds_s: FloatArray) -> IntArray:
        """For each bound, how many records have a latency above it when the batch finishes at `finished_s`."""
        # A late record is an early one, so those above a bound stand at the head of their run.
        pieces = np.array_split(bounds_s, 1 + self.count.size * bounds_s.size // _CELLS_AT_ONCE)
        heads = [self._leading(_latency_over(finished_s, piece_s), finished_s - piece_s) for piece_s in pieces]
        return np.concatenate([head.sum(axis=0) for head in heads])

    def kth_s(self, k: int) -> float:
        """The k-th smallest stamp, counted from 0, exactly as the sorted expansion has it."""
        if not 0 <= k < self.total:
            raise IndexError(f"record {k} of {self.total}")
        if self._in_order():
            return self._kth_in_order(k)
        low, high = np.zeros_like(self.count), self.count
        while (high - low).sum() > _FEW:
            least_s, most_s = self._span(low, high)
            if least_s == most_s:
                return least_s
            # The stamp sought has k smaller or equal ones before it: keep the half that holds it.
            middle = self._ranks(_midpoint(least_s, most_s))
            low, high = (low, middle) if middle.sum() > k else (middle, high)
        place = k - int(low.sum())
        return float(np.partition(self._between(low, high), place)[place])

    def _in_order(self) -> bool:
        """Whether each run ends before the next begins, as it does for a source that is read oldest first."""
        return bool((self._at(self.count - 1)[:-1] <= self.first_s[1:]).all())

    def _kth_in_order(self, k: int) -> float:
        ends = np.cumsum(self.count)
        run = int(np.searchsorted(ends, k, side="right"))
        place = k - int(ends[run] - self.count[run])
        return float(self.first_s[run] + place * self.step_s[run])

    def latency(self, finished_s: float, deadline_s: float | None) -> LatencyStats:
        """Latencies of all records when their batch finishes at `finished_s`; a violation is one above the deadline."""
        oldest_s, mean_s = self.oldest_s, self.mean_s
        if oldest_s is None or mean_s is None:
            return _NO_LATENCIES
        p50_s, p95_s, p99_s = (finished_s - self._arrival_at_share(share) for share in (0.50, 0.95, 0.99))
        late = 0 if deadline_s is None else int(self.counts_over(finished_s, np.array([deadline_s]))[0])
        return LatencyStats(self.total, finished_s - oldest_s, finished_s - mean_s, p50_s, p95_s, p99_s, late)

    def _arrival_at_share(self, share: float) -> float:
        """The arrival of the record whose latency is the nearest-rank quantile: ranks run backwards in time."""
        return self.kth_s(self.total - nearest_rank(share, self.total))

    def _columns_equal(self, other: Arrivals) -> bool:
        return (
            np.array_equal(self.first_s, other.first_s)
            and np.array_equal(self.step_s, other.step_s)
            and np.array_equal(self.count, other.count)
        )

    def _at(self, k: IntArray) -> FloatArray:
        """Stamp k of each run; with several columns of k, one column of stamps each."""
        shape = (-1,) + (1,) * (k.ndim - 1)
        return self.first_s.reshape(shape) + k * self.step_s.reshape(shape)

    def _between(self, low: IntArray, high: IntArray) -> FloatArray:
        """The stamps low..high-1 of each run, run by run."""
        lengths = high - low
        begins = np.cumsum(lengths) - lengths
        k = np.arange(int(lengths.sum())) - np.repeat(begins - low, lengths)
        stamps_s: FloatArray = np.repeat(self.first_s, lengths) + k * np.repeat(self.step_s, lengths)
        return stamps_s

    def _span(self, low: IntArray, high: IntArray) -> tuple[float, float]:
        """The least and the greatest of the stamps low..high-1."""
        some = high > low
        return float(self._at(low)[some].min()), float(self._at(high - 1)[some].max())

    def _ranks(self, t_s: float) -> IntArray:
        """Per run, how many stamps are at most `t_s`."""
        return self._leading(lambda stamps_s: stamps_s <= t_s, np.array([t_s]))[:, 0]

    def _leading(self, holds: Callable[[FloatArray], BoolArray], near_s: FloatArray) -> IntArray:
        """Per run and column of `near_s`, how many stamps at its head satisfy `holds`.

        `holds` must be true of earlier stamps and false of later ones, turning at about `near_s`. Division alone would
        be off by one now and then, and by more where steps are finer than a float of that size resolves; so its guess
        only narrows the search.
        """
        guess = self._guess(near_s)
        low, high = np.zeros_like(guess), np.broadcast_to(self.count[:, None], guess.shape)
        for probe in (guess - 2, guess + 1):
            low, high = self._narrowed(low, high, probe, holds)
        while (low < high).any():
            low, high = self._narrowed(low, high, (low + high) // 2, holds)
        return low

    def _guess(self, near_s: FloatArray) -> IntArray:
        with np.errstate(all="ignore"):
            steps = (near_s - self.first_s[:, None]) / self.step_s[:, None]
        # A step of 0 gives infinity or, where the stamp is hit, not a number; the clip makes both a valid guess.
        return np.clip(np.nan_to_num(steps), 0, self.count[:, None]).astype(np.int64)

    def _narrowed(
        self, low: IntArray, high: IntArray, probe: IntArray, holds: Callable[[FloatArray], BoolArray]
    ) -> tuple[IntArray, IntArray]:
        """Both brackets after looking at stamp `probe`, where it lies within them."""
        inside, true = (low <= probe) & (probe < high), holds(self._at(probe))
        return np.where(inside & true, probe + 1, low), np.where(inside & ~true, probe, high)


def nearest_rank(share: float, rows: int) -> int:
    """The smallest rank (from 1) such that at least `share` of the rows stand at or below it."""
    rank = max(1, math.ceil(share * rows))
    # 0.07 * 100 is a little more than 7 as floats: step back if the rank below suffices.
    return rank - 1 if rank > 1 and (rank - 1) / rows >= share else rank


def _latency_over(finished_s: float, bounds_s: FloatArray) -> Callable[[FloatArray], BoolArray]:
    def holds(stamps_s: FloatArray) -> BoolArray:
        return finished_s - stamps_s > bounds_s

    return holds


def _midpoint(least_s: float, most_s: float) -> float:
    """A value in [least, most): between neighbouring floats rounding would give the upper one, and no progress."""
    middle_s = least_s + (most_s - least_s) / 2
    return middle_s if middle_s < most_s else least_s


def _whole(count: IntArray) -> IntArray:
    whole = np.asarray(count)
    if not np.issubdtype(whole.dtype, np.integer):
        raise ValueError(f"counts of arrivals must be whole numbers, not {whole.dtype}")
    return whole.astype(np.int64)


def _check_runs(first_s: FloatArray, step_s: FloatArray, count: IntArray) -> None:
    if not first_s.shape == step_s.shape == count.shape == (count.size,):
        raise ValueError("arrivals need as many firsts as steps and counts")
    with np.errstate(all="ignore"):
        last_s = first_s + (count - 1) * step_s
    if not (np.isfinite(first_s) & np.isfinite(step_s) & np.isfinite(last_s)).all():
        raise ValueError("stamps of arrivals must be finite numbers")
    if (step_s < 0).any() or (count < 0).any():
        raise ValueError("steps and counts of arrivals must not be negative")


def _checked_run(run: object) -> tuple[float, float, int]:
    if not isinstance(run, list | tuple) or len(run) != 3:
        raise ValueError(f"a run of arrivals is [first_s, step_s, count], not {run!r}")
    first_s, step_s, count = run
    if not (_is_number(first_s) and _is_number(step_s) and type(count) is int and abs(count) <= _MOST_ROWS):
        raise ValueError(f"a run of arrivals is [first_s, step_s, count] in numbers, not {run!r}")
    return float(first_s), float(step_s), count


def _is_number(value: object) -> bool:
    # bool is an int to Python, but true is not a time.
    return isinstance(value, int | float) and not isinstance(value, bool)
