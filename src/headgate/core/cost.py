"""What a micro-batch will take: affine in its rows, learned online, with the spread of the situation.

A batch of `rows` that runs beside `overlap` other batches (their average number while it ran) takes about

    (fixed_s + per_row_s * rows) * (1 + stretch * overlap)

seconds. All parts are learned with exponential forgetting, because the JVM gets several times faster while it warms up
and loads drift. What changes then is mostly the level: fixed and per-row costs fall alike, and every batch tells it,
while only batches of different sizes tell one part from the other. So the level follows quickly, the rest slowly; a
query whose batches are rare would otherwise believe for minutes that they cost what they cost cold.

What company costs is told by comparing batches that had some with the line, as it is known by now. While all batches
have the same company nobody can tell it from the line; the first ones that run alone put both right.

The residual is kept as a logarithm, separately for batches that ran alone and batches that had company: the spread of
a mixture would be too wide for the one and too narrow for the other.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

from headgate.errors import StateError

FORGET = 0.93
"""Weight of the past per batch: about the last 14 batches count, enough for a spread, short enough for JIT warm-up."""

LEVEL_GAIN = 0.3
"""How far the level follows the latest batch, if batches are even: the last three or so tell what all costs are
multiplied by."""

READY_AFTER = 3
"""Batches before predictions are trusted to hold a batch back."""

_PRIOR_FIXED_S = 1.0  # before the first batch: a cold small batch takes about a second
_PRIOR_PER_ROW_S = 2e-5  # and a cautious 50,000 rows/s, so that a first batch on a backlog stays moderate
_PRIOR_SPREAD = 0.5
_SPREAD_PRIOR = 0.25  # assumed spread of the logarithm, worth `_PRIOR_WEIGHT` batches
_SPREAD_FLOOR = 0.04  # timers, GC and listing make a few per cent of noise even in quiet runs
_PRIOR_WEIGHT = 2.0
_SLOPE_SHRINK = 0.3  # how strongly "half of the cost is fixed" holds while batch sizes hardly vary
_STRETCH_PRIOR = 0.7  # two batches on the same cores: most of the other's time is added
_STRETCH_MAX = 3.0
_KNOWN_OVERLAP_SQ = 0.25  # a whole batch beside another counts one and is forgotten after nineteen others
_CLIP_MIN = math.log(2.0)  # an observation never counts as more than this (or 3 spreads) away from the prediction
_ALONE_BELOW = 0.25  # overlap under which a batch counts as having run alone
_FACTOR_MAX = 6.0
_FASTEST_S = 1e-3  # no micro-batch of Spark is faster: a model that says so was never learned


@lru_cache(maxsize=64)
def _normal_quantile(share: float) -> float:
    return NormalDist().inv_cdf(share)


@dataclass(frozen=True, slots=True)
class Residual:
    """Exponentially weighted mean and variance of log(actual / predicted)."""

    weight: float = 0.0
    mean: float = 0.0
    variance: float = 0.0

    def add(self, value: float) -> Residual:
        weight = FORGET * self.weight + 1.0
        step = (value - self.mean) / weight
        mean = self.mean + step
        variance = (FORGET * self.weight * (self.variance + step * step) + (value - mean) ** 2) / weight
        return Residual(weight, mean, variance)

    def fade(self) -> Residual:
        """A batch ran in another situation: what is known of this one grows old."""
        return replace(self, weight=FORGET * self.weight)

    @property
    def bias(self) -> float:
        """The mean, as far as it is backed by batches."""
        return self.mean * self.weight / (self.weight + _PRIOR_WEIGHT)

    @property
    def spread(self) -> float:
        """The standard deviation to reckon with, a cautious one while there are few batches."""
        pooled = (self.weight * self.variance + _PRIOR_WEIGHT * _SPREAD_PRIOR**2) / (self.weight + _PRIOR_WEIGHT)
        return max(_SPREAD_FLOOR, math.sqrt(pooled * (1.0 + 1.0 / (self.weight + _PRIOR_WEIGHT))))


@dataclass(frozen=True, slots=True)
class Company:
    """Exponentially weighted means of batches that others ran beside, each weighted with how many those were."""

    weight: float = 0.0
    overlap: float = 0.0
    rows: float = 0.0
    seconds: float = 0.0

    def add(self, rows: float, seconds: float, overlap: float) -> Company:
        weight = FORGET * self.weight + overlap
        share = overlap / weight
        return Company(
            weight,
            self.overlap + share * (overlap - self.overlap),
            self.rows + share * (rows - self.rows),
            self.seconds + share * (seconds - self.seconds),
        )

    def fade(self) -> Company:
        return replace(self, weight=FORGET * self.weight)

    def stretch(self, alone_s: float) -> float:
        """How much longer each other batch made them, if they would have taken `alone_s` alone."""
        excess = self.seconds / max(alone_s, 1e-9) - 1.0
        found = (self.weight * excess + _STRETCH_PRIOR) / (self.weight * self.overlap + 1.0)
        return min(max(found, 0.0), _STRETCH_MAX)


@dataclass(frozen=True, slots=True)
class CostModel:
    """An immutable estimate; :meth:`observe` returns the next one."""

    batches: int = 0
    weight: float = 0.0
    mean_rows: float = 0.0
    mean_s: float = 0.0
    var_rows: float = 0.0
    cov: float = 0.0
    overlap_sq: float = 0.0
    beside: Company = Company()
    alone: Residual = Residual()
    company: Residual = Residual()
    mean_rows_s: float = 0.0
    """Running average of rows per second (zStream's AvgThPut)."""
    max_rows_s: float = 0.0
    """Best rows per second of a batch that ran alone (Q-Spark's MaxThroughput)."""
    fixed_s: float = _PRIOR_FIXED_S
    per_row_s: float = _PRIOR_PER_ROW_S
    stretch: float = _STRETCH_PRIOR

    @property
    def ready(self) -> bool:
        return self.batches >= READY_AFTER

    @property
    def sound(self) -> bool:
        """Whether its numbers are usable; a model that is not is learned anew."""
        numbers = (self.fixed_s, self.per_row_s, self.stretch, self.mean_s, self.mean_rows)
        return all(map(math.isfinite, numbers)) and self.expected_s(self.mean_rows) > _FASTEST_S

    @property
    def company_known(self) -> bool:
        """Whether enough of the last twenty batches or so had company to know `stretch`."""
        return self.beside.weight * self.beside.overlap >= _KNOWN_OVERLAP_SQ

    @property
    def usual_overlap(self) -> float:
        """How many other batches ran beside its own lately (the root of the mean square)."""
        return math.sqrt(self.overlap_sq / self.weight) if self.weight > 0 else 0.0

    def expected_s(self, rows: float, overlap: float = 0.0) -> float:
        """The expected duration."""
        return (self.fixed_s + self.per_row_s * max(rows, 0.0)) * (1.0 + self.stretch * overlap)

    def left_s(self, rows: float, ran_s: float, overlap: float) -> float:
        """What is left of a batch that has run for `ran_s` beside `overlap` others, if company is from now on as usual.

        A long batch sees many short ones of tighter queries come and go: who reckons with those alone that run already
        expects its end in half the time.
        """
        done_s = ran_s / (1.0 + self.stretch * overlap)
        return max(0.0, self.expected_s(rows) - done_s) * (1.0 + self.stretch * self.usual_overlap)

    def quantile_s(self, rows: float, overlap: float, quantile: float) -> float:
        """The duration that a share `quantile` of such batches stays below."""
        return self.expected_s(rows, overlap) * self.factor(overlap, quantile)

    def factor(self, overlap: float, quantile: float) -> float:
        """How much longer than expected a batch takes at `quantile`, in this situation."""
        if self.batches == 0:
            return math.exp(_PRIOR_SPREAD * _normal_quantile(quantile))
        residual = self._residual(overlap)
        exponent = residual.bias + residual.spread * _normal_quantile(quantile)
        return min(_FACTOR_MAX, math.exp(min(exponent, 3.0)))

    def _residual(self, overlap: float) -> Residual:
        return self.alone if overlap < _ALONE_BELOW else self.company

    def rows_within(self, budget_s: float, overlap: float, quantile: float) -> int:
        """The largest batch that stays within `budget_s` at `quantile`; 0 if not even an empty one does."""
        scale = (1.0 + self.stretch * overlap) * self.factor(overlap, quantile)
        spare_s = budget_s / scale - self.fixed_s
        if spare_s <= 0:
            return 0
        return int(min(spare_s / max(self.per_row_s, 1e-12), 1e15))

    def observe(self, rows: int, duration_s: float, overlap: float) -> CostModel:
        """Learn from a finished batch; nonsense and empty batches teach nothing."""
        if rows <= 0 or not (math.isfinite(duration_s) and duration_s > 0 and math.isfinite(overlap)):
            return self
        if not self.sound:
            return CostModel().observe(rows, duration_s, overlap)
        overlap = min(max(overlap, 0.0), 50.0)
        clipped_s = self._clip(rows, duration_s, overlap)
        level = self._follow_level(rows, duration_s, overlap) if clipped_s == duration_s else self
        fitted = level._fit_line(rows, clipped_s / (1.0 + self.stretch * overlap))
        learned = fitted._fit_stretch(rows, clipped_s, overlap)._rates(rows, duration_s, overlap)
        # Once trusted, the error is that of the prediction made before: a fit flatters its own data.
        judge = self if self.ready else learned
        return learned._fit_residual(judge.expected_s(rows, overlap), duration_s, overlap)

    def _clip(self, rows: int, duration_s: float, overlap: float) -> float:
        """Pull an outlier in: one 30 s garbage collection must not make every later batch start too early."""
        if not self.ready:
            return duration_s
        limit = max(_CLIP_MIN, 3.0 * self._residual(overlap).spread)
        expected_s = self.expected_s(rows, overlap)
        return min(max(duration_s, expected_s * math.exp(-limit)), expected_s * math.exp(limit))

    def _follow_level(self, rows: int, duration_s: float, overlap: float) -> CostModel:
        """All costs follow the latest batch a little, less in a situation whose batches scatter anyway."""
        if not self.ready or abs(overlap - self.usual_overlap) > 1.0:  # with other company it may be that
            return self
        scatter = (self._residual(overlap).spread / _SPREAD_PRIOR) ** 2
        scale = (duration_s / self.expected_s(rows, overlap)) ** (LEVEL_GAIN / (1.0 + scatter))
        beside = replace(self.beside, seconds=scale * self.beside.seconds)
        return replace(self, mean_s=scale * self.mean_s, cov=scale * self.cov, beside=beside)

    def _fit_line(self, rows: int, alone_s: float) -> CostModel:
        weight = FORGET * self.weight + 1.0
        share = 1.0 / weight
        delta_rows, delta_s = rows - self.mean_rows, alone_s - self.mean_s
        mean_rows = self.mean_rows + share * delta_rows
        mean_s = self.mean_s + share * delta_s
        var_rows = (1.0 - share) * (self.var_rows + share * delta_rows * delta_rows)
        cov = (1.0 - share) * (self.cov + share * delta_rows * delta_s)
        fixed_s, per_row_s = _line(mean_rows, mean_s, var_rows, cov, weight)
        return replace(
            self, batches=self.batches + 1, weight=weight, mean_rows=mean_rows, mean_s=mean_s,
            var_rows=var_rows, cov=cov, fixed_s=fixed_s, per_row_s=per_row_s,
        )  # fmt: skip

    def _fit_stretch(self, rows: int, duration_s: float, overlap: float) -> CostModel:
        """Against the line as it is known by now: what all batches had in common may first have been taken for it."""
        cold = self.batches <= READY_AFTER  # those take several times as long, in any company
        beside = self.beside.fade() if overlap < _ALONE_BELOW or cold else self.beside.add(rows, duration_s, overlap)
        overlap_sq = FORGET * self.overlap_sq + overlap * overlap
        stretch = beside.stretch(self.expected_s(beside.rows))
        return replace(self, overlap_sq=overlap_sq, beside=beside, stretch=stretch)

    def _fit_residual(self, expected_s: float, duration_s: float, overlap: float) -> CostModel:
        value = math.log(duration_s / max(expected_s, 1e-9))
        value = min(max(value, -3.0), 3.0)
        if self.ready:
            limit = max(_CLIP_MIN, 4.0 * self._residual(overlap).spread)
            value = min(max(value, -limit), limit)
        if overlap < _ALONE_BELOW:
            return replace(self, alone=self.alone.add(value), company=self.company.fade())
        return replace(self, company=self.company.add(value), alone=self.alone.fade())

    def _rates(self, rows: int, duration_s: float, overlap: float) -> CostModel:
        rows_s = rows / duration_s
        best = max(self.max_rows_s, rows_s) if overlap < _ALONE_BELOW else self.max_rows_s
        mean = rows_s if self.mean_rows_s == 0 else self.mean_rows_s + (rows_s - self.mean_rows_s) / self.weight
        return replace(self, mean_rows_s=mean, max_rows_s=best)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: object) -> CostModel:
        """Rebuild a saved model, refusing anything that could not have been saved by :meth:`to_json`."""
        if not isinstance(data, dict):
            raise StateError(f"saved cost model is not an object: {data!r:.80}")
        values: dict[str, Any] = {}
        for field in fields(cls):
            raw = data.get(field.name)
            part = _PARTS.get(field.name)
            values[field.name] = _number(field.name, raw) if part is None else _part(field.name, part, raw)
        values["batches"] = int(values["batches"])
        return cls(**values)


