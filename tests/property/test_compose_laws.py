"""Composition and splitting: nothing beyond the room, nothing lost, and exactly what the literal algorithms give."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.compose import COMPOSITIONS, lbf, oldest, proportional, round_robin, weighted_lbf
from headgate.core.split import split, worthwhile_tasks
from headgate.errors import BadParameter

backlogs = st.lists(st.integers(0, 40), min_size=1, max_size=12)
rooms = st.integers(0, 300)


def literal_lbf(waiting: list[int], room: int, weights: list[float]) -> list[int]:
    """Hone's algorithm as the paper has it: a record at a time from the largest backlog, the first of equals."""
    left = list(waiting)
    for _ in range(min(room, sum(waiting))):
        left[max(range(len(left)), key=lambda i: (left[i] * weights[i], -i))] -= 1
    return [before - after for before, after in zip(waiting, left, strict=True)]


def literal_round_robin(waiting: list[int], room: int) -> list[int]:
    taken, room = [0] * len(waiting), min(room, sum(waiting))
    while sum(taken) < room:
        for i, there in enumerate(waiting):
            if taken[i] < there and sum(taken) < room:
                taken[i] += 1
    return taken


@given(backlogs, rooms)
def test_the_water_line_is_lbf_step_by_step(waiting: list[int], room: int) -> None:
    assert lbf(waiting, room).tolist() == literal_lbf(waiting, room, [1.0] * len(waiting))


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from([0.5, 1.0, 1.5, 3.0, 0.1, 7.3])), min_size=1), rooms)
def test_the_weighted_line_is_lbf_step_by_step(partitions: list[tuple[int, float]], room: int) -> None:
    waiting, weights = [rows for rows, _ in partitions], [weight for _, weight in partitions]
    assert weighted_lbf(waiting, room, weights).tolist() == literal_lbf(waiting, room, weights)


@given(backlogs, rooms)
def test_round_robin_is_one_of_each_in_turn(waiting: list[int], room: int) -> None:
    assert round_robin(waiting, room).tolist() == literal_round_robin(waiting, room)


@given(st.sampled_from(sorted(COMPOSITIONS)), backlogs, rooms)
def test_no_composition_takes_what_is_not_there(name: str, waiting: list[int], room: int) -> None:
    taken = COMPOSITIONS[name](np.array(waiting), room)
    assert all(0 <= count <= there for count, there in zip(taken, waiting, strict=True))
    assert taken.sum() <= max(room, 0)
    if name != "proportional":  # which rounds down, as Spark does
        assert taken.sum() == min(room, sum(waiting))


@given(backlogs, rooms)
def test_no_way_of_taking_leaves_a_smaller_largest_backlog_than_lbf(waiting: list[int], room: int) -> None:
    left = (np.array(waiting) - lbf(waiting, room)).max()
    for other in (proportional, round_robin):
        assert left <= (np.array(waiting) - other(waiting, room)).max()
    # The best possible: everything above a line, whichever partition it is in.
    assert left == min(line for line in range(max(waiting) + 1) if sum(max(0, b - line) for b in waiting) <= room)


def test_proportional_follows_spark() -> None:
    """KafkaMicroBatchStream.rateLimit: shares rounded down, but up to one where they are less."""
    assert proportional([1000, 100, 1], 110).tolist() == [99, 9, 1]
    assert proportional([5, 5], 100).tolist() == [5, 5]


def test_small_partitions_do_not_lift_the_room() -> None:
    assert proportional([1000, 1, 1, 1, 1], 2).sum() <= 2


def test_small_partitions_do_not_take_the_large_ones_share() -> None:
    assert proportional([2] * 20 + [100_000], 40).tolist() == [1] * 20 + [20]


@given(st.sampled_from(sorted(COMPOSITIONS)), st.lists(st.integers(2**61, 2**63 - 1), min_size=1, max_size=5))
def test_backlogs_beyond_all_measure_leave_the_room_as_it_is(name: str, waiting: list[int]) -> None:
    assert 0 <= COMPOSITIONS[name](np.array(waiting), 7).sum() <= 7
    assert weighted_lbf(waiting, 7, [1e-9] * len(waiting)).sum() == 7


