"""Where a restore writes: a new folder that appears when it is complete. Nothing that exists is ever written over."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from headgate.errors import BadParameter
from headgate.state.urls import local_path, open_filesystem


class Target(Protocol):
    """A folder that is being filled; it appears under its name when it is complete."""

    @property
    def root(self) -> str:
        """The folder, as Spark will name it."""

    def create(self, path: str) -> BinaryIO:
        """A new file."""

    def read(self, path: str) -> bytes:
        """What was written."""

    def write(self, path: str, content: bytes) -> None:
        """In its stead."""


@contextmanager
def new_folder(into: str) -> Iterator[Target]:
    """A target at this path or URL, which must not hold anything yet."""
    path = local_path(into)
    with _new_remote_folder(into) if path is None else _new_local_folder(path) as target:
        yield target


class _LocalTarget:
    def __init__(self, folder: Path, name: Path) -> None:
        self._folder = folder
        self.root = f"file:{name.absolute()}"

    def create(self, path: str) -> BinaryIO:
        where = self._folder / path
        where.parent.mkdir(parents=True, exist_ok=True)
        return where.open("xb")

    def read(self, path: str) -> bytes:
        return (self._folder / path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        (self._folder / path).write_bytes(content)


@contextmanager
def _new_local_folder(path: Path) -> Iterator[Target]:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise _occupied(str(path))
    part = path.absolute().with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    part.mkdir(parents=True)
    try:
        yield _LocalTarget(part, path)
        if path.exists():
            path.rmdir()  # empty, or this fails
        os.rename(part, path)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


class _RemoteTarget:
    def __init__(self, filesystem: Any, folder: str, url: str) -> None:
        self._fs, self._folder = filesystem, folder
        self.root = url.rstrip("/")

    def create(self, path: str) -> BinaryIO:
        where = f"{self._folder}/{path}"
        self._fs.makedirs(where.rsplit("/", 1)[0], exist_ok=True)
        opened: BinaryIO = self._fs.open(where, "wb")
        return opened

    def read(self, path: str) -> bytes:
        return bytes(self._fs.cat_file(f"{self._folder}/{path}"))

    def write(self, path: str, content: bytes) -> None:
        self._fs.pipe_file(f"{self._folder}/{path}", content)


@contextmanager
def _new_remote_folder(into: str) -> Iterator[Target]:
    """Object stores cannot rename a folder: what was begun is deleted if it cannot be completed."""
    filesystem, root = open_filesystem(into, "into")
    if filesystem.exists(root) and filesystem.find(root):
        raise _occupied(into)
    try:
        yield _RemoteTarget(filesystem, root, into)
    except BaseException:
        with suppress(Exception):  # what led here is the error that people need
            filesystem.rm(root, recursive=True)
        raise


def _occupied(into: str) -> BadParameter:
    remedy = "name a folder that does not exist yet; a checkpoint is never written over"
    return BadParameter("into", into, "there is something already", remedy)
