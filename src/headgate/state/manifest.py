"""The table of contents of one backup: which files the checkpoint had, and in which packs their bytes are."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

from headgate.errors import StateError
from headgate.state.code import Code
from headgate.state.keys import Line, PackId, parse_pack
from headgate.state.layout import Layout
from headgate.state.tags import Keys, same

FORMAT = 1
_MAGIC = b"headgate-manifest"


@dataclass(frozen=True, slots=True)
class Pack:
    """Bytes that were coded together: the files that were new in one backup, one after the other."""

    id: PackId
    length: int
    raw: int
    check: int
    cell: int

    @property
    def code(self) -> Code:
        return Code(self.raw, self.check)

    @property
    def layout(self) -> Layout:
        return Layout(self.length, self.raw, self.cell)


@dataclass(frozen=True, slots=True)
class File:
    """A file of the checkpoint, `length` bytes from `start` of a pack."""

    path: str
    length: int
    mark: str
    """Tells, without reading it, whether the file has changed since: its time of modification or the like."""
    crc: int
    pack: PackId
    start: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A snapshot of the checkpoint after `batch`."""

    line: Line
    id: PackId
    saved_at_s: float
    files: tuple[File, ...]
    packs: tuple[Pack, ...]
    kept: tuple[PackId, ...] = ()
    """The backups that were kept besides this one. All others are gone, though a place may not know it yet."""

    @property
    def batch(self) -> int:
        return self.id.batch

    @property
    def bytes(self) -> int:
        return sum(file.length for file in self.files)

    @property
    def own_bytes(self) -> int:
        """What this backup added."""
        return sum(pack.length for pack in self.packs if pack.id == self.id)

    def files_in(self, pack: PackId) -> list[File]:
        return sorted((file for file in self.files if file.pack == pack), key=lambda file: file.start)


def dump(manifest: Manifest, keys: Keys) -> bytes:
    """Compressed JSON behind a line with its tag."""
    numbers = {pack.id: number for number, pack in enumerate(manifest.packs)}
    body = {
        "format": FORMAT,
        "line": [manifest.line.topology, manifest.line.query, manifest.line.instance],
        "id": str(manifest.id),
        "saved_at_s": manifest.saved_at_s,
        "kept": [str(pack) for pack in manifest.kept],
        "packs": [[str(pack.id), pack.length, pack.raw, pack.check, pack.cell] for pack in manifest.packs],
        "files": [
            [file.path, file.length, file.mark, file.crc, numbers[file.pack], file.start] for file in manifest.files
        ],
    }
    content = zlib.compress(json.dumps(body).encode(), 3)
    return b"%s %s\n%s" % (_MAGIC, keys.text("manifest", content).encode(), content)


def parse(data: bytes, keys: Keys, line: Line, pack: PackId, where: str) -> Manifest:
    """The inverse of `dump`; what is damaged, signed with another key or found under another name is a StateError."""
    first, _, content = data.partition(b"\n")
    magic, _, tag = first.partition(b" ")
    if magic != _MAGIC:
        raise StateError(f"{where}: no manifest of a Headgate backup, or a damaged one")
    if not same(tag, keys.text("manifest", content).encode()):
        raise StateError(f"{where}: damaged, changed by somebody, or written with another key")
    try:
        body = json.loads(zlib.decompress(content))
        if body["format"] != FORMAT:
            raise StateError(f"{where}: format {body['format']} needs a newer Headgate; this one reads {FORMAT}")
        manifest = _manifest(body)
        _check(manifest, line, pack)
    except (zlib.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise StateError(f"{where}: this manifest makes no sense: {error}") from error
    return manifest


def _manifest(body: dict[str, Any]) -> Manifest:
    packs = tuple(Pack(_pack_id(name), *numbers) for name, *numbers in body["packs"])
    files = tuple(
        File(path, length, mark, crc, packs[number].id, start)
        for path, length, mark, crc, number, start in body["files"]
    )
    kept = tuple(_pack_id(name) for name in body["kept"])
    return Manifest(Line(*body["line"]), _pack_id(body["id"]), body["saved_at_s"], files, packs, kept)


def _pack_id(text: str) -> PackId:
    found = parse_pack(text)
    if found is None:
        raise ValueError(f"{text!r} is no name of a backup")
    return found


def _check(manifest: Manifest, line: Line, pack: PackId) -> None:
    """A tag says who wrote it. It does not say that it belongs here, nor that it does no harm."""
    if (manifest.line, manifest.id) != (line, pack):
        raise ValueError(f"it is that of {manifest.line}, {manifest.id}, and was put in the place of {line}, {pack}")
    lengths = {each.id: each.length for each in manifest.packs}
    for each in manifest.packs:
        Code(each.raw, each.check)
        if each.length < 0 or each.cell < 1:
            raise ValueError(f"pack {each.id} has {each.length} bytes in cells of {each.cell}")
    for file in manifest.files:
        if any(part in ("", ".", "..") for part in file.path.split("/")) or "\0" in file.path:
            raise ValueError(f"{file.path!r} leads out of the folder")
        if file.length < 0 or file.start < 0 or file.start + file.length > lengths[file.pack]:
            raise ValueError(f"{file.path!r} is not within its pack")
