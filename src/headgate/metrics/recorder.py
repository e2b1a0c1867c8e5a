"""Keeps finished batches: the newest in memory for a live view, all of them in a file for later.

The file is JSON lines, one batch per line: ``pandas.read_json(path, lines=True)``.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections import deque
from pathlib import Path
from typing import IO

from headgate.core.arrivals import Arrivals
from headgate.core.batch import BatchRecord
from headgate.errors import BadParameter
from headgate.metrics.summary import QuerySummary

log = logging.getLogger("headgate")

KEPT_BATCHES = 2_000
"""Batches kept in memory over all queries: hours of a live view in a few megabytes."""

KEPT_SUMMARIES = 200
"""Queries whose sums are kept: an application that starts one every minute must not grow for ever."""

MAX_FILE_BYTES = 64 << 20
"""The file is rotated to ``.1`` at this size, so that a query that runs for months does not fill a disk."""


class Recorder:
    """Takes every finished batch; read by views in other threads."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self._file: IO[str] | None = None
        self._lock = threading.Lock()
        self._batches: deque[BatchRecord] = deque(maxlen=KEPT_BATCHES)
        self._summaries: dict[str, QuerySummary] = {}
        if self.path is not None:
            self._file = _open(self.path)

    def add(self, record: BatchRecord, arrivals: Arrivals) -> None:
        with self._lock:
            self._batches.append(record)
            self._summary(record).add(record, arrivals)
        self._write(record)

    def batches(self, query: str | None = None) -> list[BatchRecord]:
        with self._lock:
            return [record for record in self._batches if query is None or record.query == query]

    def summaries(self) -> dict[str, QuerySummary]:
        """The sums per query. They go on changing: take what you need at once."""
        with self._lock:
            return dict(self._summaries)

    def reset(self) -> None:
        """Forget what was counted so far (a benchmark's warm-up); the file keeps everything."""
        with self._lock:
            self._batches.clear()
            self._summaries.clear()

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _summary(self, record: BatchRecord) -> QuerySummary:
        if record.query not in self._summaries:
            if len(self._summaries) >= KEPT_SUMMARIES:  # the one that was started first
                del self._summaries[next(iter(self._summaries))]
            self._summaries[record.query] = QuerySummary(record.query, record.deadline_s, record.slo)
        return self._summaries[record.query]

    def _write(self, record: BatchRecord) -> None:
        with self._lock:
            if self._file is None or self.path is None:
                return
            try:
                self._file.write(json.dumps(record.to_json()) + "\n")
                if self._file.tell() >= MAX_FILE_BYTES:
                    self._file.close()
                    os.replace(self.path, f"{self.path}.1")
                    self._file = _open(self.path)
            except OSError as error:  # a full disk costs the record, never the query
                log.warning("batches are no longer recorded in %s: %s", self.path, error)
                self._give_up()

    def _give_up(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # what it could not write it cannot flush either
                self._file.close()
            self._file = None


def _open(path: Path) -> IO[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a", buffering=1)
    except OSError as error:
        raise BadParameter(
            "records",
            str(path),
            f"cannot be written ({error.strerror})",
            "name a file in a folder that you may write to",
        ) from error
