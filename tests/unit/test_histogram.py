"""LatencyHistogram: quantiles of a whole query in flat memory."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headgate.core.arrivals import Arrivals
from headgate.core.histogram import LatencyHistogram

BATCHES = [
    (Arrivals.of([(1.7e9, 0.001, 3000), (1.7e9 + 1, 0.01, 200)]), 1.7e9 + 3.5),
    (Arrivals.of([(1.7e9 + 3, 0.0, 500)]), 1.7e9 + 3.0405),
    (Arrivals.of([(1.7e9 - 900, 1.0, 40)]), 1.7e9),
]
SHARES = [0.0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0]


def of(batches: list[tuple[Arrivals, float]]) -> LatencyHistogram:
    histogram = LatencyHistogram()
    for arrivals, finished_s in batches:
        histogram.add(arrivals, finished_s)
    return histogram


def latencies_s(batches: list[tuple[Arrivals, float]]) -> np.ndarray:
    return np.concatenate([finished_s - arrivals.expand() for arrivals, finished_s in batches])


@pytest.mark.parametrize("share", SHARES)
def test_quantiles_are_at_most_two_percent_high_and_never_low(share: float) -> None:
    true_s = np.quantile(latencies_s(BATCHES), share, method="inverted_cdf")
    told_s = of(BATCHES).quantile(share)
    assert told_s is not None
    assert true_s <= told_s <= 1.02 * true_s * (1 + 1e-9)


def test_counts_every_record_once() -> None:
    assert of(BATCHES).count == 3740
    assert of(BATCHES).mean_s == pytest.approx(latencies_s(BATCHES).mean(), abs=1e-6)
    assert of(BATCHES).max_s == latencies_s(BATCHES).max() == of(BATCHES).quantile(1.0)


def test_records_go_into_the_bucket_that_holds_them() -> None:
    one_by_one = [(Arrivals.of([(stamp_s, 0.0, 1)]), f_s) for a, f_s in BATCHES for stamp_s in a.expand()[::7]]
    together = [(Arrivals.of((s, 0.0, 1) for s in a.expand()[::7]), f_s) for a, f_s in BATCHES]
    assert of(one_by_one).to_json()["buckets"] == of(together).to_json()["buckets"]


def test_an_empty_one_has_no_quantiles() -> None:
    empty = of([(Arrivals.empty(), 5.0)])
    assert (empty.count, empty.quantile(0.5), empty.max_s, empty.mean_s) == (0, None, None, None)


def test_merging_is_adding_all() -> None:
    merged = of(BATCHES[:1]).merge(of(BATCHES[1:]))
    assert merged.to_json()["buckets"] == of(BATCHES).to_json()["buckets"]
    assert merged.max_s == of(BATCHES).max_s
    assert merged.mean_s == pytest.approx(of(BATCHES).mean_s)
    assert merged.merge(LatencyHistogram()).to_json() == merged.to_json()
    assert LatencyHistogram().merge(merged).to_json() == merged.to_json()


def test_merging_leaves_both_as_they_were() -> None:
    one, other = of(BATCHES[:1]), of(BATCHES[1:])
    before = one.to_json(), other.to_json()
    one.merge(other).add(*BATCHES[0])
    assert (one.to_json(), other.to_json()) == before


def test_extremes_have_a_bucket_too() -> None:
    extremes = of([(Arrivals.of([(10.0, 0.0, 3)]), 9.0), (Arrivals.of([(-1e9, 0.0, 1)]), 0.0)])
    assert extremes.count == 4
    assert extremes.quantile(0.5) == pytest.approx(0.001)
    assert extremes.quantile(1.0) == 1e9


def test_a_bucket_includes_its_upper_bound() -> None:
    assert of([(Arrivals.of([(0.0, 0.0, 1)]), 0.001)]).to_json()["buckets"] == [[0, 1]]
    assert of([(Arrivals.of([(0.0, 0.0, 1)]), 0.0010001)]).to_json()["buckets"] == [[1, 1]]


def test_stays_small_in_json() -> None:
    histogram = of([(Arrivals.of([(float(hour), 0.001, 3_600_000)]), hour + 3601.0) for hour in range(3)])
    text = json.dumps(histogram.to_json())
    assert len(text) < 10_000
    assert LatencyHistogram.from_json(json.loads(text)).to_json() == histogram.to_json()


@pytest.mark.parametrize("buckets", [[[-1, 1]], [[99_999, 1]], [[0, -1]]])
def test_json_refuses_nonsense(buckets: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="bucket"):
        LatencyHistogram.from_json({"buckets": buckets, "sum_s": 0.0, "max_s": None})


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_refuses_shares_that_are_none(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        of(BATCHES).quantile(share)
