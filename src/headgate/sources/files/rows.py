"""How many rows a file holds, as far as that can be told without reading it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from fsspec.compression import compr
from fsspec.utils import infer_compression

from headgate.sources.files.config import FileFormat
from headgate.sources.files.segments import FileEntry

SAMPLE_BYTES = 64 * 1024
FIRST_SAMPLES = 4
"""So many files are sampled before the first estimate."""

RESAMPLE_AFTER_FILES = 64
"""Then one in so many, to follow rows that grow or shrink."""

MEMORY = 0.75
"""Weight of everything measured so far when a sample is added: about the last four samples count."""

FOOTERS_BUDGET_S = 0.05
"""Time for reading footers at one look; files beyond it are estimated from those read. Local footers take well under
a millisecond, remote ones some ten: a flood of files must not hold up the question what waits."""

GUESSED_BYTES_PER_ROW = 100.0
"""Until anything could be measured."""

Measure = Callable[[Any, FileEntry], tuple[int, int]]
"""Filesystem and file to bytes and rows."""


class RowEstimator:
    """Rows of files, in the order of the log: exact from Parquet footers, by bytes per row for text formats.

    Every file counts for at least one row, so that a file that waits never looks like nothing.
    """

    def __init__(self, fs: Any, file_format: FileFormat, stopwatch: Callable[[], float] = time.perf_counter) -> None:
        self._fs = fs
        self._footer = _footer_measure() if file_format == "parquet" else None
        self._stopwatch = stopwatch
        self._bytes = 0.0
        self._rows = 0.0
        self._samples = 0
        self._files_since = 0

    @property
    def bytes_per_row(self) -> float:
        return self._bytes / self._rows if self._rows else GUESSED_BYTES_PER_ROW

    def rows_of(self, files: Sequence[FileEntry]) -> list[int]:
        """Rows of files that were not asked about before."""
        if self._footer:
            return self._by_footer(files, self._footer)
        for file in self._worth_sampling(files):
            self._measure(_sample, file)
        return self._estimates(files)

    def _by_footer(self, files: Sequence[FileEntry], footer: Measure) -> list[int]:
        until_s = self._stopwatch() + FOOTERS_BUDGET_S
        rows: list[int] = []
        for file in files:
            if rows and self._stopwatch() >= until_s:
                break
            exact = self._measure(footer, file)
            rows += self._estimates([file]) if exact is None else [max(1, exact)]
        return rows + self._estimates(files[len(rows) :])

    def _worth_sampling(self, files: Sequence[FileEntry]) -> Sequence[FileEntry]:
        if self._samples < FIRST_SAMPLES:
            return files[: FIRST_SAMPLES - self._samples]
        self._files_since += len(files)
        return files[-1:] if self._files_since >= RESAMPLE_AFTER_FILES else ()

    def _measure(self, measure: Measure, file: FileEntry) -> int | None:
        """The rows that `measure` found, which are learned from; None if the file cannot be read.

        What is wrong with it does not matter here: the task that reads the file will say so.
        """
        try:
            size_bytes, rows = measure(self._fs, file)
        except Exception:
            return None
        self._bytes = MEMORY * self._bytes + size_bytes
        self._rows = MEMORY * self._rows + rows
        self._samples += 1
        self._files_since = 0
        return rows

    def _estimates(self, files: Sequence[FileEntry]) -> list[int]:
        per_row = self.bytes_per_row
        return [max(1, round(file.size_bytes / per_row)) for file in files]


def _footer_measure() -> Measure:
    """The import is slow: made at the first look, it would use up that look's time for footers."""
    from pyarrow.parquet import read_metadata

    def footer(fs: Any, file: FileEntry) -> tuple[int, int]:
        with fs.open(file.path, "rb") as stream:
            return file.size_bytes, read_metadata(stream).num_rows

    return footer


def _sample(fs: Any, file: FileEntry) -> tuple[int, int]:
    """Bytes, as the listing counts them, and lines at the beginning of a file, which may be compressed."""
    unpack = compr[infer_compression(file.path)]
    with fs.open(file.path, "rb") as packed:
        data = unpack(packed, mode="rb").read(SAMPLE_BYTES)
        whole = len(data) < SAMPLE_BYTES
        size_bytes = file.size_bytes if whole else packed.tell()
    lines = data.count(b"\n") + (whole and not data.endswith(b"\n"))
    return size_bytes, max(1, lines)