@given(st.integers(0, 10**9), st.floats(0, 10) | st.none(), st.integers(1, 64))
def test_as_many_tasks_as_are_worth_it(rows: int, row_work_s: float | None, cores: int) -> None:
    tasks = worthwhile_tasks(rows, row_work_s, cores)
    assert 1 <= tasks <= cores
    assert tasks <= worthwhile_tasks(rows + 1000, row_work_s, cores)
    assert worthwhile_tasks(rows, row_work_s, cores + 1) in (tasks, tasks + 1)


def test_heavy_rows_are_spread_over_all_cores_and_light_ones_are_not() -> None:
    assert worthwhile_tasks(1_000, 1e-3, 8) == 8
    assert worthwhile_tasks(1_000, 1e-6, 8) == 1
    assert worthwhile_tasks(60_000, None, 8) == 2


@given(st.lists(st.lists(st.floats(0, 10), max_size=8), min_size=1, max_size=6), st.integers(0, 40))
def test_oldest_takes_no_record_before_an_older_one(stamps: list[list[float]], room: int) -> None:
    arrivals = [sorted(each) for each in stamps]

    def before(at_s: float) -> np.ndarray:
        return np.array([sum(stamp < at_s for stamp in each) for each in arrivals], np.int64)

    taken = oldest(before, room, 0.0, 11.0)
    assert taken.sum() == min(room, sum(map(len, arrivals)))
    newest_in = max((each[n - 1] for each, n in zip(arrivals, taken, strict=True) if n), default=-math.inf)
    oldest_out = min((each[n] for each, n in zip(arrivals, taken, strict=True) if n < len(each)), default=math.inf)
    assert newest_in <= oldest_out + 1e-9


def test_a_million_partitions_are_no_problem() -> None:
    waiting = np.arange(1_000_000) % 977
    taken = lbf(waiting, 100_000_000)
    assert taken.sum() == 100_000_000 and (waiting - taken).max() - (waiting - taken)[taken > 0].min() <= 1


def test_weights_must_be_above_zero() -> None:
    with pytest.raises(BadParameter, match="weights"):
        weighted_lbf([3, 4], 2, [1.0, 0.0])


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(1, 9))
def test_splitting_loses_and_doubles_nothing(sizes: list[int], tasks: int) -> None:
    shares = split(sizes, tasks)
    seen = [(cut.range, row) for share in shares for cut in share for row in range(cut.first, cut.end)]
    assert sorted(seen) == [(index, row) for index, size in enumerate(sizes) for row in range(size)]
    assert len(shares) == min(tasks, sum(sizes))
    assert all(cut.end > cut.first for share in shares for cut in share)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12), st.integers(1, 9))
def test_no_task_is_a_straggler(sizes: list[int], tasks: int) -> None:
    loads = [sum(cut.end - cut.first for cut in share) for share in split(sizes, tasks)]
    assert not loads or max(loads) - min(loads) <= 1


@given(st.lists(st.tuples(st.integers(0, 60), st.floats(0.5, 4)), min_size=1, max_size=8), st.integers(1, 6))
def test_weighted_shares_cost_about_the_same(ranges: list[tuple[int, float]], tasks: int) -> None:
    sizes, weights = [size for size, _ in ranges], [weight for _, weight in ranges]
    shares = split(sizes, tasks, weights)
    assert sum(cut.end - cut.first for share in shares for cut in share) == sum(sizes)
    costs = [sum((cut.end - cut.first) * weights[cut.range] for cut in share) for share in shares]
    fair = sum(size * weight for size, weight in ranges) / tasks
    assert all(cost <= fair + 2 * max(weights) for cost in costs)


def test_heapq_agrees_on_a_large_case() -> None:
    """The literal algorithm with a heap, on more than hypothesis would try."""
    waiting = [int(x) for x in np.random.default_rng(5).zipf(1.3, 500).clip(max=100_000)]
    heap = [(-rows, i) for i, rows in enumerate(waiting)]
    heapq.heapify(heap)
    for _ in range(20_000):
        rows, i = heapq.heappop(heap)
        heapq.heappush(heap, (rows + 1, i))
    left = [0] * len(waiting)
    for rows, i in heap:
        left[i] = -rows
    assert (np.array(waiting) - lbf(waiting, 20_000)).tolist() == left
