"""Pieces of files: a large one is cut, so that all tasks of a batch have the same to do.

Text is cut at any byte; a line belongs to the piece in which it begins. Parquet is cut between row groups, each of
which belongs to the piece in which it begins. What is packed can only be read from its beginning, and stays whole.
"""

from __future__ import annotations

import heapq
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from headgate.sources.files.config import FileFormat
    from headgate.sources.files.segments import FileEntry

OPEN_COST_BYTES = 32 * 1024
"""Opening a file takes a task about as long as reading this much (0.4 ms against 60 MB/s of JSON)."""

LEAST_BYTES = 8 << 20
"""Smaller pieces are not worth opening a file a second time."""


class Piece(NamedTuple):
    """The bytes `first` up to, but not including, `end` of a file; no end is the file's own."""

    path: str
    first: int = 0
    end: int | None = None

    @property
    def title(self) -> str:
        """The file's name, and its bytes if it is a part of it."""
        name = self.path.rsplit("/", 1)[-1]
        whole = self.first == 0 and self.end is None
        return name if whole else f"{name}[{self.first}:{'' if self.end is None else self.end}]"


def cut(entries: Iterable[FileEntry], tasks: int, file_format: FileFormat) -> list[tuple[Piece, int]]:
    """Pieces with their sizes, none of more than a task's fair share, if its file can be cut."""
    files = list(entries)
    fair_bytes = max(LEAST_BYTES, -(-sum(file.size_bytes for file in files) // max(1, tasks)))
    return [each for file in files for each in _cut_one(file, fair_bytes, file_format)]


def _cut_one(file: FileEntry, fair_bytes: int, file_format: FileFormat) -> list[tuple[Piece, int]]:
    from fsspec.utils import infer_compression

    count = -(-file.size_bytes // fair_bytes)
    if count < 2 or (file_format != "parquet" and infer_compression(file.path) is not None):
        return [(Piece(file.path), file.size_bytes)]
    edges = [file.size_bytes * number // count for number in range(count + 1)]
    pieces = [Piece(file.path, edges[n], edges[n + 1]) for n in range(count - 1)]
    pieces.append(Piece(file.path, edges[-2], None))  # it may have grown by a line since it was listed
    return [(piece, edges[n + 1] - edges[n]) for n, piece in enumerate(pieces)]


def spread(pieces: Sequence[tuple[Piece, int]], tasks: int) -> list[list[Piece]]:
    """Spread pieces over at most `tasks` shares, the longest first, each to the share with the least so far.

    Deterministic; no share is empty, and within a share pieces keep their order.
    """
    heap = [(0, index) for index in range(max(1, min(tasks, len(pieces))))]
    shares: list[list[int]] = [[] for _ in heap]
    for number in sorted(range(len(pieces)), key=lambda each: (-pieces[each][1], each)):
        load_bytes, index = heapq.heappop(heap)
        shares[index].append(number)
        heapq.heappush(heap, (load_bytes + pieces[number][1] + OPEN_COST_BYTES, index))
    return [[pieces[number][0] for number in sorted(share)] for share in shares if share]


def lines_of(stream: BinaryIO, piece: Piece) -> BinaryIO:
    """The lines that begin in the piece, as a stream of their own."""
    if piece.first == 0 and piece.end is None:
        return stream
    return io.BufferedReader(_Lines(stream, piece), 1 << 20)


class _Lines(io.RawIOBase):
    def __init__(self, stream: BinaryIO, piece: Piece) -> None:
        self._stream = stream
        self._left = 0 if piece.end is None else piece.end
        if piece.first > 0:
            stream.seek(piece.first - 1)
            stream.readline()  # the end of a line that began before
        self._bounded = piece.end is not None
        self._left -= stream.tell() if self._bounded else 0
        self._rest: bytes | None = None if self._left > 0 or not self._bounded else b""

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        view = memoryview(target)
        data = self._next(len(view))
        view[: len(data)] = data
        return len(data)

    def _next(self, most: int) -> bytes:
        if not self._bounded:
            return self._stream.read(most)
        if self._rest is None:
            data = self._stream.read(min(most, self._left))
            self._left -= len(data)
            if self._left <= 0 or not data:  # the last line may go on beyond the piece
                self._rest = b"" if not data or data.endswith(b"\n") else self._stream.readline()
            return data
        data, self._rest = self._rest[:most], self._rest[most:]
        return data
