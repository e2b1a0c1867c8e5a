"""A folder that grows as a query's checkpoint does, without Spark, and places that misbehave."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from pathlib import Path

from headgate.state.places import Places
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


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


class FlakyStore(MemoryStore):
    """A place that can be made to fail."""

    def __init__(self, name: str, host: str | None = None) -> None:
        super().__init__(name, host)
        self.down = False
        self.puts_left: int | None = None
        """After so many more it fails."""

    def put(self, key: str, chunks: Iterable[Chunk]) -> None:
        self._check()
        if self.puts_left is not None:
            if self.puts_left <= 0:
                raise OSError("no space left")
            self.puts_left -= 1
        super().put(key, chunks)

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        self._check()
        return super().get(key, start, end)

    def find(self, prefix: str = "") -> dict[str, int]:
        self._check()
        return super().find(prefix)

    def delete(self, key: str) -> None:
        self._check()
        super().delete(key)

    def wipe(self) -> None:
        for key in super().find():
            super().delete(key)

    def damage(self, key: str, at: int) -> None:
        content = bytearray(super().get(key))
        content[at % len(content)] ^= 0x55
        super().put(key, [bytes(content)])

    def _check(self) -> None:
        if self.down:
            raise ConnectionRefusedError(f"{self.name} is down")


def flaky_places(count: int = 10) -> tuple[Places, list[FlakyStore]]:
    stores = [FlakyStore(f"place-{number}") for number in range(count)]
    return Places(stores), stores


def fresh_folder(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    return path
