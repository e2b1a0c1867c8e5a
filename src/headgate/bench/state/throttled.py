"""Places with a limited bandwidth, as disks and networks of other nodes have it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

from headgate.state.stores.port import Chunk, FragmentStore

PIECE_BYTES = 1 << 18
"""What passes at once: small, so that the pace is even."""


class Pipe:
    """Lets so many bytes pass per second, whoever asks."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_at_s = 0.0
        self._lock = threading.Lock()

    def pass_through(self, count: int) -> None:
        with self._lock:
            start_s = max(self._free_at_s, time.monotonic())
            self._free_at_s = start_s + count / self._bytes_per_s
            until_s = self._free_at_s
        time.sleep(max(0.0, until_s - time.monotonic()))


class ThrottledStore:
    """A store behind a pipe; listing and deleting are free."""

    def __init__(self, store: FragmentStore, bytes_per_s: float) -> None:
        self.unlimited, self._pipe = store, Pipe(bytes_per_s)
        self.name, self.host = store.name, store.host

    def put(self, key: str, chunks: Iterable[Chunk]) -> None:
        self.unlimited.put(key, self._paced(chunks))

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        content = self.unlimited.get(key, start, end)
        self._pipe.pass_through(len(content))
        return content

    def find(self, prefix: str = "") -> dict[str, int]:
        return self.unlimited.find(prefix)

    def delete(self, key: str) -> None:
        self.unlimited.delete(key)

    def _paced(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            self._pipe.pass_through(len(chunk))
            yield chunk
