"""A floor under every schedule of the model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from headgate.bench.clairvoyant.streams import BUCKET_S, HAIR_S, LEAST_S, ClairvoyantQuery, bucket_rows
from headgate.core.arrivals import FloatArray, IntArray

_BOUND_STEP_S = 1.0
"""Grid of the intervals that `bound` looks at: a finer one costs its square and finds little more."""

_BOUND_WINDOWS = 9


def bound(queries: Sequence[ClairvoyantQuery], seconds: float, *, skip_s: float = 0.0) -> float:
    """What the worst query's late share is not below in any schedule of the model, however clever.

    Records that arrive from t1 on and are due by t2 are, if in time, in batches that run wholly within t1..t2. Each
    costs at least `per_row_s` and `fixed_s` divided by the most records that can be in time in one batch with it. What
    these costs exceed t2 - t1 by is the least cost of late records; disjoint intervals add up. Late ones are reckoned
    as the dearest of their query and as never done, so the bound is far below the optimum unless overload is heavy.
    """
    at_s = np.arange(min(skip_s, seconds), seconds + HAIR_S, _BOUND_STEP_S)
    excess_s, most_s = np.subtract.outer(at_s, at_s), 0.0
    for query in queries:
        rows, cost_s = _least_costs(query, seconds)
        first, last = _buckets(at_s + BUCKET_S - 2 * HAIR_S), _buckets(at_s - query.deadline_s)
        before_s = np.append(0.0, np.cumsum(rows * cost_s))
        excess_s += np.maximum(before_s[last][None, :] - before_s[np.minimum(first, len(rows))][:, None], 0.0)
        counted = slice(first[0], _buckets(np.array([seconds - query.deadline_s]))[0])
        most_s += rows[counted].sum() * (cost_s * (rows > 0))[counted].max(initial=0.0)
    return _largest_sum(excess_s) / max(most_s, LEAST_S)


def _buckets(at_s: FloatArray) -> IntArray:
    """How many whole buckets there are before each time."""
    return np.floor(np.maximum(at_s, 0.0) / BUCKET_S + HAIR_S).astype(np.int64)


def _least_costs(query: ClairvoyantQuery, seconds: float) -> tuple[FloatArray, FloatArray]:
    """Per bucket: its rows, and what one of them costs at least if it is in time."""
    rows = bucket_rows(query.traffic, seconds).astype(np.float64)
    window_s = max(query.deadline_s - query.fixed_s, 0.0)
    # Either a batch's rows take less than `spent_s`, which limits them, or so much of the window is left for arrivals.
    most = [
        np.maximum(spent_s / max(query.per_row_s, LEAST_S), _most_within(rows, window_s - spent_s))
        for spent_s in np.linspace(0.0, window_s, _BOUND_WINDOWS)
    ]
    return rows, query.per_row_s + query.fixed_s / np.maximum(np.min(most, axis=0), 1.0)


def _most_within(rows: FloatArray, window_s: float) -> FloatArray:
    """Per bucket: the most rows that arrive within a window of that length with one of its rows in it."""
    width = math.ceil(window_s / BUCKET_S) + 1
    together = np.convolve(rows, np.ones(width))
    windows = sliding_window_view(np.append(together, np.zeros(width)), width)[: len(rows)]
    return np.asarray(windows.max(axis=1), np.float64)


def _largest_sum(excess_s: FloatArray) -> float:
    """The largest sum of `excess_s[t1, t2]` over disjoint intervals."""
    best_s = np.zeros(len(excess_s))
    for end in range(1, len(best_s)):
        best_s[end] = max(best_s[end - 1], np.max(best_s[:end] + excess_s[:end, end]))
    return float(best_s[-1])
