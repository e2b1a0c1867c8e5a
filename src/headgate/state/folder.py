"""A checkpoint's folder as the snapshot sees it: a list of files with marks, and readers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from headgate.errors import BadParameter
from headgate.state.urls import local_path, open_filesystem


@dataclass(frozen=True, slots=True)
class Seen:
    """A file when it was listed."""

    length: int
    mark: str


class Folder(Protocol):
    """Where a checkpoint lies."""

    def names(self, below: str) -> list[str]:
        """The names of the files directly in a sub-folder; empty if it is not there."""

    def walk(self) -> dict[str, Seen]:
        """All files by their relative paths."""

    def open(self, path: str) -> tuple[BinaryIO, Seen]:
        """A reader, and what the file is at this moment."""


class LocalFolder:
    """On this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self, below: str) -> list[str]:
        try:
            return os.listdir(self._root / below)
        except FileNotFoundError:
            return []

    def walk(self) -> dict[str, Seen]:
        return dict(self._walk(""))

    def open(self, path: str) -> tuple[BinaryIO, Seen]:
        file = (self._root / path).open("rb", buffering=0)
        return file, _seen(os.fstat(file.fileno()))

    def _walk(self, below: str) -> Iterator[tuple[str, Seen]]:
        try:
            entries = list(os.scandir(self._root / below))
        except FileNotFoundError:
            return
        for entry in entries:
            path = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir():
                yield from self._walk(path)
            else:
                try:
                    yield path, _seen(entry.stat())
                except FileNotFoundError:
                    continue


def _seen(stat: os.stat_result) -> Seen:
    return Seen(stat.st_size, str(stat.st_mtime_ns))


class RemoteFolder:
    """Behind an fsspec driver. The mark is what the driver has of: version, checksum, time of modification.

    Where it has nothing the mark is empty, and nobody takes the file for unchanged.
    """

    MARKS = ("ETag", "etag", "md5Hash", "generation", "mtime", "LastModified", "last_modified", "updated", "created")

    def __init__(self, filesystem: Any, root: str) -> None:
        self._fs = filesystem
        self._root = root.rstrip("/")

    def names(self, below: str) -> list[str]:
        self._fs.invalidate_cache()
        try:
            return [str(path).rsplit("/", 1)[-1] for path in self._fs.ls(f"{self._root}/{below}", detail=False)]
        except FileNotFoundError:
            return []

    def walk(self) -> dict[str, Seen]:
        self._fs.invalidate_cache()
        skip = len(self._root) + 1
        return {path[skip:]: self._seen(info) for path, info in self._fs.find(self._root, detail=True).items()}

    def open(self, path: str) -> tuple[BinaryIO, Seen]:
        where = f"{self._root}/{path}"
        info = self._fs.info(where)
        return self._fs.open(where, "rb"), self._seen(info)

    def _seen(self, info: dict[str, Any]) -> Seen:
        mark = next((info[name] for name in self.MARKS if info.get(name) is not None), "")
        if isinstance(mark, datetime):  # a driver may tell the same as a number elsewhere
            mark = mark.timestamp()
        return Seen(int(info["size"]), str(mark))


def open_folder(checkpoint: str) -> Folder:
    path = local_path(checkpoint)
    if path is None:
        return RemoteFolder(*open_filesystem(checkpoint, "checkpoint"))
    if not path.is_dir():
        raise BadParameter("checkpoint", checkpoint, "is no folder", "name the query's checkpointLocation")
    return LocalFolder(path)


def read_all(folder: Folder, path: str) -> bytes:
    file, _ = folder.open(path)
    with file:
        return file.read()
