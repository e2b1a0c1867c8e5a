"""Whatever the runs, Arrivals answer as the list of all their stamps would."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.core.arrivals import Arrivals
from headgate.core.histogram import LatencyHistogram

# Laws are about answers: a busy machine may take its time.
unhurried = settings(deadline=None)

EPOCH_S = 1.7e9
steps_s = st.one_of(st.just(0.0), st.sampled_from([1e-9, 1e-7, 1 / 3, 0.25]), st.floats(0.0, 5.0))
firsts_s = st.one_of(
    st.floats(-10.0, 10.0), st.floats(EPOCH_S, EPOCH_S + 10), st.integers(0, 8).map(lambda quarter: quarter / 4)
)
batches = st.lists(st.tuples(firsts_s, steps_s, st.integers(0, 60)), max_size=6).map(Arrivals.of)
some_batches = batches.filter(lambda arrivals: arrivals.total > 0)
# Latencies of seconds as in life, besides the wild ones that the strategies above make together.
finishes_s = st.one_of(st.floats(EPOCH_S, EPOCH_S + 60), st.floats(-20.0, 400.0), st.integers(0, 40).map(float))


@pytest.fixture(autouse=True, scope="module")
def few_are_sorted() -> Iterator[None]:
    """The search by halves is for batches larger than tests can afford: make it work on small ones too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headgate.core.arrivals._FEW", 2)
        yield


@unhurried
@given(some_batches, st.data())
def test_kth_is_that_of_the_sorted_stamps(arrivals: Arrivals, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, arrivals.total - 1))
    assert arrivals.kth_s(k) == np.sort(arrivals.expand())[k]


@unhurried
@given(some_batches, st.data())
def test_counts_are_those_of_the_stamps(arrivals: Arrivals, data: st.DataObject) -> None:
    stamps_s = arrivals.expand()
    on_a_stamp_s = float(stamps_s[data.draw(st.integers(0, arrivals.total - 1))])
    for t_s in (on_a_stamp_s, np.nextafter(on_a_stamp_s, -np.inf), data.draw(firsts_s)):
        assert arrivals.count_at_most(float(t_s)) == (stamps_s <= t_s).sum()


@unhurried
@given(some_batches)
def test_extent_and_mean_are_those_of_the_stamps(arrivals: Arrivals) -> None:
    stamps_s = arrivals.expand()
    assert arrivals.total == stamps_s.size
    assert (arrivals.oldest_s, arrivals.newest_s) == (stamps_s.min(), stamps_s.max())
    assert arrivals.mean_s == pytest.approx(stamps_s.mean(), rel=1e-12, abs=1e-9)


@unhurried
@given(some_batches, finishes_s, st.data())
def test_latencies_are_those_of_the_stamps(arrivals: Arrivals, finished_s: float, data: st.DataObject) -> None:
    latencies_s = finished_s - arrivals.expand()
    on_a_latency_s = float(latencies_s[data.draw(st.integers(0, arrivals.total - 1))])
    deadline_s = data.draw(st.one_of(st.just(on_a_latency_s), st.floats(0.0, 60.0)))
    stats = arrivals.latency(finished_s, deadline_s)
    told_s = (stats.p50_s, stats.p95_s, stats.p99_s, stats.max_s)
    assert told_s == tuple(np.quantile(latencies_s, [0.5, 0.95, 0.99, 1.0], method="inverted_cdf"))
    assert (stats.rows, stats.violations) == (arrivals.total, (latencies_s > deadline_s).sum())
    assert stats.mean_s == pytest.approx(latencies_s.mean(), rel=1e-9, abs=1e-5)


@unhurried
@given(batches, batches, batches)
def test_adding_is_putting_together(one: Arrivals, two: Arrivals, three: Arrivals) -> None:
    assert one + two + three == Arrivals.concat([one, two, three]) == one + (two + three)
    assert (one + two).expand().tolist() == [*one.expand().tolist(), *two.expand().tolist()]
    assert one + Arrivals.empty() == one


@unhurried
@given(batches)
def test_json_keeps_everything(arrivals: Arrivals) -> None:
    assert Arrivals.from_json(json.loads(json.dumps(arrivals.to_json()))) == arrivals


@unhurried
@given(some_batches, finishes_s, st.floats(0.0, 1.0))
def test_histogram_quantiles_are_within_two_percent(arrivals: Arrivals, finished_s: float, share: float) -> None:
    histogram = LatencyHistogram()
    histogram.add(arrivals, finished_s)
    latencies_s = np.sort(finished_s - arrivals.expand())
    rank = next(rank for rank in range(1, latencies_s.size + 1) if rank / latencies_s.size >= share)
    true_s, told_s = latencies_s[rank - 1], histogram.quantile(share)
    assert histogram.count == arrivals.total
    assert told_s is not None
    assert true_s <= told_s
    if true_s <= 1e5:
        assert told_s <= max(0.001, 1.02 * true_s * (1 + 1e-9))


@unhurried
@given(st.lists(st.tuples(batches, finishes_s), max_size=4), st.integers(0, 4))
def test_histograms_of_parts_merge_to_that_of_the_whole(parts: list[tuple[Arrivals, float]], cut: int) -> None:
    whole, left, right = LatencyHistogram(), LatencyHistogram(), LatencyHistogram()
    for place, (arrivals, finished_s) in enumerate(parts):
        whole.add(arrivals, finished_s)
        (left if place < cut else right).add(arrivals, finished_s)
    merged = left.merge(right)
    assert merged.to_json()["buckets"] == whole.to_json()["buckets"]
    assert merged.max_s == whole.max_s
