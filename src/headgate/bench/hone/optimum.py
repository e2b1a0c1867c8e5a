"""The best that anybody could do who knows all arrivals: the least maximum backlog.

To keep every backlog within K, tuple j of a queue must be gone before tuple j + K has come. That is a job with a
release and a deadline; there is one server and every job takes a slot, so serving the earliest deadline first meets all
deadlines if any order does. The least K is found by bisection.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from headgate.bench.hone.simulator import IntArray


def least_max_backlog(arriving: IntArray) -> int:
    """Of arrivals by slot and queue."""
    low, high = -1, int(arriving.sum(axis=0).max(initial=0))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _possible(arriving, middle) else (middle, high)
    return max(high, 0)


def _possible(arriving: IntArray, most: int) -> bool:
    jobs = _jobs(arriving, most)
    heap: list[int] = []
    following, slot = 0, 0
    while following < len(jobs) or heap:
        if not heap:
            slot = max(slot, jobs[following][0])
        while following < len(jobs) and jobs[following][0] <= slot:
            heapq.heappush(heap, jobs[following][1])
            following += 1
        if heapq.heappop(heap) < slot:
            return False
        slot += 1
    return True


def _jobs(arriving: IntArray, most: int) -> list[tuple[int, int]]:
    """(release, deadline) of every tuple that must be served for no backlog to exceed `most`, by release."""
    jobs = []
    for queue in range(arriving.shape[1]):
        came = np.repeat(np.arange(len(arriving)), arriving[:, queue])
        jobs += list(zip(came[: max(0, len(came) - most)].tolist(), came[most:].tolist(), strict=True))
    return sorted(jobs)


def proven_ratio(queues: int) -> int:
    """The paper's bound on LBF's largest backlog over the optimum."""
    return 3 + math.ceil(math.log2(queues))
