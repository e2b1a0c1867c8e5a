"""Writing one pack: files in, coded stripes out to all places at once, in bounded memory."""

from __future__ import annotations

import queue
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from headgate.core.galois import Matrix
from headgate.state.code import Code
from headgate.state.folder import Folder, Seen
from headgate.state.keys import Line, PackId, fragment_key
from headgate.state.layout import CELL_BYTES
from headgate.state.manifest import File, Pack
from headgate.state.places import Places
from headgate.state.snapshot import OWN, Gone
from headgate.state.stores.port import Chunk, FragmentStore
from headgate.state.tags import Keys

CELLS_WAITING = 3
"""So many cells may wait for a place: what a pack needs in memory is r + c times this, and the stripe being read."""

STALLED_S = 60.0
"""A place that takes nothing for so long is given up."""

LOOK_S = 0.02

Tag = Callable[[int, memoryview], bytes]
"""Makes the tag of a cell from its stripe's number and its content."""

Progress = Callable[[int], None]
"""Told the number of bytes that were just done."""


Prepare = Callable[[], None]
"""Called first in every thread that does work, for example to lower its priority."""


def nothing() -> None: ...


class _Abandoned(Exception):
    """Raised inside an upload so that the place forgets what it has got so far."""


class Upload:
    """One fragment on its way to one place, in a thread of its own."""

    def __init__(self, store: FragmentStore, key: str, tag: Tag, prepare: Prepare = nothing) -> None:
        self.place = store.name
        self.error: str | None = None
        self._store, self._key, self._tag, self._prepare = store, key, tag, prepare
        self._cells: queue.Queue[Matrix | type[_Abandoned] | None] = queue.Queue(CELLS_WAITING)
        self._thread = threading.Thread(target=self._run, name=f"upload to {store.name}", daemon=True)
        self._thread.start()

    def send(self, cell: Matrix) -> None:
        """Waits while the place is behind; does nothing once it has failed."""
        give_up_s = time.monotonic() + STALLED_S
        while self.error is None:
            try:
                self._cells.put(cell, timeout=0.1)
                return
            except queue.Full:
                if time.monotonic() > give_up_s:
                    self.give_up()

    def end(self) -> bool:
        """Say that this was all, if the place has room for that; False if it is still behind."""
        if self.error is None:
            try:
                self._cells.put_nowait(None)
            except queue.Full:
                return False
        return True

    def wait(self, until_s: float) -> None:
        """For the place to say that it has all, unless it has failed already."""
        if self.error is None:
            self._thread.join(max(0.0, until_s - time.monotonic()))
            if self._thread.is_alive():
                self.error = f"not done after {STALLED_S:g} s"

    def give_up(self) -> None:
        self.abandon()
        self.error = f"took nothing for {STALLED_S:g} s"

    def abandon(self) -> None:
        self.error = self.error or "abandoned"
        while True:  # make room: whoever reads must see the end
            try:
                self._cells.put_nowait(_Abandoned)
                return
            except queue.Full:
                try:
                    self._cells.get_nowait()
                except queue.Empty:
                    continue

    def _run(self) -> None:
        try:
            self._prepare()
            self._store.put(self._key, self._chunks())
        except _Abandoned:
            return
        except Exception as error:
            self.error = self.error or f"{type(error).__name__}: {error}"

    def _chunks(self) -> Iterator[Chunk]:
        stripe = 0
        while (cell := self._cells.get()) is not None:
            if isinstance(cell, type):
                raise _Abandoned
            yield cell.data
            yield self._tag(stripe, cell.data)
            stripe += 1


class PackWriter:
    """Takes bytes, cuts them into stripes, codes them and sends the cells away. Use it with `with`."""

    def __init__(
        self, places: Places, line: Line, pack: PackId, code: Code, keys: Keys, placed: Mapping[int, str],
        cell: int = CELL_BYTES, prepare: Prepare = nothing,
    ) -> None:  # fmt: skip
        self._pack, self._code, self._cell = pack, code, cell
        self._length = self._filled = 0
        self._buffer = self._new_buffer()
        self.uploads = {
            index: Upload(places.stores[name], fragment_key(line, pack, index), keys.tagger(line, pack, index), prepare)
            for index, name in placed.items()
        }

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is not None:
            for upload in self.uploads.values():
                upload.abandon()

    @property
    def length(self) -> int:
        return self._length

    def room(self) -> memoryview:
        """Where the next bytes go; tell `wrote` how many came."""
        return self._buffer.data[self._filled :]

    def wrote(self, count: int) -> None:
        self._filled += count
        self._length += count
        if self._filled == len(self._buffer):
            self._send(self._buffer)
            self._buffer, self._filled = self._new_buffer(), 0

    def finish(self) -> Pack:
        """The last stripe, and wait for all places; those that failed have an `error`."""
        if self._filled:
            cell = -(-self._filled // self._code.raw)
            last = self._buffer[: cell * self._code.raw]
            last[self._filled :] = 0
            self._send(last)
        finish_all(self.uploads.values())
        return Pack(self._pack, self._length, self._code.raw, self._code.check, self._cell)

    def _new_buffer(self) -> Matrix:
        return np.empty(self._code.raw * self._cell, np.uint8)

    def _send(self, stripe: Matrix) -> None:
        raw = list(stripe.reshape(self._code.raw, -1))
        for index, cell in enumerate([*raw, *self._code.encode(raw)]):
            if (upload := self.uploads.get(index)) is not None:
                upload.send(cell)


def finish_all(uploads: Collection[Upload]) -> None:
    """Places that hang are given up together, not one after the other, and those that do not are none the worse."""
    until_s = time.monotonic() + STALLED_S
    behind = [upload for upload in uploads if not upload.end()]
    while behind and time.monotonic() < until_s:
        time.sleep(LOOK_S)
        behind = [upload for upload in behind if not upload.end()]
    for upload in behind:
        upload.give_up()
    until_s = time.monotonic() + STALLED_S
    for upload in uploads:
        upload.wait(until_s)


def pack_files(
    writer: PackWriter, pack: PackId, folder: Folder, files: Mapping[str, Seen], tell: Progress
) -> list[File]:
    """Read files of a checkpoint into a pack. Raises Gone if one is not what it was when the snapshot was taken."""
    return [_pack_file(writer, pack, folder, path, seen, tell) for path, seen in files.items()]


def _pack_file(writer: PackWriter, pack: PackId, folder: Folder, path: str, listed: Seen, tell: Progress) -> File:
    try:
        file, seen = folder.open(path)
    except FileNotFoundError as error:
        raise Gone(path) from error
    if seen != listed and not path.startswith(OWN):
        file.close()
        raise Gone(f"{path} was written again")
    start, crc, left = writer.length, 0, seen.length
    with file:
        while left:
            room = writer.room()[:left]
            count = file.readinto(room)  # type: ignore[attr-defined]  # every reader of ours has it
            if not count:
                raise Gone(f"{path} has become shorter")
            crc = zlib.crc32(room[:count], crc)
            writer.wrote(count)
            tell(count)
            left -= count
    return File(path, seen.length, seen.mark, crc, pack, start)
