"""From fragments back to a checkpoint that a query resumes from."""

from __future__ import annotations

import os
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from headgate.errors import BadParameter, StateError
from headgate.state.catalog import Catalog
from headgate.state.fetching import StripeReader
from headgate.state.manifest import File, Manifest, Pack
from headgate.state.packing import Progress
from headgate.state.relocating import names_its_place, relocated


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


def restore(catalog: Catalog, manifest: Manifest, into: str, tell: Progress = lambda count: None) -> None:
    """Write the checkpoint of a backup into a new folder; nothing that exists is ever written over."""
    with new_folder(into) as target:
        for file in manifest.files:
            if not file.length:
                target.create(file.path).close()
        for pack in manifest.packs:
            _restore_pack(catalog, manifest, pack, target, tell)
        for file in manifest.files:
            if names_its_place(file.path):
                target.write(file.path, relocated(target.read(file.path), target.root, file.path))


def _restore_pack(catalog: Catalog, manifest: Manifest, pack: Pack, target: Target, tell: Progress) -> None:
    files = [file for file in manifest.files_in(pack.id) if file.length]
    wanted = pack.layout.stripes_of((file.start, file.length) for file in files)
    holders = catalog.holders(pack)
    with StripeReader(catalog.places, catalog.line, holders, catalog.keys, wanted) as reader:
        writer = _Writer(files, target, tell)
        for stripe, cells in reader.stripes():
            raw = pack.code.rebuild(cells, range(pack.raw))
            left, start = pack.layout.data_bytes(stripe), stripe * pack.layout.stripe_bytes
            for index in range(pack.raw):
                cell = raw[index].data[:left]
                writer.take(start, cell)
                start, left = start + len(cell), left - len(cell)
        writer.finish()


class _Writer:
    """Takes a pack's bytes in order, with gaps, and writes those that belong to files."""

    def __init__(self, files: list[File], target: Target, tell: Progress) -> None:
        self._files = iter(files)
        self._target, self._tell = target, tell
        self._file: File | None = None
        self._open: BinaryIO | None = None
        self._done = self._crc = 0
        self._advance()

    def take(self, start: int, content: memoryview) -> None:
        end = start + len(content)
        while self._file is not None and self._file.start + self._done < end:
            at = self._file.start + self._done
            piece = content[at - start : min(end, self._file.start + self._file.length) - start]
            if self._open is None:
                self._open = self._target.create(self._file.path)
            self._open.write(piece)
            self._crc = zlib.crc32(piece, self._crc)
            self._done += len(piece)
            self._tell(len(piece))
            if self._done == self._file.length:
                self._close()
                self._advance()

    def finish(self) -> None:
        if self._file is not None:
            raise StateError(f"{self._file.path}: the pack ended before the file did")

    def _close(self) -> None:
        assert self._file is not None and self._open is not None
        self._open.close()
        self._open = None
        if self._crc != self._file.crc:
            raise StateError(f"{self._file.path}: what was put together is not what was saved; this is a defect")

    def _advance(self) -> None:
        self._file = next(self._files, None)
        self._done = self._crc = 0


# ---- where to


@contextmanager
def new_folder(into: str) -> Iterator[Target]:
    """A target at this path or URL, which must not hold anything yet."""
    parts = urlsplit(into)
    if parts.scheme in ("", "file"):
        with _new_local_folder(Path(unquote(parts.path) if parts.scheme else into).expanduser()) as local:
            yield local
    else:
        with _new_remote_folder(into) as remote:
            yield remote


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
        remedy = "name a folder that does not exist yet; a checkpoint is never written over"
        raise BadParameter("into", str(path), "there is something already", remedy)
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
    import fsspec

    filesystem, root = fsspec.core.url_to_fs(into.replace("s3a://", "s3://", 1))
    if filesystem.exists(root) and filesystem.find(root):
        remedy = "name a folder that does not exist yet; a checkpoint is never written over"
        raise BadParameter("into", into, "there is something already", remedy)
    try:
        yield _RemoteTarget(filesystem, root, into)
    except BaseException:
        with suppress(Exception):  # what led here is the error that people need
            filesystem.rm(root, recursive=True)
        raise
