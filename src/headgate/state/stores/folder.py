"""A place in a local folder. What is stored is there after a power cut, whole."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from headgate.state.stores.port import Chunk

PART = ".part"
"""Ends the name of a file that is being written; nobody lists it."""

TORN_S = 3600.0
"""A file that nobody has written to for so long, though it is not complete, is what a killed writer left: it goes."""


class FolderStore:
    """Keys are paths below the folder."""

    def __init__(self, folder: str | os.PathLike[str], name: str | None = None, host: str | None = None) -> None:
        self._root = Path(folder).absolute()
        self.name = name or str(self._root)
        self.host = host or self.name

    def put(self, key: str, chunks: Iterable[Chunk]) -> None:
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}{PART}")
        try:
            with part.open("wb", buffering=0) as file:
                for chunk in chunks:
                    _write(file.fileno(), chunk)
                os.fsync(file.fileno())
            os.replace(part, path)
            _sync_folder(path.parent)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        with self._path(key).open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            length = max(0, (size if end is None else min(end, size)) - start)
            return b"" if not length else os.pread(file.fileno(), length, start)

    def find(self, prefix: str = "") -> dict[str, int]:
        return dict(_files(self._path(prefix) if prefix else self._root, prefix))

    def delete(self, key: str) -> None:
        path = self._path(key)
        path.unlink(missing_ok=True)
        for folder in path.parents:  # folders that lead nowhere go too
            if folder == self._root or not _removed(folder):
                break

    def _path(self, key: str) -> Path:
        path = self._root / key
        if key.startswith("/") or ".." in path.parts:
            raise PermissionError(f"{key!r} leads out of {self.name}")
        return path


def _sync_folder(folder: Path) -> None:
    """The new name, too, must be there after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(descriptor: int, chunk: Chunk) -> None:
    left = memoryview(chunk).cast("B")
    while left:
        left = left[os.write(descriptor, left) :]


def _files(folder: Path, path: str) -> Iterator[tuple[str, int]]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        below = f"{path}/{entry.name}" if path else entry.name
        if entry.is_dir():
            yield from _files(folder / entry.name, below)
        else:
            try:
                stat = entry.stat()
            except FileNotFoundError:
                continue  # deleted meanwhile
            if not entry.name.endswith(PART):
                yield below, stat.st_size
            elif time.time() - stat.st_mtime > TORN_S:
                (folder / entry.name).unlink(missing_ok=True)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
