"""How fast the machine is just now: the CPU time of one little loop, core after core, twice a second.

The cores of a rented machine share silicon with strangers, those of a laptop get hot. On the machine of docs/results
such a loop took almost twice as long in one second as in the next, with nothing else running, and CPU seconds per
record went up and down with its mean over a minute. So a measurement is told together with the speed of its minutes.

Slow cores are one thing; cores that are taken away are another. While the host runs somebody else on them (`steal`
in Linux's accounts) no thread's time goes on, so that the loop does not see it, but a batch ends that much later.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import NamedTuple

from headgate.bench.orphans import end_with_parent
from headgate.errors import HeadgateError

ROUNDS = 50_000
"""Of the loop: 3 to 5 ms, long enough for the clock."""

PAUSE_S = 0.4
"""Between two looks at all cores: about a hundredth of a core is spent on looking."""

LATELY_S = 60.0
"""What the next minute will be like is what the last one was."""

_LEAST_S = 20.0
"""A shorter span says little: the speed flickers from second to second."""

_FIRST_WAIT_S = 10.0

THEFT_S = 5.0
"""Cores that are taken away for much less than a deadline are soon made up for."""


class Sample(NamedTuple):
    """One look at the machine."""

    at_s: float
    loop_s: float
    stolen_s: float
    """What the host has taken away since the machine started, all cores together."""


class Gauge:
    """``with Gauge() as gauge: ... gauge.slowness(since_s, until_s)``; a process of its own does the looking."""

    def __init__(self, reference_s: float | None = None) -> None:
        """`reference_s` is the loop's mean time at the speed that counts as 1."""
        self.reference_s = reference_s
        self._samples: list[Sample] = []
        self._folder = tempfile.TemporaryDirectory(prefix="headgate-gauge-", ignore_cleanup_errors=True)
        self._file = Path(self._folder.name) / "samples"
        self._process: subprocess.Popen[bytes] | None = None

    def slowness(self, since_s: float, until_s: float) -> float:
        """How many times longer than at the reference everything took; 1 before there is a reference."""
        if self.reference_s is None:
            return 1.0
        return self.mean_s(min(since_s, until_s - _LEAST_S), until_s) / self.reference_s

    def lately(self) -> float:
        """The slowness of the last minute."""
        now_s = time.time()
        return self.slowness(now_s - LATELY_S, now_s)

    def mean_s(self, since_s: float, until_s: float) -> float:
        """The loop's mean CPU time over that span."""
        return fmean(sample.loop_s for sample in self._between(since_s, until_s))

    def theft(self, since_s: float, until_s: float) -> float:
        """The share of all cores that the host took away, in the worst few seconds of that span."""
        return worst_theft(self._between(since_s, until_s), os.cpu_count() or 1)

    def _between(self, since_s: float, until_s: float) -> list[Sample]:
        self._read()
        found = [sample for sample in self._samples if since_s <= sample.at_s <= until_s]
        if not found:
            raise HeadgateError("the process that gauges the machine's speed has ended: nothing can be compared")
        return found

    @property
    def _looked(self) -> bool:
        return self._file.exists() and "\n" in self._file.read_text()

    def _read(self) -> None:
        whole, _, _ = self._file.read_text().rpartition("\n")  # the last line may be half written
        self._samples += [Sample(*map(float, line.split())) for line in whole.splitlines()[len(self._samples) :]]

    def __enter__(self) -> Gauge:
        self._process = subprocess.Popen([sys.executable, "-m", "headgate.bench.gauge", str(self._file)])
        give_up_s = time.monotonic() + _FIRST_WAIT_S
        while not self._looked and time.monotonic() < give_up_s:
            time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


def worst_theft(samples: Sequence[Sample], cores: int) -> float:
    """The largest share that was taken away between two looks that lie :data:`THEFT_S` apart, or a little more."""
    worst, first = 0.0, 0
    for last in samples:
        while first + 1 < len(samples) and samples[first + 1].at_s <= last.at_s - THEFT_S:
            first += 1
        span_s = last.at_s - samples[first].at_s
        if span_s >= THEFT_S:
            worst = max(worst, (last.stolen_s - samples[first].stolen_s) / (span_s * cores))
    return worst


def stolen_s() -> float:
    """Since the machine started; 0 where the system does not tell."""
    import psutil

    return float(getattr(psutil.cpu_times(), "steal", 0.0))


def loop_s() -> float:
    """CPU seconds of this thread for the loop: other threads on the same core do not count, a slow core does."""
    begun_s, total = time.thread_time(), 0
    for number in range(ROUNDS):
        total += number * number
    return time.thread_time() - begun_s


def look() -> float:
    """The loop's mean over all cores, where the system lets us choose them."""
    if not hasattr(os, "sched_setaffinity"):
        return loop_s()
    cores = os.sched_getaffinity(0)
    try:
        return fmean(_on_core(core) for core in sorted(cores))
    finally:
        os.sched_setaffinity(0, cores)


def _on_core(core: int) -> float:
    os.sched_setaffinity(0, {core})
    return loop_s()


def main() -> int:
    end_with_parent()
    with contextlib.suppress(KeyboardInterrupt), open(sys.argv[1], "a") as samples:
        while True:
            samples.write(f"{time.time():.3f} {look():.7f} {stolen_s():.2f}\n")
            samples.flush()
            time.sleep(PAUSE_S)
    return 0


if __name__ == "__main__":
    sys.exit(main())
