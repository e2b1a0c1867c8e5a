"""Whatever the shape, counts, stamps and arrivals tell the same story; so do the workloads made from them."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.core.arrivals import Arrivals
from headgate.core.traffic import Burst, Constant, Diurnal, Recorded, Shape, Traffic, Uniform, parse_traffic
from headgate.workloads.linear_road import LinearRoad

# Laws are about answers: a busy machine may take its time.
unhurried = settings(deadline=None)

rates = st.one_of(st.integers(1, 60), st.floats(0.3, 60.0))
seeds = st.integers(-(2**70), 2**70)
shapes: st.SearchStrategy[Shape] = st.one_of(
    st.builds(Constant, rates),
    st.builds(Uniform, rates, seeds),
    st.builds(Burst, rates, st.floats(0.5, 5.0), st.floats(0.0, 7.0), st.floats(7.0, 40.0)),
    st.builds(Diurnal, rates, st.floats(1.0, 500.0), st.floats(0.0, 1.0)),
    st.builds(Recorded, st.lists(st.integers(0, 9), max_size=8).map(lambda some: (*some, 3)), st.floats(0.3, 4.0)),
)
indices = st.integers(0, 3000)
pairs = st.tuples(indices, indices).map(sorted)
triples = st.tuples(indices, indices, indices).map(sorted)


@unhurried
@given(shapes, pairs)
def test_stamps_ascend_and_one_is_as_good_as_many(shape: Shape, pair: list[int]) -> None:
    first, last = pair
    stamps_s = Traffic(shape).stamps_s(first, last)
    assert stamps_s.size == last - first
    assert (np.diff(stamps_s) > 0).all()
    if first < last:
        assert Traffic(shape).stamp_s(first) == stamps_s[0]


@unhurried
@given(shapes, indices)
def test_a_record_has_arrived_from_its_stamp_on(shape: Shape, index: int) -> None:
    traffic = Traffic(shape)
    stamp_s = traffic.stamp_s(index)
    assert traffic.count_before(stamp_s) == index + 1
    assert traffic.count_before(float(np.nextafter(stamp_s, -np.inf))) == index


@unhurried
@given(shapes, st.floats(0.0, 100.0))
def test_counts_and_stamps_agree(shape: Shape, t_s: float) -> None:
    traffic = Traffic(shape)
    arrived = traffic.count_before(t_s)
    stamps_s = traffic.stamps_s(0, arrived + 1)
    assert (stamps_s[:-1] <= t_s).all()
    assert stamps_s[-1] > t_s


@unhurried
@given(shapes, st.integers(0, 200))
def test_rates_and_counts_agree(shape: Shape, second: int) -> None:
    traffic = Traffic(shape)
    assert traffic.rate_at(second) == traffic.count_before(second + 1) - traffic.count_before(second) >= 0


@unhurried
@given(shapes, st.integers(0, 3000), st.integers(1, 50))
def test_shapes_may_be_asked_from_any_second_on(shape: Shape, second: int, seconds: int) -> None:
    assert shape.counts(second, seconds).tolist() == shape.counts(0, second + seconds)[second:].tolist()


@unhurried
@given(shapes, pairs, st.sampled_from([0.0, 1.7e9]))
def test_arrivals_are_the_stamps(shape: Shape, pair: list[int], origin_s: float) -> None:
    first, last = pair
    arrivals = Traffic(shape).arrivals(first, last, origin_s)
    assert arrivals.expand() == pytest.approx(origin_s + Traffic(shape).stamps_s(first, last), rel=0, abs=1e-6)


@unhurried
@given(shapes, triples)
def test_arrivals_of_neighbouring_ranges_join(shape: Shape, triple: list[int]) -> None:
    first, cut, last = triple
    traffic = Traffic(shape)
    joined = traffic.arrivals(first, cut, 5.0) + traffic.arrivals(cut, last, 5.0)
    whole: Arrivals = traffic.arrivals(first, last, 5.0)
    assert joined.expand() == pytest.approx(whole.expand(), rel=0, abs=1e-9)


@unhurried
@given(shapes, st.lists(indices, min_size=1, max_size=5))
def test_answers_do_not_depend_on_what_was_asked_before(shape: Shape, asked: list[int]) -> None:
    used = Traffic(shape)
    for index in asked:
        assert used.stamp_s(index) == Traffic(shape).stamp_s(index)
    assert pickle.loads(pickle.dumps(used)).stamp_s(asked[0]) == used.stamp_s(asked[0])


@unhurried
@given(shapes)
def test_the_mean_rate_is_what_comes_in_the_long_run(shape: Shape) -> None:
    traffic = Traffic(shape)
    slack = 0.06 if isinstance(shape, Uniform) else 0.01
    assert traffic.count_before(40_000) == pytest.approx(40_000 * traffic.mean_rate, rel=slack, abs=2)


@unhurried
@given(shapes.filter(lambda shape: not isinstance(shape, Uniform)), st.floats(0.2, 20.0), st.integers(1, 300))
def test_scaling_multiplies_what_has_come(shape: Shape, factor: float, second: int) -> None:
    traffic = Traffic(shape)
    scaled = traffic.scaled(factor)
    assert scaled.mean_rate == pytest.approx(factor * traffic.mean_rate)
    assert scaled.count_before(second) == pytest.approx(factor * traffic.count_before(second), abs=factor + 1)


@unhurried
@given(seeds, st.integers(0, 10**7))
def test_random_counts_depend_on_nothing_but_seed_and_second(seed: int, second: int) -> None:
    shape = Uniform(1000, seed)
    assert shape.counts(second, 3).tolist() == Uniform(1000, seed).counts(second, 3).tolist()
    assert ((shape.counts(second, 50) >= 0) & (shape.counts(second, 50) <= 2000)).all()


@unhurried
@given(st.integers(1, 400), st.integers(1, 5), seeds, triples)
def test_batches_of_any_split_are_one_batch(vehicles: int, roads: int, seed: int, triple: list[int]) -> None:
    first, cut, last = triple
    road, traffic = LinearRoad(vehicles, roads, seed), parse_traffic("burst(50, x3, 2s, every 9s)", 0)

    def batch(begin: int, end: int) -> pa.RecordBatch:
        return road.batch(begin, end, 1.7e9 + traffic.stamps_s(begin, end))

    parts = pa.Table.from_batches([batch(first, cut), batch(cut, last)])
    assert parts.equals(pa.Table.from_batches([batch(first, last)]))
