"""Laws of simulated machines: a batch alone takes what it takes, and company neither loses nor invents work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.bench.machine import SHARED_SPEED, Cores, Job, Machine, Stretched

TICK_S = 0.01

seconds = st.floats(0.2, 5.0)


def run_out(machine: Machine, jobs: list[Job]) -> list[float]:
    """When each job was done."""
    ends_s = [0.0] * len(jobs)
    now_s = 0.0
    while open_jobs := [index for index, job in enumerate(jobs) if not job.done]:
        machine.run([jobs[index] for index in open_jobs], TICK_S)
        now_s += TICK_S
        for index in open_jobs:
            ends_s[index] = now_s
    return ends_s


@given(alone_s=seconds, driver_share=st.floats(0.0, 0.9), cores=st.integers(1, 4), spare=st.integers(0, 4))
def test_a_batch_alone_takes_what_it_takes(alone_s: float, driver_share: float, cores: int, spare: int) -> None:
    machine = Cores(cores, cores + spare)
    (end_s,) = run_out(machine, [machine.job(alone_s, driver_share * alone_s, 1.0)])
    assert end_s == pytest.approx(alone_s, abs=(4 + 2 * cores) * TICK_S)  # a tick for every task that ends


@given(first_s=seconds, second_s=seconds, slots=st.sampled_from([2, 3, 6]), edf=st.booleans())
def test_two_batches_take_at_least_the_longer_and_hardly_more_than_both(
    first_s: float, second_s: float, slots: int, edf: bool
) -> None:
    machine = Cores(2, slots, edf)
    jobs = [machine.job(first_s, 0.1 * first_s, 1.0), machine.job(second_s, 0.1 * second_s, 2.0)]
    ends_s = run_out(machine, jobs)
    assert max(first_s, second_s) - 0.1 <= max(ends_s) <= (first_s + second_s) / SHARED_SPEED + 0.2


def test_without_slots_to_spare_the_urgent_batch_is_served_first() -> None:
    for slots, waits in ((2, True), (6, False)):
        machine = Cores(2, slots)
        relaxed, urgent = machine.job(2.0, 0.0, 9.0), machine.job(2.0, 0.0, 1.0)
        relaxed_s, urgent_s = run_out(machine, [relaxed, urgent])
        assert urgent_s < relaxed_s if waits else urgent_s == pytest.approx(relaxed_s, abs=0.05)


def test_a_task_keeps_its_slot() -> None:
    machine = Cores(2, 2)
    relaxed = machine.job(2.0, 0.0, 9.0)
    relaxed.phases.pop(0)  # planned already
    machine.run([relaxed], TICK_S)
    urgent = machine.job(0.2, 0.0, 1.0)
    urgent.phases.pop(0)
    machine.run([relaxed, urgent], TICK_S)
    assert len(relaxed.phases[0].running_s) == 2 and not urgent.phases[0].running_s


def test_stretched_batches_slow_each_other_as_the_formula_says() -> None:
    machine = Stretched(0.5)
    ends_s = run_out(machine, [machine.job(1.0, 0.0, 1.0), machine.job(2.0, 0.0, 1.0)])
    assert ends_s == pytest.approx([1.5, 2.5], abs=0.03)
