"""Arrivals: runs of stamps and the latencies that follow from them."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headgate.core.arrivals import Arrivals, LatencyStats, nearest_rank

# Two steady runs that overlap, and one moment at which three records came together:
#   10.0  10.5  11.0  11.5
#            10.75     11.25
#                 11.0 x3
MIXED = Arrivals.of([(10.0, 0.5, 4), (10.75, 0.5, 2), (11.0, 0.0, 3)])


def test_knows_its_extent() -> None:
    assert (MIXED.total, MIXED.oldest_s, MIXED.newest_s) == (9, 10.0, 11.5)
    assert MIXED.mean_s == pytest.approx(98.0 / 9)


def test_empty_has_no_times() -> None:
    empty = Arrivals.empty()
    assert (empty.total, empty.oldest_s, empty.newest_s, empty.mean_s) == (0, None, None, None)
    assert empty.expand().size == 0
    assert empty.count_at_most(math.inf) == 0


def test_expands_run_by_run() -> None:
    assert MIXED.expand().tolist() == [10.0, 10.5, 11.0, 11.5, 10.75, 11.25, 11.0, 11.0, 11.0]


@pytest.mark.parametrize(("t_s", "expected"), [(9.99, 0), (10.0, 1), (10.75, 3), (10.99, 3), (11.0, 7), (99.0, 9)])
def test_counts_up_to_and_including_a_time(t_s: float, expected: int) -> None:
    assert MIXED.count_at_most(t_s) == expected


def test_kth_is_that_of_the_sorted_stamps() -> None:
    assert [MIXED.kth_s(k) for k in range(9)] == sorted(MIXED.expand().tolist())


@pytest.mark.parametrize("k", [-1, 9])
def test_kth_outside_is_an_error(k: int) -> None:
    with pytest.raises(IndexError, match="of 9"):
        MIXED.kth_s(k)


def test_kth_of_a_large_batch_is_exact() -> None:
    large = Arrivals.of([(1.7e9, 1e-4, 100_000), (1.7e9 + 3.3, 0.0, 50_000), (1.7e9 + 2, 7e-5, 77_777)])
    stamps_s = np.sort(large.expand())
    for k in (0, 1, 99_999, 120_000, 227_776):
        assert large.kth_s(k) == stamps_s[k]


def test_steps_finer_than_a_float_resolves_are_counted_exactly() -> None:
    # Around 1.7e9 floats are 2.4e-7 apart: hundreds of stamps fall on each.
    fine = Arrivals.of([(1.7e9, 1e-9, 5000)])
    stamps_s = fine.expand()
    for t_s in np.unique(stamps_s):
        assert fine.count_at_most(t_s) == (stamps_s <= t_s).sum()


def test_latencies_of_a_batch() -> None:
    # Latencies: 0.5 0.75 1 1 1 1 1.25 1.5 2
    stats = MIXED.latency(finished_s=12.0, deadline_s=1.25)
    assert stats.mean_s == pytest.approx(10.0 / 9)
    assert replace(stats, mean_s=0.0) == LatencyStats(
        rows=9, max_s=2.0, mean_s=0.0, p50_s=1.0, p95_s=2.0, p99_s=2.0, violations=2
    )


def test_a_record_that_meets_its_deadline_exactly_is_no_violation() -> None:
    assert Arrivals.of([(0.0, 1.0, 5)]).latency(finished_s=4.0, deadline_s=2.0).violations == 2


def test_without_a_deadline_nothing_is_late() -> None:
    assert MIXED.latency(finished_s=1e6, deadline_s=None).violations == 0


def test_quantiles_are_nearest_rank() -> None:
    stats = Arrivals.of([(0.0, 1.0, 100)]).latency(finished_s=100.0, deadline_s=None)
    assert (stats.p50_s, stats.p95_s, stats.p99_s, stats.max_s) == (50.0, 95.0, 99.0, 100.0)


def test_latencies_of_nothing_are_zero() -> None:
    assert Arrivals.empty().latency(5.0, 1.0) == LatencyStats(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)


@pytest.mark.parametrize(
    ("share", "rows", "rank"), [(0.07, 100, 7), (0.5, 1, 1), (0.5, 3, 2), (0.99, 100, 99), (1.0, 7, 7), (0.0, 7, 1)]
)
def test_nearest_rank_is_not_fooled_by_rounding(share: float, rows: int, rank: int) -> None:
    assert nearest_rank(share, rows) == rank


def test_adds_and_concatenates() -> None:
    one, two = Arrivals.of([(1.0, 0.5, 2)]), Arrivals.of([(0.0, 0.0, 1)])
    assert (one + two).expand().tolist() == [1.0, 1.5, 0.0]
    assert Arrivals.concat([one, two, one]).total == 5
    assert Arrivals.concat([]) == Arrivals.empty()


def test_runs_without_records_are_dropped() -> None:
    assert Arrivals.of([(1.0, 1.0, 0), (2.0, 1.0, 1)]) == Arrivals.of([(2.0, 1.0, 1)])


def test_is_a_value() -> None:
    again = Arrivals.of([(10.0, 0.5, 4), (10.75, 0.5, 2), (11.0, 0.0, 3)])
    assert again == MIXED
    assert hash(again) == hash(MIXED)
    assert Arrivals.of([(10.0, 0.5, 5)]) != Arrivals.of([(10.0, 0.5, 4)])
    assert MIXED != "something else"
    assert pickle.loads(pickle.dumps(MIXED)) == MIXED
    with pytest.raises(ValueError, match="read-only"):
        MIXED.first_s[0] = 0.0


def test_does_not_freeze_or_follow_its_makers_arrays() -> None:
    first_s = np.array([1.0])
    made = Arrivals(first_s, np.array([0.0]), np.array([1]))
    first_s[0] = 2.0
    assert made.oldest_s == 1.0


def test_json_there_and_back() -> None:
    text = json.dumps(MIXED.to_json())
    assert text == "[[10.0, 0.5, 4], [10.75, 0.5, 2], [11.0, 0.0, 3]]"
    assert Arrivals.from_json(json.loads(text)) == MIXED
    assert Arrivals.from_json([]) == Arrivals.empty()


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        {},
        "[]",
        [[1.0, 1.0]],
        [1.0, 1.0, 1],
        [[1.0, 1.0, -1]],
        [[1.0, -1.0, 1]],
        [[math.nan, 1.0, 1]],
        [[1.0, math.nan, 1]],
        [[1.0, math.inf, 1]],
        [[1.0, 1.0, 1.5]],
        [[1.0, 1.0, True], [1.0, 1.0, 2]],
        [["1.0", 1.0, 1]],
        [[10**400, 1.0, 1]],
        [[1.0, 1.0, 10**30]],
        [[1e308, 1e308, 3]],
    ],
)
def test_json_refuses_nonsense(nonsense: Any) -> None:
    with pytest.raises(ValueError, match="arrivals"):
        Arrivals.from_json(nonsense)


def test_refuses_columns_of_different_length() -> None:
    with pytest.raises(ValueError, match="as many"):
        Arrivals(np.array([1.0, 2.0]), np.array([1.0]), np.array([1]))
    with pytest.raises(ValueError, match="whole"):
        Arrivals(np.array([1.0]), np.array([1.0]), np.array([1.5]))


def test_many_bounds_are_worked_off_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds_s = np.linspace(-1.0, 3.0, 50)
    at_once = MIXED.counts_over(12.0, bounds_s)
    monkeypatch.setattr("headgate.core.arrivals._CELLS_AT_ONCE", 10)
    assert MIXED.counts_over(12.0, bounds_s).tolist() == at_once.tolist()
    assert at_once.tolist() == [(12.0 - MIXED.expand() > bound_s).sum() for bound_s in bounds_s]
