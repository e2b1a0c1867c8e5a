"""Bad records set aside (``badRecordsPath``): what can be read goes on, the rest is kept with its reason.

Each piece of a file with bad records gets one file of JSON lines, named by the piece, so that a task that is run again
writes the same file again.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from headgate.sources.files.config import FilesConfig
from headgate.sources.files.pieces import Piece, lines_of

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1 << 20
"""Lines that are decoded together; only a block with a bad one is looked at line by line."""

Batches = Iterator["pa.RecordBatch"]


@dataclass(slots=True)
class Sieve:
    """Reads one piece and remembers what was wrong with it."""

    config: FilesConfig
    schema: pa.Schema
    piece: Piece
    _bad: list[dict[str, str]] = field(default_factory=list)

    def batches(self, stream: BinaryIO) -> Batches:
        from headgate.sources.files.formats import decode

        if self.config.file_format in ("json", "csv"):
            yield from self._sifted(stream)
            return
        try:
            yield from decode(stream, self.schema, self.config, self.piece)
        except Exception as error:  # of a broken Parquet file what came before is good
            if not is_bad_record(error):
                raise
            self._set_aside(None, error)

    def keep(self) -> None:
        """Write what was set aside."""
        if not self._bad:
            return
        from fsspec.core import url_to_fs

        fs, folder = url_to_fs(str(self.config.bad_records_path))
        name = hashlib.sha256(f"{self.piece.path}:{self.piece.first}".encode()).hexdigest()[:16]
        fs.makedirs(folder, exist_ok=True)
        fs.pipe_file(f"{folder}/{name}.jsonl", "".join(json.dumps(each) + "\n" for each in self._bad).encode())
        told = f"{self.piece.path}: {len(self._bad)} bad records were set aside in {folder}/{name}.jsonl"
        print(f"headgate: WARNING: {told}", file=sys.stderr, flush=True)

    def _sifted(self, stream: BinaryIO) -> Batches:
        decode_lines, piece = self._decoder(stream)
        lines = lines_of(stream, piece)
        while block := lines.readlines(BLOCK_BYTES):
            yield from self._sift(block, decode_lines)

    def _decoder(self, stream: BinaryIO) -> tuple[Callable[[BinaryIO], Batches], Piece]:
        """How to decode lines, and where those with records are."""
        from headgate.sources.files.formats import conform, decode, textual
        from headgate.sources.files.separated import decode_rows, layout_of

        config, schema, whole = self.config, self.schema, Piece(self.piece.path)
        if config.file_format == "json":
            return lambda lines: decode(lines, schema, config, whole), self.piece
        layout = layout_of(stream, schema.names, config)

        def decode_csv(lines: BinaryIO) -> Batches:
            for batch in decode_rows(lines, layout.names, textual(schema), config):
                yield conform(batch, schema, config.time_zone)

        return decode_csv, layout.rows_of(self.piece)

    def _sift(self, lines: Sequence[bytes], decode_lines: Callable[[BinaryIO], Batches]) -> Batches:
        """Halve what fails until the bad lines stand alone."""
        try:
            batches = list(decode_lines(io.BytesIO(b"".join(lines))))
        except Exception as error:
            if not is_bad_record(error):
                raise
            if len(lines) == 1:
                self._set_aside(lines[0], error)
                return
            middle = len(lines) // 2
            yield from self._sift(lines[:middle], decode_lines)
            yield from self._sift(lines[middle:], decode_lines)
        else:
            yield from batches

    def _set_aside(self, line: bytes | None, error: Exception) -> None:
        told: dict[str, Any] = {"path": self.piece.path, "reason": " ".join(str(error).split()) or type(error).__name__}
        if line is not None:
            told["record"] = line.rstrip(b"\r\n").decode(errors="replace")
        self._bad.append(told)


def is_bad_record(error: Exception) -> bool:
    """Whether the file is at fault: a network that fails, or memory that is full, says nothing about its records.

    Drivers of file systems have errors of all kinds, so that what is known to be the file's fault is listed here.
    """
    import lzma
    import zipfile
    import zlib
    from gzip import BadGzipFile

    import pyarrow as pa

    if isinstance(error, MemoryError | pa.ArrowCancelled):
        return False
    if type(error) is OSError:  # Arrow's, or an unpacker's; those of the system have a number
        return error.errno is None
    torn = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, BadGzipFile)
    return isinstance(error, (pa.ArrowException, ValueError, *torn))
