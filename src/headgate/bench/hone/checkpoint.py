"""What a query did, read from its checkpoint: how far each batch went, and when it was committed.

Spark's own Kafka source and Headgate's write positions in the same form, so all contenders are read alike.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from headgate.bench.hone.latency import Batches, IntArray

KEEP_ALL = {"spark.sql.streaming.minBatchesToRetain": "1000000"}
"""Spark deletes all but the last hundred batches from a checkpoint, unless it is told to keep them."""


def read_batches(checkpoint: Path, topic: str, partitions: int) -> Batches:
    """All batches that were committed. A commit's time is its file's: it is written when everything else is done."""
    numbers = _committed(checkpoint)
    ends = [_ends(checkpoint, number, topic, partitions) for number in numbers]
    written_ns = [(checkpoint / "commits" / str(number)).stat().st_mtime_ns for number in numbers]
    return Batches(np.array(ends, np.int64).reshape(-1, partitions), np.array(written_ns, np.float64) / 1e9)


def committed_ends(checkpoint: Path, topic: str, partitions: int) -> IntArray:
    """How far the last committed batch went; zeros before the first."""
    numbers = _committed(checkpoint)
    return np.array(_ends(checkpoint, numbers[-1], topic, partitions) if numbers else [0] * partitions, np.int64)


def _committed(checkpoint: Path) -> list[int]:
    """By number. Files that begin with a dot are checksums and parts of files."""
    folder = checkpoint / "commits"
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdecimal()) if folder.is_dir() else []


def _ends(checkpoint: Path, number: int, topic: str, partitions: int) -> list[int]:
    """The line that names the topic; the others are a version and settings."""
    for line in (checkpoint / "offsets" / str(number)).read_text().splitlines():
        found = json.loads(line) if line.startswith("{") else {}
        if topic in found:
            return [int(found[topic].get(str(partition), 0)) for partition in range(partitions)]
    return [0] * partitions
