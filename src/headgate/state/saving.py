"""Backups of one query: look at its checkpoint, code what is new, store it, make it valid, drop what is too old."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from headgate.errors import StateError
from headgate.state.catalog import Catalog
from headgate.state.code import Code
from headgate.state.fence import Fence, raise_fence
from headgate.state.folder import Folder
from headgate.state.increment import reusable
from headgate.state.keys import Line, PackId, fragment_key, manifest_key
from headgate.state.layout import CELL_BYTES
from headgate.state.manifest import Manifest, dump
from headgate.state.packing import PackWriter, Progress, pack_files
from headgate.state.placement import place, weakest_host
from headgate.state.places import Places
from headgate.state.snapshot import Gone, Snapshot, look
from headgate.state.tags import Keys

log = logging.getLogger("headgate")

LOOKS = 5
"""A checkpoint that moves on this often while it is copied is not a matter of chance."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A backup that has just been made."""

    manifest: Manifest
    took_s: float
    stored: int
    """How many of its blocks were stored."""
    failed: dict[str, str]
    """Places that failed, and why."""


class Saver:
    """The one writer of a query's backups."""

    def __init__(
        self, places: Places, line: Line, code: Code, keys: Keys, keep: int = 3,
        cell: int = CELL_BYTES, prepare: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._places, self._line, self._code, self._keys = places, line, code, keys
        self._keep, self._cell, self._prepare = keep, cell, prepare
        catalog = Catalog(places, line, keys)
        self._kept: list[Manifest] = catalog.manifests()
        self._held = {
            pack: {index: names for index, at in fragments.items() if (names := list(at))}
            for pack, fragments in catalog.survey.fragments.get(line, {}).items()
        }
        self._fence: Fence = raise_fence(places, line, catalog.survey, self._kept[0].id if self._kept else None, keys)
        if catalog.survey.complete and not catalog.damaged:  # only who sees everything may call something left over
            self._drop_left_over(catalog)

    @property
    def newest(self) -> Manifest | None:
        return self._kept[0] if self._kept else None

    def save(self, folder: Folder, tell: Progress = lambda count: None) -> Saved | None:
        """The newest state of the checkpoint; None if nothing was committed since the last backup."""
        began_s = time.monotonic()
        for _ in range(LOOKS):
            try:
                snapshot = look(folder)
                if snapshot is None or (self.newest is not None and snapshot.batch == self.newest.batch):
                    return None
                return self._save(folder, snapshot, tell, began_s)
            except Gone as gone:
                reason = gone
        raise StateError(f"{self._line}: the checkpoint changed {LOOKS} times while it was copied; last: {reason}")

    def _save(self, folder: Folder, snapshot: Snapshot, tell: Progress, began_s: float) -> Saved:
        answering = self._fence.guard(self._places)
        pack_id = PackId(snapshot.batch, self._fence.epoch, secrets.token_hex(4))
        placed = self._place(answering, turn=len(self._held))
        old = reusable(self.newest, snapshot.files, {pack: len(at) for pack, at in self._held.items()})
        fresh = {path: seen for path, seen in snapshot.files.items() if path not in old}
        writer = PackWriter(
            self._places, self._line, pack_id, self._code, self._keys, placed, self._cell, self._prepare
        )
        with writer:
            files = pack_files(writer, pack_id, folder, fresh, tell)
            pack = writer.finish()
            failed = {upload.place: upload.error for upload in writer.uploads.values() if upload.error is not None}
            stored = {index: [up.place] for index, up in writer.uploads.items() if up.error is None}
            self._check_enough(len(stored), failed)
        packs = {each.id: each for each in (self.newest.packs if self.newest else ())}
        used = {file.pack for file in old.values()}
        manifest = Manifest(
            self._line, pack_id, time.time(),
            tuple(sorted([*old.values(), *files], key=lambda file: file.path)),
            (*(packs[each] for each in packs if each in used), pack),
        )  # fmt: skip
        self._commit(manifest)
        self._held[pack_id] = stored
        self._kept.insert(0, manifest)
        self._drop_old()
        return Saved(manifest, time.monotonic() - began_s, len(stored), failed)

    def _place(self, answering: list[str], turn: int) -> dict[int, str]:
        hosts = {name: host for name, host in self._places.hosts.items() if name in answering}
        placed = place(range(self._code.blocks), hosts, {}, turn)
        host, lost = weakest_host(placed, hosts)
        if lost > self._code.check and len(hosts) > 1:
            log.info("%s: losing %s would lose %d blocks, more than the code bears", self._line, host, lost)
        return placed

    def _check_enough(self, stored: int, failed: dict[str, str]) -> None:
        """A backup that could not bear a single loss is none; what is missing of one that can, the next one mends."""
        least = self._code.raw + (1 if self._code.check else 0)
        if stored < least:
            why = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
            raise StateError(
                f"{self._line}: {stored} of {self._code.blocks} blocks were stored, {least} must be: {why}"
            )

    def _commit(self, manifest: Manifest) -> None:
        """From the moment on in which enough places have the manifest, the backup exists."""
        content = dump(manifest, self._keys)
        answering = self._fence.guard(self._places)
        key = manifest_key(self._line, manifest.id)
        answers = self._places.ask(lambda store: store.put(key, [content]), answering)
        least = min(self._code.check + 1, len(self._places))
        if len(answers.given) < least:
            self._places.ask(lambda store: store.delete(key), answers.given)
            why = "; ".join(f"{name}: {reason}" for name, reason in answers.silent.items())
            raise StateError(f"{self._line}: {len(answers.given)} places took the manifest, {least} must: {why}")

    # ---- what is no longer needed

    def _drop_old(self) -> None:
        kept, dropped = self._kept[: self._keep], self._kept[self._keep :]
        if not dropped:
            return
        self._kept = kept
        keys = [manifest_key(self._line, manifest.id) for manifest in dropped]
        self._places.delete(dict.fromkeys(self._places.stores, keys))  # before what they refer to
        used = {pack.id for manifest in kept for pack in manifest.packs}
        self._drop_packs([pack for pack in self._held if pack not in used])

    def _drop_left_over(self, catalog: Catalog) -> None:
        """What interrupted backups, and writers that were shut out, left behind."""
        keys = [manifest_key(self._line, pack) for pack in catalog.disowned]
        if keys:
            self._places.delete(dict.fromkeys(self._places.stores, keys))
        used = {pack.id for manifest in self._kept for pack in manifest.packs}
        self._drop_packs([pack for pack in self._held if pack not in used])

    def _drop_packs(self, packs: list[PackId]) -> None:
        by_place: dict[str, list[str]] = {}
        for pack in packs:
            for index, names in self._held.pop(pack).items():
                for name in names:
                    by_place.setdefault(name, []).append(fragment_key(self._line, pack, index))
        self._places.delete(by_place)
