"""How many records arrive when, deterministically and with random access.

A shape gives a whole number of records for every second. Record k of a second with c records arrives at the offset
`second + (k + 0.5) / c`, so that records are evenly spaced within their second and none falls on a boundary.
Offsets are seconds since the trace's beginning; records are numbered from 0 in the order of arrival.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from headgate.core.arrivals import Arrivals, FloatArray, IntArray
from headgate.errors import BadParameter

_FIRST_SECONDS = 1024
"""Seconds counted at the first question; every further time as many again as are known."""

_LONGEST_S = 100_000_000
"""Three years: a later offset is a wall-clock time by mistake, and its table would fill the memory."""

_SLOWEST, _FASTEST = 0.001, 1e9
"""Records per second: slower needs tables of nothing, faster is beyond what stamps can tell apart."""

_HAIR = 1e-6
"""Added to totals before they are cut to whole records: one that is whole on paper may lie a rounding error below."""


class Shape(Protocol):
    """Records per second over time: small, immutable and picklable."""

    @property
    def mean_rate(self) -> float:
        """Records per second in the long run."""

    def counts(self, second: int, seconds: int) -> IntArray:
        """Records in each of the `seconds` seconds from `second` on."""

    def scaled(self, factor: float) -> Shape:
        """The same shape at `factor` times the rate."""


@dataclass(frozen=True, slots=True)
class Constant:
    """`rate` records every second; a fraction is made up for by one record more now and then."""

    rate: float

    @property
    def mean_rate(self) -> float:
        return self.rate

    def counts(self, second: int, seconds: int) -> IntArray:
        return _whole_counts(lambda offset_s: self.rate * offset_s, second, seconds)

    def scaled(self, factor: float) -> Constant:
        return Constant(self.rate * factor)


@dataclass(frozen=True, slots=True)
class Uniform:
    """The papers' random rate: every second a whole number, uniform on 0..2*rate."""

    rate: float
    seed: int

    @property
    def mean_rate(self) -> float:
        return self._most / 2

    def counts(self, second: int, seconds: int) -> IntArray:
        # Raw Philox words, not a Generator's: their stream is promised to stay the same across NumPy versions.
        # One step of the counter makes four words.
        block, skipped = divmod(second, 4)
        words = np.random.Philox(key=self.seed % 2**64, counter=block).random_raw(skipped + seconds)
        shares = (words[skipped:] >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return np.floor(shares * (self._most + 1)).astype(np.int64)

    def scaled(self, factor: float) -> Uniform:
        return replace(self, rate=self.rate * factor)

    @property
    def _most(self) -> int:
        return round(2 * self.rate)


@dataclass(frozen=True, slots=True)
class Burst:
    """`rate` records per second, but `factor` times that for `length_s` out of every `every_s`.

    `rate` is the base and not the mean. The burst ends each period, so that a run begins calmly.
    """

    rate: float
    factor: float
    length_s: float
    every_s: float

    def __post_init__(self) -> None:
        if not 0 <= self.length_s <= self.every_s or self.every_s == 0:
            problem = f"bursts of {self.length_s:g} s do not fit into {self.every_s:g} s"
            raise BadParameter("rate", self, problem, "make the burst shorter than the time from one to the next")

    @property
    def mean_rate(self) -> float:
        return self.rate * (1 + (self.factor - 1) * self.length_s / self.every_s)

    def counts(self, second: int, seconds: int) -> IntArray:
        return _whole_counts(self._total, second, seconds)

    def scaled(self, factor: float) -> Burst:
        return replace(self, rate=self.rate * factor)

    def _total(self, offset_s: FloatArray) -> FloatArray:
        periods, into_s = np.divmod(offset_s, self.every_s)
        bursting_s = periods * self.length_s + np.maximum(0.0, into_s - (self.every_s - self.length_s))
        return self.rate * (offset_s + (self.factor - 1) * bursting_s)


@dataclass(frozen=True, slots=True)
class Diurnal:
    """A sinusoid around `rate` that swings by the share `depth`; it begins at the mean, rising."""

    rate: float
    period_s: float
    depth: float

    def __post_init__(self) -> None:
        if not (self.period_s > 0 and 0 <= self.depth <= 1):
            problem = f"period {self.period_s:g} s and depth {self.depth:g} make no rate"
            raise BadParameter("rate", self, problem, "give a period above 0 s and a depth from 0 to 1")

    @property
    def mean_rate(self) -> float:
        return self.rate

    def counts(self, second: int, seconds: int) -> IntArray:
        return _whole_counts(self._total, second, seconds)

    def scaled(self, factor: float) -> Diurnal:
        return replace(self, rate=self.rate * factor)

    def _total(self, offset_s: FloatArray) -> FloatArray:
        turn = 2 * math.pi / self.period_s
        swing_s = self.depth * (1 - np.cos(turn * np.mod(offset_s, self.period_s))) / turn
        return self.rate * (offset_s + swing_s)


@dataclass(frozen=True, slots=True)
class Recorded:
    """Counts taken from a file, one per second, from the start again at their end."""

    per_second: tuple[int, ...]
    factor: float = 1.0

    def __post_init__(self) -> None:
        if not self.per_second:
            raise BadParameter("rate", self, "there are no counts", "give at least one count")

    @property
    def mean_rate(self) -> float:
        return self.factor * sum(self.per_second) / len(self.per_second)

    def counts(self, second: int, seconds: int) -> IntArray:
        before = np.concatenate([[0], np.cumsum(self.per_second)])

        def total(offset_s: FloatArray) -> FloatArray:
            passes, into = np.divmod(offset_s.astype(np.int64), len(self.per_second))
            return np.asarray(self.factor * (passes * before[-1] + before[into]), np.float64)

        return _whole_counts(total, second, seconds)

    def scaled(self, factor: float) -> Recorded:
        return replace(self, factor=self.factor * factor)


class Traffic:
    """Answers, in logarithmic time, which records of a shape have arrived and when.

    The table of records before each second grows as questions reach further; it stays out of pickles.
    """

    __slots__ = ("_before", "shape")

    def __init__(self, shape: Shape) -> None:
        if not _SLOWEST <= shape.mean_rate <= _FASTEST:
            problem = f"is not between {_SLOWEST:g} and {_FASTEST:g} records per second"
            raise BadParameter("rate", shape.mean_rate, problem, "choose one within")
        self.shape = shape
        self._before: IntArray = np.zeros(1, np.int64)

    def __reduce__(self) -> tuple[type[Traffic], tuple[Shape]]:
        return Traffic, (self.shape,)

    def __repr__(self) -> str:
        return f"Traffic({self.shape!r})"

    @property
    def mean_rate(self) -> float:
        """Records per second in the long run."""
        return self.shape.mean_rate

    def scaled(self, factor: float) -> Traffic:
        """The same shape at `factor` times the rate."""
        return Traffic(self.shape.scaled(factor))

    def rate_at(self, second: int) -> int:
        """Records that arrive in [second, second + 1)."""
        if second < 0:
            return 0
        before = self._table_until(second + 1)
        return int(before[second + 1] - before[second])

    def count_before(self, t_s: float) -> int:
        """Records whose offset is at most `t_s`: exactly those i with `stamp_s(i) <= t_s`."""
        if t_s < 0:
            return 0
        second = math.floor(t_s)
        return int(self._table_until(second)[second]) + _arrived(second, self.rate_at(second), t_s)

    def stamp_s(self, index: int) -> float:
        """The offset of record `index`."""
        return float(self.stamps_s(index, index + 1)[0])

    def stamps_s(self, first: int, last: int) -> FloatArray:
        """The offsets of the records first..last-1, ascending."""
        part = self._seconds(first, last)
        taken = part.high - part.low
        begins = np.cumsum(taken) - taken
        k = np.arange(last - first) - np.repeat(begins - part.low, taken)
        stamps_s: FloatArray = np.repeat(part.second, taken) + (k + 0.5) / np.repeat(part.count, taken)
        return stamps_s

    def arrivals(self, first: int, last: int, origin_s: float) -> Arrivals:
        """The records first..last-1 as runs, one per second, for a trace that began at `origin_s`.

        The stamps are `origin_s + stamps_s` but for the last bits of a float.
        """
        part = self._seconds(first, last)
        first_s = origin_s + (part.second + (part.low + 0.5) / part.count)
        return Arrivals(first_s, 1.0 / part.count, part.high - part.low)

    def _seconds(self, first: int, last: int) -> _Seconds:
        if not 0 <= first <= last:
            raise ValueError(f"first={first}, last={last}: not a range of records")
        _check_within_reach(last / self.mean_rate)
        return _seconds_of(self._table(lambda before: bool(before[-1] >= last)), first, last)

    def _table_until(self, second: int) -> IntArray:
        _check_within_reach(second)
        return self._table(lambda before: len(before) > second)

    def _table(self, reaches: Callable[[IntArray], bool]) -> IntArray:
        """Records before each second, long enough for `reaches`."""
        while not reaches(self._before):
            self._before = self._longer(self._before)
        return self._before

    def _longer(self, before: IntArray) -> IntArray:
        known = len(before) - 1
        more = self.shape.counts(known, max(known, _FIRST_SECONDS))
        return np.concatenate([before, before[-1] + np.cumsum(more)])


@dataclass(frozen=True, slots=True, eq=False)
class _Seconds:
    """The seconds that hold a range of records: each one's records low..high-1 out of `count`."""

    second: IntArray
    low: IntArray
    high: IntArray
    count: IntArray


def _seconds_of(before: IntArray, first: int, last: int) -> _Seconds:
    # Of several seconds that begin with the same record number only the last has records: hence "right".
    begin, end = (np.searchsorted(before, [first, last - 1], side="right") - 1).tolist()
    second = np.arange(begin, end + 1)
    second = second[before[second + 1] > before[second]]
    start, count = before[second], before[second + 1] - before[second]
    return _Seconds(second, np.maximum(first - start, 0), np.minimum(last - start, count), count)


def _check_within_reach(offset_s: float) -> None:
    if not offset_s <= _LONGEST_S:
        raise ValueError(f"{offset_s:g} s is too far: offsets are seconds since the trace began, not wall-clock time")


def _arrived(second: int, count: int, t_s: float) -> int:
    """Of the `count` records of a second, those with an offset of at most `t_s`."""
    k = max(0, min(count, math.floor((t_s - second) * count + 0.5)))
    # The division above rounds; compare with the very stamps that `stamps_s` gives.
    while k < count and second + (k + 0.5) / count <= t_s:
        k += 1
    while k > 0 and second + (k - 0.5) / count > t_s:
        k -= 1
    return k


def _whole_counts(total: Callable[[FloatArray], FloatArray], second: int, seconds: int) -> IntArray:
    """Whole records per second from a running total, so that nothing is lost to rounding in the long run."""
    offset_s = np.arange(second, second + seconds + 1, dtype=np.float64)
    whole = np.floor(total(offset_s) + _HAIR).astype(np.int64)
    return whole[1:] - whole[:-1]


_NUMBER = r"(\d+(?:_\d+)*(?:\.\d+)?(?:e\d+)?)"
_SECONDS = _NUMBER + r"\s*s?"
_COMMA = r"\s*,\s*"

_FORMS: dict[str, Callable[[list[float], int], Shape]] = {
    _NUMBER: lambda numbers, _: Constant(*numbers),
    rf"B\(\s*{_NUMBER}\s*\)": lambda numbers, _: Constant(*numbers),
    rf"U\(\s*{_NUMBER}\s*\)": lambda numbers, seed: Uniform(numbers[0], seed),
    rf"burst\(\s*{_NUMBER}{_COMMA}x?\s*{_NUMBER}{_COMMA}{_SECONDS}{_COMMA}every\s+{_SECONDS}\s*\)": (
        lambda numbers, _: Burst(*numbers)
    ),
    rf"diurnal\(\s*{_NUMBER}{_COMMA}period\s+{_SECONDS}{_COMMA}depth\s+{_NUMBER}\s*\)": (
        lambda numbers, _: Diurnal(*numbers)
    ),
}

_FILE = rf"file:(?P<path>.+)|file\(\s*(?P<mean>{_NUMBER}){_COMMA}(?P<scaled_path>.+)\)"

_EXAMPLES = (
    "1000, B(1000), U(1000), burst(1000, x3, 5s, every 30s), diurnal(1000, period 600s, depth 0.8), file:PATH, "
    "file(1000, PATH)"
)


def parse_traffic(text: str, seed: int) -> Traffic:
    """The traffic that `text` describes; `seed` decides the counts of random rates.

    - `1000` or `B(1000)`: constant, records per second
    - `U(1000)`: every second a random number of records, uniform on 0..2000
    - `burst(1000, x3, 5s, every 30s)`: 1000 per second, and three times that during the last 5 s of every 30 s;
      the number given is the base rate, the mean is higher
    - `diurnal(1000, period 600s, depth 0.8)`: a sinusoid with mean 1000, from 200 to 1800
    - `file:PATH`: one count per line and second, from the start again at the end; blank lines, lines with # and a
      heading are skipped
    - `file(1000, PATH)`: the same, scaled to 1000 per second on average
    """
    try:
        return Traffic(_shape(text.strip(), seed))
    except BadParameter as error:
        # Shapes know what is wrong but not what the user wrote.
        raise BadParameter("rate", text, error.problem, error.remedy) from error.__cause__


def _shape(text: str, seed: int) -> Shape:
    if file := re.fullmatch(_FILE, text, re.IGNORECASE):
        return _recorded(Path((file["path"] or file["scaled_path"]).strip()), file["mean"])
    for pattern, build in _FORMS.items():
        if found := re.fullmatch(pattern, text, re.IGNORECASE):
            return build([float(number) for number in found.groups()], seed)
    raise BadParameter("rate", text, "is not a rate", f"write one of: {_EXAMPLES}")


def _recorded(path: Path, mean: str | None) -> Recorded:
    recorded = Recorded(_counts_in(path))
    if mean is None:
        return recorded
    if recorded.mean_rate == 0:
        raise _bad_file(path, "has no records, so that no factor gives it a mean")
    return recorded.scaled(float(mean) / recorded.mean_rate)


def _counts_in(path: Path) -> tuple[int, ...]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _bad_file(path, f"cannot be read ({error})") from error
    numbered = [(number, line.strip().rstrip(",")) for number, line in enumerate(lines, 1)]
    told = [(number, line) for number, line in numbered if line and not line.startswith("#")]
    # A first line without any digit is a heading.
    if told and not re.search(r"\d", told[0][1]):
        told = told[1:]
    return tuple(_count_in(path, number, line) for number, line in told)


def _count_in(path: Path, number: int, line: str) -> int:
    if not re.fullmatch(r"\d{1,9}", line):
        raise _bad_file(path, f"line {number} is {line[:40]!r}, not a count below a billion")
    return int(line)


def _bad_file(path: Path, problem: str) -> BadParameter:
    return BadParameter("rate", f"file:{path}", problem, "name a text file with one whole number per line and second")