def _line(mean_rows: float, mean_s: float, var_rows: float, cov: float, weight: float) -> tuple[float, float]:
    """Slope by least squares, drawn towards "half of the cost is fixed" while sizes vary too little to tell."""
    if mean_rows <= 0:
        return mean_s, 0.0
    pull = _SLOPE_SHRINK / weight * mean_rows * mean_rows
    slope = (cov + pull * 0.5 * mean_s / mean_rows) / (var_rows + pull)
    # Some of the cost is always fixed and none is negative, whatever noise says.
    slope = min(max(slope, 0.0), 0.95 * mean_s / mean_rows)
    return mean_s - slope * mean_rows, slope


_PARTS: dict[str, type[Residual] | type[Company]] = {"alone": Residual, "company": Residual, "beside": Company}


def _part(name: str, kind: type[Residual] | type[Company], raw: object) -> Residual | Company:
    if not isinstance(raw, dict):
        raise StateError(f"saved cost model: {name}={raw!r:.80} is not what this version saves")
    return kind(*(_number(f.name, raw.get(f.name), signed=f.name == "mean") for f in fields(kind)))


def _number(name: str, raw: object, *, signed: bool = False) -> float:
    signed = signed or name == "cov"
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw) or (raw < 0 and not signed):
        raise StateError(f"saved cost model: {name}={raw!r} is not a usable number")
    return float(raw)
