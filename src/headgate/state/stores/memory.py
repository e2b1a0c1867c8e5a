"""A place in this process, for tests, and for what a node keeps of others: keys in a prefix tree."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from headgate.state.stores.port import Chunk


@dataclass(slots=True)
class _Node:
    """The paper's prefix tree: routing above, a block at the leaf."""

    block: bytes | None = None
    below: dict[str, _Node] = field(default_factory=dict)


class MemoryStore:
    """Finding a key or a folder takes as many steps as its path has parts, however much is stored."""

    def __init__(self, name: str = "memory", host: str | None = None) -> None:
        self.name = name
        self.host = host or name
        self._root = _Node()
        self._lock = threading.Lock()

    def put(self, key: str, chunks: Iterable[Chunk]) -> None:
        block = b"".join(chunks)
        with self._lock:
            node = self._root
            for part in key.split("/"):
                node = node.below.setdefault(part, _Node())
            node.block = block

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        with self._lock:
            node = self._node(key)
            if node is None or node.block is None:
                raise FileNotFoundError(key)
            return node.block[start:end]

    def find(self, prefix: str = "") -> dict[str, int]:
        with self._lock:
            node = self._node(prefix) if prefix else self._root
            return {} if node is None else dict(_leaves(node, prefix))

    def delete(self, key: str) -> None:
        with self._lock:
            self._prune(self._root, key.split("/"))

    def _node(self, path: str) -> _Node | None:
        node: _Node | None = self._root
        for part in path.split("/"):
            if node is None:
                return None
            node = node.below.get(part)
        return node

    def _prune(self, node: _Node, parts: list[str]) -> None:
        """Routing that leads nowhere goes with the block."""
        if not parts:
            node.block = None
        elif (below := node.below.get(parts[0])) is not None:
            self._prune(below, parts[1:])
            if below.block is None and not below.below:
                del node.below[parts[0]]


def _leaves(node: _Node, path: str) -> Iterator[tuple[str, int]]:
    if node.block is not None:
        yield path, len(node.block)
    for part, below in node.below.items():
        yield from _leaves(below, f"{path}/{part}" if path else part)
