"""When a warm-up may end."""

from __future__ import annotations

from headgate.bench.steady import COMPILING, WINDOW_S, CompilerWatch, still_falling
from headgate.core.batch import BatchRecord


def batch(query: str, finished_at_s: float, duration_s: float) -> BatchRecord:
    return BatchRecord(
        query=query, batch_id=0, deadline_s=5.0, slo=0.99, rows=10, oldest_at_s=None, asked_at_s=0.0, opened_at_s=0.0,
        finished_at_s=finished_at_s, code="due", reason="", held_s={}, predicted_s=0.0, duration_s=duration_s,
        overlap=0.0, latency=None, estimated=False, left_rows=0,
    )  # fmt: skip


def run(duration_s: float, *, then_s: float, query: str = "q") -> list[BatchRecord]:
    """A window of batches of one duration, and a window of another, until second 100."""
    return [
        batch(query, 100 - 2 * WINDOW_S + second + 0.5, duration_s if second < WINDOW_S else then_s)
        for second in range(int(2 * WINDOW_S))
    ]


def test_batches_that_get_faster_are_not_warm_yet() -> None:
    assert still_falling(run(1.0, then_s=0.8), 100.0)


def test_batches_that_stay_the_same_are() -> None:
    assert not still_falling(run(1.0, then_s=0.98), 100.0)


def test_slower_ones_are_not_a_reason_to_go_on() -> None:
    assert not still_falling(run(1.0, then_s=1.3), 100.0)


def test_nothing_seen_is_not_warm() -> None:
    assert still_falling([], 100.0)
    assert still_falling(run(1.0, then_s=1.0), 500.0)


def test_one_query_that_still_falls_is_weighed_against_the_others() -> None:
    calm = run(1.0, then_s=1.0) + run(1.0, then_s=1.0, query="r") + run(1.0, then_s=1.0, query="s")
    assert not still_falling(calm + run(1.0, then_s=0.9, query="t"), 100.0)
    assert still_falling(calm + run(1.0, then_s=0.6, query="t"), 100.0)


def compiling(share: float, seconds: int) -> CompilerWatch:
    """A JVM whose compilers are at work for this share of each second, after a first minute without a pause."""
    watch, compile_s = CompilerWatch(), 0.0
    for second in range(60 + seconds):
        compile_s += 1.0 if second < 60 else share
        watch.look(float(second), compile_s)
    return watch


def test_a_jvm_that_compiles_is_not_warm() -> None:
    assert compiling(2 * COMPILING, seconds=100).busy
    assert not compiling(COMPILING / 2, seconds=100).busy


def test_the_last_window_decides() -> None:
    assert compiling(0.0, seconds=3).busy
    assert not compiling(0.0, seconds=int(WINDOW_S)).busy


def test_before_a_window_has_passed_nobody_knows() -> None:
    watch = CompilerWatch()
    watch.look(0.0, 0.0)
    watch.look(1.0, 0.0)
    assert watch.busy
