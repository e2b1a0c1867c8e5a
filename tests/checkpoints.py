"""A folder that grows as a query's checkpoint does, without Spark, and places that misbehave."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from headgate.state.folder import LocalFolder
from headgate.state.places import Places
from headgate.state.snapshot import look
from headgate.state.stores.memory import MemoryStore
from headgate.state.stores.port import Chunk

RETAIN = 6
SNAPSHOT_EVERY = 4


class GrowingCheckpoint:
    """Written in Spark's order: sources, offsets, state, commits; old files vanish."""

    def __init__(self, root: Path, partitions: int = 2, file_bytes: int = 300, seed: int = 0) -> None:
        self.root = root
        self.batch = -1
        self._random = random.Random(seed)
        self._partitions, self._file_bytes = partitions, file_bytes
        self._write("metadata", b'{"id":"0"}')
        self._write("state/0/_metadata/metadata", b"operators")

    def run_batch(self, *, committed: bool = True) -> None:
        number = self.batch + 1
        self._write(f"sources/0/{number}", self._bytes(50))
        self._write(f"offsets/{number}", self._bytes(50))
        for partition in range(self._partitions):
            self._write(f"state/0/{partition}/{number + 1}.delta", self._bytes(self._file_bytes))
            if (number + 1) % SNAPSHOT_EVERY == 0:
                self._write(f"state/0/{partition}/{number + 1}.snapshot", self._bytes(4 * self._file_bytes))
        if committed:
            self._write(f"commits/{number}", b"v1\n{}")
            self.batch = number
            self._forget(number - RETAIN)

    def content(self) -> dict[str, bytes]:
        """All files, as a reader of the newest batch may need them."""
        return contents(self.root)

    def _forget(self, number: int) -> None:
        if number >= 0:
            logs = [self.root / "offsets" / str(number), self.root / "commits" / str(number)]
            for path in [*logs, *self.root.glob(f"state/0/*/{number + 1}.*")]:
                path.unlink()

    def _bytes(self, about: int) -> bytes:
        return self._random.randbytes(self._random.randint(about // 2, about * 2))

    def _write(self, name: str, content: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def grown(root: Path, batches: int = 3) -> GrowingCheckpoint:
    """A checkpoint with some batches."""
    made = GrowingCheckpoint(root)
    for _ in range(batches):
        made.run_batch()
    return made


def needed_of(checkpoint: GrowingCheckpoint) -> dict[str, bytes]:
    """What a backup of it must bring back."""
    snapshot = look(LocalFolder(checkpoint.root))
    assert snapshot is not None
    content = contents(checkpoint.root)
    return {path: content[path] for path in snapshot.files}


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


class CanGoDown:
    """Put before a store: from the moment on in which it is down it answers nothing, be it in mid-upload."""

    down = False
    name: str

    def put(self, key: str, chunks: Iterable[Chunk]) -> None:
        super().put(key, self._while_up(chunks))  # type: ignore[misc]
        self._check()

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        self._check()
        return super().get(key, start, end)  # type: ignore[misc]

    def find(self, prefix: str = "") -> dict[str, int]:
        self._check()
        return super().find(prefix)  # type: ignore[misc]

    def delete(self, key: str) -> None:
        self._check()
        super().delete(key)  # type: ignore[misc]

    def _while_up(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        self._check()
        for chunk in chunks:
            yield chunk
            self._check()

    def _check(self) -> None:
        if self.down:
            raise ConnectionRefusedError(f"{self.name} is down")


class FlakyStore(CanGoDown, MemoryStore):
    """A place that can be made to fail."""

    puts_left: int | None = None
    """After so many more it is full."""

    def put(self, key: str, chunks: Iterable[Chunk]) -> None:
        if self.puts_left is not None:
            if self.puts_left <= 0:
                raise OSError("no space left")
            self.puts_left -= 1
        super().put(key, chunks)

    def wipe(self) -> None:
        for key in MemoryStore.find(self):
            MemoryStore.delete(self, key)

    def damage(self, key: str, at: int) -> None:
        content = bytearray(MemoryStore.get(self, key))
        content[at % len(content)] ^= 0x55
        MemoryStore.put(self, key, [bytes(content)])


def flaky_places(count: int = 10) -> tuple[Places, list[FlakyStore]]:
    stores = [FlakyStore(f"place-{number}") for number in range(count)]
    return Places(stores), stores
