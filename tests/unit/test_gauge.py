"""The gauge of the machine's speed: a real process, and what is made of its samples."""

from __future__ import annotations

import time

import pytest

from headgate.bench.gauge import Gauge, look
from headgate.errors import HeadgateError


def test_a_loop_takes_time_on_every_core() -> None:
    assert 1e-4 < look() < 1.0


def test_it_looks_from_the_first_moment_on_and_ends_with_its_user() -> None:
    with Gauge() as gauge:
        mean_s = gauge.mean_s(0.0, time.time())
        assert 1e-4 < mean_s < 1.0
        assert gauge.lately() == 1.0  # nothing to compare with yet
        gauge.reference_s = mean_s / 2
        assert gauge.lately() == pytest.approx(2.0, rel=0.5)
        process = gauge._process
    assert process is not None and process.poll() is not None


def test_a_span_that_nobody_saw_is_refused() -> None:
    with Gauge(reference_s=0.004) as gauge, pytest.raises(HeadgateError, match="gauges the machine's speed"):
        gauge.slowness(0.0, 100.0)


def test_a_short_span_is_widened_to_say_something() -> None:
    gauge = Gauge(reference_s=0.004)
    gauge._file.touch()
    gauge._samples = [(80.0, 0.002), (99.0, 0.006)]
    assert gauge.slowness(98.0, 100.0) == pytest.approx(1.0)
    assert gauge.slowness(60.0, 85.0) == pytest.approx(0.5)
