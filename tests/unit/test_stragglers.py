"""Which stage read a batch, which of its tasks was the slowest, and what that one had been given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.cli import explain
from headgate.core.batch import BatchRecord
from headgate.core.tasks import TASK_FIXED_S, RowWork, Stage, Task, TaskTimes, source_stage
from headgate.engine import stragglers
from headgate.engine.stragglers import FEW_TASKS, LOOKS, StragglerWatch
from headgate.metrics.recorder import Recorder
from tests.unit.test_metrics import ARRIVALS, record

POOL = "headgate:q"
SHARES = ("orders-0[0:40]", "orders-1[0:60]")


def batch(shares: tuple[str, ...] = SHARES) -> BatchRecord:
    """100 rows, opened at 102.0 and finished at 103.0."""
    return replace(record(), shares=shares)


def stage(
    stage_id: int = 1, pool: str = POOL, at_s: float = 102.1, tasks: int = 2, rows: int = 100, shuffled_rows: int = 0,
    run_s: float = 1.0,
) -> Stage:  # fmt: skip
    return Stage(stage_id, 0, pool, at_s, tasks, tasks, rows, shuffled_rows, run_s)


class MemoryTaskLog:
    """Stages that finished now, with the times of their tasks in the order of partitions."""

    def __init__(self, *stages: tuple[Stage, Sequence[float]], late: int = 0) -> None:
        self.stages = dict(stages)
        self.late = late
        self.looks = 0

    def finished_since(self, at_s: float) -> list[Stage]:
        self.looks += 1
        return list(self.stages) if self.looks > self.late else []

    def slowest_first(self, stage: Stage, skip: int, count: int) -> list[Task]:
        assert count <= FEW_TASKS / 2, "an answer must not grow with the number of tasks"
        tasks = [Task(partition, run_s) for partition, run_s in enumerate(self.stages[stage])]
        return sorted(tasks, key=lambda task: -task.run_s)[skip : skip + count]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stragglers, "PAUSE_S", 0.0)


def test_the_slowest_task_is_told_by_what_it_read() -> None:
    watch = StragglerWatch(MemoryTaskLog((stage(), [0.12, 0.42])))
    assert watch.times_of(batch()) == TaskTimes(2, 0.42, 0.12, "orders-1[0:60]", 1.0, 100)


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=40))
def test_it_is_the_maximum_and_the_median_of_all_tasks(times_ms: list[int]) -> None:
    times_s = [each / 1e3 for each in times_ms]
    made = stage(tasks=len(times_s), run_s=sum(times_s))
    found = StragglerWatch(MemoryTaskLog((made, times_s))).times_of(batch(()))
    assert found is not None
    assert (found.count, found.slowest_s, found.median_s) == (len(times_s), max(times_s), median_low(times_s))
    assert found.slowest_read == f"task {times_s.index(max(times_s))}"
    assert found.ratio >= 1.0


@pytest.mark.parametrize(
    ("read", "shares"),
    [
        (stage(rows=90), SHARES),  # it read something else besides, or not all
        (stage(), (*SHARES, "orders-2[0:10]")),  # not one task for each share: a union with itself, or coalesced
        (stage(), ()),  # Spark's own source
    ],
)
def test_where_it_is_not_certain_only_the_tasks_number_is_told(read: Stage, shares: tuple[str, ...]) -> None:
    found = StragglerWatch(MemoryTaskLog((read, [0.12, 0.42]))).times_of(batch(shares))
    assert found is not None and found.slowest_read == "task 1"


@pytest.mark.parametrize(
    "other",
    [
        stage(9, pool="headgate:another", run_s=9.0),
        stage(9, at_s=101.9, run_s=9.0),  # of the batch before
        stage(9, at_s=103.1, run_s=9.0),  # of the batch after, which may have ended meanwhile
        stage(9, shuffled_rows=100, rows=0, run_s=9.0),  # fed by another stage
        stage(9, rows=5_000, run_s=9.0),  # a static table
        stage(9, rows=0, run_s=9.0),
        stage(9, tasks=0, run_s=9.0),
        stage(9, run_s=0.5),  # the same rows once more, in less time
    ],
)
def test_the_stage_that_read_the_source_is_found_among_others(other: Stage) -> None:
    for stages in ([stage(), other], [other, stage()]):
        assert source_stage(stages, POOL, 102.0, 103.0, 100) == stage()


def test_of_a_joins_two_sources_the_slower_is_told() -> None:
    sources = [stage(1, rows=60, run_s=1.0), stage(2, rows=40, run_s=2.0), stage(3, rows=0, run_s=9.0)]
    assert source_stage(sources, POOL, 102.0, 103.0, 100) == sources[1]


def test_a_source_that_counts_no_rows_is_known_by_having_none_from_another_stage() -> None:
    source, next_one = stage(1, rows=0), stage(2, rows=0, shuffled_rows=7, run_s=9.0)
    assert source_stage([next_one, source], POOL, 102.0, 103.0, 100) == source


def test_a_stage_that_is_not_known_yet_is_looked_for_again() -> None:
    log = MemoryTaskLog((stage(), [0.1, 0.2]), late=LOOKS - 1)
    assert StragglerWatch(log).times_of(batch()) is not None
    never = MemoryTaskLog((stage(), [0.1, 0.2]), late=99)
    assert StragglerWatch(never).times_of(batch()) is None and never.looks == LOOKS


def test_a_single_task_need_not_be_asked_for() -> None:
    log = MemoryTaskLog((stage(tasks=1, run_s=0.3), []))
    found = StragglerWatch(log).times_of(batch(("orders-0[0:100]",)))
    assert found == TaskTimes(1, 0.3, 0.3, "orders-0[0:100]", 0.3, 100)


def test_a_spark_that_does_not_tell_is_said_once_and_not_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    class Other(MemoryTaskLog):
        def finished_since(self, at_s: float) -> list[Stage]:
            self.looks += 1
            raise AttributeError("no such method\n  in this Spark")

    log = Other()
    watch = StragglerWatch(log)
    assert [watch.times_of(batch()) for _ in range(3)] == [None] * 3
    assert log.looks == 1
    assert caplog.text.count("not known from now on (no such method in this Spark)") == 1


def test_a_stage_that_spark_has_dropped_meanwhile_is_unknown() -> None:
    class Forgetful(MemoryTaskLog):
        def slowest_first(self, stage: Stage, skip: int, count: int) -> list[Task]:
            return []

    assert StragglerWatch(Forgetful((stage(), []))).times_of(batch()) is None


def test_times_are_columns_of_a_record_and_a_line_of_explain() -> None:
    row = json.loads(json.dumps(replace(record(), tasks=TaskTimes(4, 0.42, 0.12, "orders-3[500:900]")).to_json()))
    assert row["tasks_count"] == 4 and row["tasks_ratio"] == pytest.approx(3.5)
    assert (row["tasks_slowest_s"], row["tasks_median_s"]) == (0.42, 0.12)
    assert explain.describe(row).endswith("\n    4 tasks: slowest 420 ms, median 120 ms (3.5 x): orders-3[500:900]")
    single = replace(record(), tasks=TaskTimes(1, 0.42, 0.42, "orders-3[500:900]")).to_json()
    assert explain.describe(single).endswith("\n    one task of 420 ms: orders-3[500:900]")


def test_a_record_without_times_is_explained_without_them() -> None:
    row = batch().to_json()
    assert not any(name.startswith(("tasks", "shares")) for name in row)
    assert "task" not in explain.describe(row)


def test_a_task_too_short_to_be_timed_has_no_endless_ratio() -> None:
    assert TaskTimes(2, 0.0, 0.0, "task 0").ratio == 1.0
    assert TaskTimes(2, 0.004, 0.0, "task 0").ratio == pytest.approx(4.0)


def test_a_summary_tells_the_usual_ratio_of_batches_with_several_tasks() -> None:
    recorder = Recorder(None)
    for times in (None, TaskTimes(1, 5.0, 5.0, "a"), TaskTimes(2, 3.0, 1.0, "a"), TaskTimes(2, 1.0, 0.5, "b")):
        recorder.add(replace(record(), tasks=times), ARRIVALS)
    summary = recorder.summaries()["q"]
    assert summary.task_ratio == pytest.approx(2.5) == summary.to_json()["task_ratio"]
    recorder.reset()
    recorder.add(record(), ARRIVALS)
    assert recorder.summaries()["q"].task_ratio is None


def test_the_work_of_a_row_is_learned_from_tasks_whatever_their_number() -> None:
    for count in (1, 2, 8):
        work = RowWork()
        assert work.per_row_s is None
        for _ in range(5):
            work.observe(TaskTimes(count, 1.0, 1.0, "a", 2.0 + count * TASK_FIXED_S, 1_000))
        assert work.per_row_s == pytest.approx(2e-3)


def test_small_batches_hardly_change_what_a_row_costs() -> None:
    work = RowWork()
    work.observe(TaskTimes(2, 0.5, 0.5, "a", 1.0 + 2 * TASK_FIXED_S, 100_000))
    for _ in range(3):
        work.observe(TaskTimes(1, 0.05, 0.05, "a", 0.05, 1))  # it mostly starts and ends: as if a row took 20 ms
    assert work.per_row_s == pytest.approx(1e-5, rel=0.2)
