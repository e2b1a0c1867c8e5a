"""Read a task's share of files in an executor. Imports what it needs when it reads, so that it travels lightly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.errors import HeadgateError
from headgate.sources.feed import Range
from headgate.sources.files.config import FilesConfig

if TYPE_CHECKING:
    import pyarrow as pa

SEARCHED_BYTES = 64 << 20
"""The broken line is looked for in files up to this size."""

_SKIP = "or put an empty file in its place to go on without it; then start the query again"
_ARROW_ROW = re.compile(r"Row #(\d+)")


class UnreadableFile(HeadgateError, RuntimeError):
    """A file of a batch is gone or broken, and the query must not go on as if it had been read."""

    def __init__(self, path: str, line: int | None, problem: str, remedy: str) -> None:
        super().__init__(path, line, problem, remedy)  # all in args: the error is pickled on its way to the driver
        self.path = path
        self.line = line
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{where}: {self.problem}; {self.remedy}"


@dataclass(frozen=True)
class FileRangeReader:
    """Reads whole files one after the other, as batches of exactly `schema`.

    What does not fit the schema is an error, as in Spark's mode FAILFAST: a row that silently became null would count
    as delivered in time. Files packed with gzip, bzip2 or xz are unpacked by their ending.
    """

    config: FilesConfig
    schema: pa.Schema

    def __call__(self, share: Range) -> Iterator[pa.RecordBatch]:
        from fsspec.core import url_to_fs

        fs = url_to_fs(self.config.path)[0]
        for path in share["paths"]:
            yield from self._read(fs, path)

    def _read(self, fs: Any, path: str) -> Iterator[pa.RecordBatch]:
        from headgate.sources.files.formats import decode

        try:
            with self._open(fs, path) as stream:
                yield from decode(stream, self.schema, self.config)
        except FileNotFoundError as error:
            problem = "this file vanished before it was read"
            raise UnreadableFile(path, None, problem, f"put it back, {_SKIP}") from error
        except Exception as error:
            line = self._bad_line(fs, path, str(error))
            raise UnreadableFile(path, line, _one_line(error), f"mend it, {_SKIP}") from error

    def _open(self, fs: Any, path: str) -> Any:
        return fs.open(path, "rb", compression=None if self.config.file_format == "parquet" else "infer")

    def _bad_line(self, fs: Any, path: str, message: str) -> int | None:
        """The number of the line that is wrong, if that can be told."""
        if row := _ARROW_ROW.search(message):
            return int(row[1])
        if self.config.file_format != "json":  # only there each line stands for itself
            return None
        try:
            with self._open(fs, path) as stream:
                data = stream.read(SEARCHED_BYTES + 1)
        except Exception:
            return None
        return self._first_bad(data.split(b"\n")) if len(data) <= SEARCHED_BYTES else None

    def _first_bad(self, lines: list[bytes]) -> int | None:
        """Halve the search each time: the whole costs about as much as reading the file twice."""
        if not self._fails(lines):
            return None
        low, high = 0, len(lines)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._fails(lines[low:middle]) else (middle, high)
        return low + 1

    def _fails(self, lines: list[bytes]) -> bool:
        import io

        from headgate.sources.files.formats import decode

        try:
            for _ in decode(io.BytesIO(b"\n".join(lines)), self.schema, self.config):
                pass
        except Exception:
            return True
        return False


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
