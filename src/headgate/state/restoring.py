"""From fragments back to a checkpoint that a query resumes from."""

from __future__ import annotations

import zlib
from typing import BinaryIO

from headgate.errors import StateError
from headgate.state.catalog import Catalog
from headgate.state.fetching import StripeReader
from headgate.state.manifest import File, Manifest, Pack
from headgate.state.packing import Progress
from headgate.state.relocating import names_its_place, relocated
from headgate.state.targets import Target, new_folder


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
