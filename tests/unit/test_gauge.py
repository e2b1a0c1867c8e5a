"""The gauge of the machine's speed: a real process, and what is made of its samples."""

from __future__ import annotations

import time

import pytest

from headgate.bench.gauge import THEFT_S, Gauge, Sample, look, stolen_s, worst_theft
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
    gauge._samples = [Sample(80.0, 0.002, 0.0), Sample(99.0, 0.006, 0.0)]
    assert gauge.slowness(98.0, 100.0) == pytest.approx(1.0)
    assert gauge.slowness(60.0, 85.0) == pytest.approx(0.5)


def test_what_the_host_takes_away_is_told_of_the_worst_seconds() -> None:
    #  a minute of two cores: nothing is taken but for one core during eight seconds
    samples = [Sample(second / 2, 0.004, min(max(second / 2 - 30.0, 0.0), 8.0)) for second in range(120)]
    assert worst_theft(samples, cores=2) == pytest.approx(0.5)
    assert worst_theft(samples[:60], cores=2) == 0.0
    short = [Sample(second / 2, 0.004, min(max(second / 2 - 30.0, 0.0), 1.0)) for second in range(120)]
    assert worst_theft(short, cores=2) == pytest.approx(0.5 / THEFT_S, rel=0.01)


def test_too_short_a_span_tells_of_no_theft() -> None:
    assert worst_theft([Sample(0.0, 0.004, 0.0), Sample(THEFT_S / 2, 0.004, 9.0)], cores=1) == 0.0


def test_the_gauge_tells_theft_where_the_system_does() -> None:
    assert stolen_s() >= 0.0
    with Gauge() as gauge:
        assert 0.0 <= gauge.theft(0.0, time.time()) <= 1.0
