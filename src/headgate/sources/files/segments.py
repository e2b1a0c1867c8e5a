"""Segments of the file log on disk: JSON lines under a checksum, each published whole or not at all."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from headgate.errors import StateError

FORMAT = "headgate-file-log/1"
TORN_SUFFIX = ".tmp"
"""A segment bears this while it is written; what a killed writer leaves behind therefore never counts."""

_NAME = re.compile(r"(\d{12})-(\d{12})-([0-9a-f]{8})\.jsonl")
_encode_row = json.JSONEncoder(separators=(",", ":")).encode
REMEDY = "restore this folder from a backup, or start the query with a new checkpoint, which reads all files again"


class FileEntry(NamedTuple):
    """One file as the log knows it.

    `modified_s` is the modification time, kept between the look before and the one that found the file: see
    :func:`headgate.sources.files.feed.arrived_s`.
    """

    number: int
    path: str
    size_bytes: int
    modified_s: float
    seen_s: float


@dataclass(frozen=True, slots=True)
class Segment:
    """The entries `first` up to, but not including, `end`, in one file.

    The writer's mark is in the name, so that two writers can never replace each other's segments.
    """

    first: int
    end: int
    writer: str

    @property
    def name(self) -> str:
        return f"{self.first:012d}-{self.end:012d}-{self.writer}.jsonl"

    @classmethod
    def parse(cls, name: str) -> Segment | None:
        match = _NAME.fullmatch(name)
        return cls(int(match[1]), int(match[2]), match[3]) if match else None


def encode(entries: Iterable[FileEntry], replaces: Iterable[str] = ()) -> bytes:
    """The bytes of a segment; `replaces` names the segments that a merged one stands for."""
    body = "".join(_encode_row(entry[1:]) + "\n" for entry in entries).encode()
    header = {"format": FORMAT, "crc32": zlib.crc32(body), "replaces": sorted(replaces)}
    return _encode_row(header).encode() + b"\n" + body


def decode(data: bytes, segment: Segment) -> tuple[list[FileEntry], list[str]]:
    """The entries of a segment and the names that it replaces; anything but what `encode` wrote is a ValueError."""
    head, _, body = data.partition(b"\n")
    header = json.loads(head)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"it does not begin with {FORMAT!r}")
    if zlib.crc32(body) != header.get("crc32"):
        raise ValueError("its checksum does not match")
    rows = json.loads(b"[" + b",".join(body.splitlines()) + b"]")
    if len(rows) != segment.end - segment.first:
        raise ValueError(f"it holds {len(rows)} files instead of {segment.end - segment.first}")
    return [FileEntry(number, *row) for number, row in enumerate(rows, segment.first)], list(header["replaces"])


class SegmentStore:
    """The folder of segments, on any filesystem of fsspec; a local one is synced before a write counts as done."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._fs, root = url_to_fs(directory)
        self._root = root.rstrip("/")
        self._local = isinstance(self._fs, LocalFileSystem)
        self._make_root()

    def _make_root(self) -> None:
        try:
            self._fs.makedirs(self._root, exist_ok=True)
        except OSError as error:
            raise StateError(
                f"{self.directory}: the file log's folder cannot be made ({error}); choose a writable one"
            ) from error

    def names(self) -> list[str]:
        """Names of everything in the folder, as it is now and not as some cache remembers it."""
        self._fs.invalidate_cache(self._root)
        try:
            paths = self._fs.ls(self._root, detail=False)
        except FileNotFoundError:  # object stores have no empty folders
            return []
        return [str(path).rsplit("/", 1)[-1] for path in paths]

    def read(self, segment: Segment) -> tuple[list[FileEntry], list[str]]:
        """Entries and replaced names; FileNotFoundError if it is gone, StateError if it is damaged."""
        path = self._path(segment.name)
        try:
            return decode(self._fs.cat_file(path), segment)
        except (ValueError, TypeError, KeyError) as error:
            raise StateError(f"{path}: this segment of the file log is damaged: {error}; {REMEDY}") from error

    def write(self, segment: Segment, data: bytes) -> None:
        """Publish under a temporary name first: the final name appears with all its bytes or not at all."""
        path = self._path(segment.name)
        if self._local:
            _write_durably(path, data)
        else:
            self._fs.pipe_file(path + TORN_SUFFIX, data)
            self._fs.mv(path + TORN_SUFFIX, path)

    def remove(self, names: Sequence[str]) -> list[str]:
        """Delete what can be deleted and return the rest: leftovers do no harm and go another time."""
        return [name for name in names if not self._removed(name)]

    def _removed(self, name: str) -> bool:
        try:
            self._fs.rm_file(self._path(name))
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def _write_durably(path: str, data: bytes) -> None:
    """Both syncs are needed: without the first a power cut leaves an empty file, without the second no file."""
    with open(path + TORN_SUFFIX, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + TORN_SUFFIX, path)
    _sync_folder(os.path.dirname(path))


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
