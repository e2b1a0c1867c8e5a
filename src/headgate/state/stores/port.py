"""What a place must be able to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

Chunk = bytes | bytearray | memoryview


class FragmentStore(Protocol):
    """A place for fragments. Failures are OSErrors; what is not there is a FileNotFoundError."""

    @property
    def name(self) -> str:
        """For people, and to tell places apart; without credentials."""

    @property
    def host(self) -> str:
        """What this place shares its fate with: places of one host are lost together."""

    def put(self, key: str, chunks: Iterable[Chunk]) -> None:
        """Store it whole or not at all: if `chunks` raises or the process dies, the key keeps what it had."""

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """These bytes of it, fewer where it ends before."""

    def find(self, prefix: str = "") -> dict[str, int]:
        """All keys below a folder of the tree, with their sizes."""

    def delete(self, key: str) -> None:
        """No error if it is not there."""
