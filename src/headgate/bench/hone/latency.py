"""Every record's latency from what anybody can see: when it came, and when the batch that took it was committed.

Nothing here asks Headgate: a contender's checkpoint and the topic's own timestamps are enough. Pure NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batches:
    """What each batch took and when it was committed, in the order of batches."""

    ends: IntArray
    """By batch and partition: the first record that it does not hold any more."""
    committed_s: FloatArray

    def __len__(self) -> int:
        return len(self.committed_s)


def latencies_s(stamps_s: Sequence[FloatArray], batches: Batches, ended_s: float) -> list[FloatArray]:
    """By partition, of every record; one that no batch took has waited at least until `ended_s`."""
    committed_s = np.append(batches.committed_s, ended_s)
    return [
        committed_s[np.searchsorted(batches.ends[:, partition], np.arange(len(stamps)), side="right")] - stamps
        for partition, stamps in enumerate(stamps_s)
    ]


def figures(
    stamps_s: Sequence[FloatArray], batches: Batches, from_s: float, to_s: float, ended_s: float
) -> dict[str, Any]:
    """Of the records that came between two moments, as JSON."""
    inside = [(stamps >= from_s) & (stamps < to_s) for stamps in stamps_s]
    found = [each[kept] for each, kept in zip(latencies_s(stamps_s, batches, ended_s), inside, strict=True)]
    everything = np.concatenate(found)
    if not everything.size:
        return {"rows": 0}
    partitions = [_partition(each) for each in found]
    slowest = max((each for each in partitions if each["rows"]), key=lambda each: float(each["p99_s"]))
    return _spread(everything) | {
        "slowest": slowest | {"partition": partitions.index(slowest)},
        "partitions": partitions,
        "unfinished_rows": _unfinished(batches, inside),
        "largest_backlog_rows": largest_backlog(stamps_s, batches, from_s, to_s),
    }


def _spread(found: FloatArray) -> dict[str, Any]:
    p50, p95, p99 = (float(value) for value in np.quantile(found, [0.5, 0.95, 0.99]))
    return {
        "rows": len(found), "mean_s": float(found.mean()), "p50_s": p50, "p95_s": p95, "p99_s": p99,
        "max_s": float(found.max()),
    }  # fmt: skip


def _partition(found: FloatArray) -> dict[str, Any]:
    return _spread(found) if found.size else {"rows": 0}


def _unfinished(batches: Batches, inside: Sequence[NDArray[np.bool_]]) -> int:
    """Records of that time that no batch took."""
    last = batches.ends[-1] if len(batches) else np.zeros(len(inside), np.int64)
    return sum(int(kept[end:].sum()) for kept, end in zip(inside, last, strict=True))


def largest_backlog(stamps_s: Sequence[FloatArray], batches: Batches, from_s: float, to_s: float) -> int:
    """The most records that one partition had waiting when a batch of that time was committed: what Hone minimises."""
    kept = (batches.committed_s >= from_s) & (batches.committed_s < to_s)
    if not kept.any():
        return 0
    came = np.stack([np.searchsorted(stamps, batches.committed_s[kept]) for stamps in stamps_s], axis=1)
    return int((came - batches.ends[kept]).max())


def feeder_lag(
    planned_s: Sequence[FloatArray], came_s: Sequence[FloatArray], from_s: float, to_s: float, ended_s: float
) -> dict[str, float]:
    """How late records reached the broker that were due between two moments, as JSON.

    A contender that slows the feeder down has easier traffic than the others. By partition and in the order of sending,
    all on one clock; a record that never came is late at least until `ended_s`.
    """
    late_s = np.concatenate(
        [_came_or_ended(came, len(due), ended_s) - due for due, came in zip(planned_s, came_s, strict=True)]
    )
    due_s = np.concatenate(planned_s)
    measured_s = late_s[(due_s >= from_s) & (due_s < to_s)]
    if not measured_s.size:
        return {}
    return {"feeder_lag_p99_s": float(np.quantile(measured_s, 0.99)), "feeder_lag_max_s": float(measured_s.max())}


def _came_or_ended(came_s: FloatArray, planned: int, ended_s: float) -> FloatArray:
    """As many as were planned: a producer that tries again may send a record twice."""
    return np.append(came_s, np.full(planned, ended_s))[:planned]
