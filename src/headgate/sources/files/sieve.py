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
            self._check_fault(error)
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
        decode_lines, header = self._decoder(stream)
        lines = lines_of(stream, self.piece)
        if header and self.piece.first == 0:
            lines.readline()
        while block := lines.readlines(BLOCK_BYTES):
            yield from self._sift(block, decode_lines)

    def _decoder(self, stream: BinaryIO) -> tuple[Callable[[BinaryIO], Batches], bool]:
        """How to decode lines, and whether the first of the file is a header."""
        from headgate.sources.files.formats import conform, csv_names, decode, decode_csv_lines

        config, schema, whole = self.config, self.schema, Piece(self.piece.path)
        if config.file_format == "json":
            return lambda lines: decode(lines, schema, config, whole), False
        names = csv_names(stream, schema, config)

        def decode_csv(lines: BinaryIO) -> Batches:
            for batch in decode_csv_lines(lines, names, schema, config, skip_rows=0):
                yield conform(batch, schema, config.time_zone)

        return decode_csv, config.header

    def _sift(self, lines: Sequence[bytes], decode_lines: Callable[[BinaryIO], Batches]) -> Batches:
        """Halve what fails until the bad lines stand alone."""
        try:
            batches = list(decode_lines(io.BytesIO(b"".join(lines))))
        except Exception as error:
            self._check_fault(error)
            if len(lines) == 1:
                self._set_aside(lines[0], error)
                return
            middle = len(lines) // 2
            yield from self._sift(lines[:middle], decode_lines)
            yield from self._sift(lines[middle:], decode_lines)
        else:
            yield from batches

    @staticmethod
    def _check_fault(error: Exception) -> None:
        """A disk or a network that fails, or memory that is full, says nothing about the records."""
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
            raise error

    def _set_aside(self, line: bytes | None, error: Exception) -> None:
        told: dict[str, Any] = {"path": self.piece.path, "reason": " ".join(str(error).split()) or type(error).__name__}
        if line is not None:
            told["record"] = line.rstrip(b"\r\n").decode(errors="replace")
        self._bad.append(told)
