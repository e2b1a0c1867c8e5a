"""Names of things at a place: topology / query / instance / batch, a prefix tree that any store can list.

Under a query's instance there are one folder per backup, with its manifest and its fragments, and the fences of its
writers::

    shop/orders/0/00000000000000000041-00000002-9f3a5c0100000007/manifest
    shop/orders/0/00000000000000000041-00000002-9f3a5c0100000007/04.fragment
    shop/orders/0/fence/00000002-9f3a5c01
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

MANIFEST = "manifest"
FENCE = "fence"

_PACK = re.compile(r"(\d{20,})-(\d{8,})-([0-9a-f]+)")
_FRAGMENT = re.compile(r"(\d{2,3})\.fragment")


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """Whose backups these are."""

    topology: str
    query: str
    instance: str = "0"

    @property
    def prefix(self) -> str:
        return "/".join(_quoted(part) for part in (self.topology, self.query, self.instance))

    def __str__(self) -> str:
        return f"{self.topology}/{self.query}/{self.instance}"


def _quoted(part: str) -> str:
    """One path component, whatever the name: no slash, and not a dot that a file system would follow."""
    return quote(part, safe="").replace(".", "%2E")


@dataclass(frozen=True, slots=True, order=True)
class PackId:
    """One backup: the batch it holds, the number of its writer, and the writer's token with a count of its tries."""

    batch: int
    epoch: int
    token: str

    def __str__(self) -> str:
        return f"{self.batch:020d}-{self.epoch:08d}-{self.token}"


def parse_pack(text: str) -> PackId | None:
    found = _PACK.fullmatch(text)
    return None if found is None else PackId(int(found[1]), int(found[2]), found[3])


def manifest_key(line: Line, pack: PackId) -> str:
    return f"{line.prefix}/{pack}/{MANIFEST}"


def fragment_key(line: Line, pack: PackId, index: int) -> str:
    return f"{line.prefix}/{pack}/{index:02d}.fragment"


def fence_key(line: Line, epoch: int, token: str) -> str:
    return f"{line.prefix}/{FENCE}/{epoch:08d}-{token}"


@dataclass(frozen=True, slots=True)
class Found:
    """A key, understood: a manifest (index is None) or a fragment of a pack."""

    line: Line
    pack: PackId
    index: int | None


def parse_key(key: str) -> Found | None:
    """None for a fence, and for what is not ours."""
    parts = key.split("/")
    if len(parts) != 5 or (pack := parse_pack(parts[3])) is None:
        return None
    line = Line(*(unquote(part) for part in parts[:3]))
    if parts[4] == MANIFEST:
        return Found(line, pack, None)
    fragment = _FRAGMENT.fullmatch(parts[4])
    return None if fragment is None else Found(line, pack, int(fragment[1]))


def parse_fence(key: str) -> tuple[int, str] | None:
    """(epoch, token)."""
    epoch, dash, token = key.rsplit("/", 1)[-1].partition("-")
    return (int(epoch), token) if dash and epoch.isdigit() else None
