"""Read a task's share of files in an executor. Imports what it needs when it reads, so that it travels lightly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from headgate.errors import HeadgateError
from headgate.sources.feed import Range
from headgate.sources.files.config import FilesConfig
from headgate.sources.files.pieces import Piece, lines_of
from headgate.sources.files.sieve import Sieve, is_bad_record

if TYPE_CHECKING:
    import pyarrow as pa

SEARCHED_BYTES = 64 << 20
"""The broken line is looked for in files up to this size."""

_SKIP = "or put an empty file in its place to go on without it; then start the query again"
_AGAIN = "it could not be fetched; see that its storage can be reached, then start the query again"
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
    """Reads files, or pieces of large ones, one after the other, as batches of exactly `schema`.

    What does not fit the schema is an error, as in Spark's mode FAILFAST: a row that silently became null would count
    as delivered in time. With ``badRecordsPath`` it is set aside instead. Files packed with gzip, bzip2 or
    xz are unpacked by their ending.
    """

    config: FilesConfig
    schema: pa.Schema

    def __call__(self, share: Range) -> Iterator[pa.RecordBatch]:
        from fsspec.core import url_to_fs

        fs = url_to_fs(self.config.path)[0]
        for piece in share["pieces"]:
            yield from self._read(fs, Piece(*piece))

    def _read(self, fs: Any, piece: Piece) -> Iterator[pa.RecordBatch]:
        from headgate.sources.files.formats import decode

        try:
            with self._open(fs, piece.path) as stream:
                if self.config.bad_records_path is None:
                    yield from decode(stream, self.schema, self.config, piece)
                else:
                    sieve = Sieve(self.config, self.schema, piece)
                    yield from sieve.batches(stream)
                    sieve.keep()
        except FileNotFoundError as error:
            problem = "this file vanished before it was read"
            raise UnreadableFile(piece.path, None, problem, f"put it back, {_SKIP}") from error
        except Exception as error:
            if not is_bad_record(error):
                raise UnreadableFile(piece.path, None, _one_line(error), _AGAIN) from error
            line = self._bad_line(fs, piece, str(error))
            raise UnreadableFile(piece.path, line, _one_line(error), f"mend it, {_SKIP}") from error

    def _open(self, fs: Any, path: str) -> Any:
        return fs.open(path, "rb", compression=None if self.config.file_format == "parquet" else "infer")

    def _bad_line(self, fs: Any, piece: Piece, message: str) -> int | None:
        """The number of the line that is wrong, if that can be told."""
        try:
            with self._open(fs, piece.path) as stream:
                if row := _ARROW_ROW.search(message):
                    return self._line_of_row(stream, piece, int(row[1]))
                if self.config.file_format != "json":  # only there each line stands for itself
                    return None
                before = _lines_before(stream, piece)
                stream.seek(0)
                data = lines_of(stream, piece).read(SEARCHED_BYTES + 1)
        except Exception:
            return None
        found = self._first_bad(data.split(b"\n")) if len(data) <= SEARCHED_BYTES else None
        return None if found is None else before + found

    def _line_of_row(self, stream: Any, piece: Piece, row: int) -> int:
        """Arrow counts rows of CSV from the first that it is given, without blank lines."""
        from headgate.sources.files.separated import layout_of

        piece = layout_of(stream, self.schema.names, self.config).rows_of(piece)
        before = _lines_before(stream, piece)
        stream.seek(0)
        numbers = (number for number, line in enumerate(lines_of(stream, piece), 1) if line.strip(b"\r\n"))
        return before + next(islice(numbers, row - 1, None))

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
            for _ in decode(io.BytesIO(b"\n".join(lines)), self.schema, self.config, Piece("")):
                pass
        except Exception:
            return True
        return False


def _lines_before(stream: Any, piece: Piece) -> int:
    """How many lines end before the first one that begins in the piece."""
    if piece.first == 0:
        return 0
    lines, left = 0, piece.first - 1
    while left > 0 and (data := stream.read(min(left, 1 << 20))):
        lines, left = lines + data.count(b"\n"), left - len(data)
    return lines + 1  # the one that ends in the piece, or with it


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
