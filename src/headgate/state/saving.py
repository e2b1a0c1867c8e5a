"""Backups of one query: look at its checkpoint, code what is new, store it, make it valid, drop what is too old."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from headgate.errors import StateError
from headgate.state.catalog import Catalog
from headgate.state.code import Code
from headgate.state.fence import guard, raise_fence, require, settle
from headgate.state.folder import Folder, Seen
from headgate.state.increment import reusable
from headgate.state.keys import Line, PackId, fragment_key, manifest_key
from headgate.state.layout import CELL_BYTES
from headgate.state.manifest import File, Manifest, Pack, dump
from headgate.state.packing import PackWriter, Prepare, Progress, nothing, pack_files
from headgate.state.placement import bearable, place, weakest_host
from headgate.state.places import Places, Survey
from headgate.state.snapshot import Gone, Snapshot, look
from headgate.state.tags import Keys

log = logging.getLogger("headgate")

LOOKS = 5
"""A checkpoint that moves on this often while it is copied is not a matter of chance."""

REST_S = 300.0
"""A place that has just refused a block is left alone for so long, if there are enough others."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A backup that has just been made."""

    manifest: Manifest
    took_s: float
    stored: int
    """How many of its blocks were stored."""
    bears: int
    """How many places may be lost."""
    failed: dict[str, str]
    """Places that failed or did not answer, and why."""


class Saver:
    """The one writer of a query's backups."""

    def __init__(
        self, places: Places, line: Line, code: Code, keys: Keys, keep: int = 3,
        cell: int = CELL_BYTES, prepare: Prepare = nothing,
    ) -> None:  # fmt: skip
        self._places, self._line, self._code, self._keys = places, line, code, keys
        self._keep, self._cell, self._prepare = keep, cell, prepare
        self._tries = 0
        self._resting: dict[str, float] = {}
        self._most_per_place = -(-code.blocks // len(places))
        fence = raise_fence(places, line, keys)  # from here on nobody else adds or deletes anything
        catalog = Catalog(places, line, keys)
        self._require_sight(catalog.survey)
        self._kept = catalog.manifests()
        self._fence = settle(fence, places, line, keys, after=catalog.ids[0] if catalog.ids else None)
        if not catalog.damaged:  # what an unreadable one refers to is not known
            self._drop_unused(catalog.survey)

    @property
    def newest(self) -> Manifest | None:
        return self._kept[0] if self._kept else None

    def save(self, folder: Folder, tell: Progress = lambda count: None) -> Saved | None:
        """The newest state of the checkpoint; None if nothing was committed since the last backup."""
        began_s = time.monotonic()
        for _ in range(LOOKS):
            try:
                snapshot = look(folder)
                if snapshot is None or self._has(snapshot):
                    return None
                return self._save(folder, snapshot, tell, began_s)
            except Gone as gone:
                reason = gone
        raise StateError(f"{self._line}: the checkpoint changed {LOOKS} times while it was copied; last: {reason}")

    def _has(self, snapshot: Snapshot) -> bool:
        """The same batch of the same history: another checkpoint may have come to the same number."""
        if self.newest is None or self.newest.batch != snapshot.batch:
            return False
        names = ("metadata", f"commits/{snapshot.batch}", f"offsets/{snapshot.batch}")
        saved = {file.path: Seen(file.length, file.mark) for file in self.newest.files if file.path in names}
        return all(saved.get(name) == snapshot.files.get(name) for name in names)

    def _save(self, folder: Folder, snapshot: Snapshot, tell: Progress, began_s: float) -> Saved:
        survey = guard(self._fence, self._places, self._line, self._keys)
        self._drop_failed(survey)
        placed = self._place(survey)
        old = reusable(self.newest, snapshot.files, self._safe(survey, placed))
        fresh = {path: seen for path, seen in snapshot.files.items() if path not in old}
        pack_id = self._new_id(snapshot.batch)
        with PackWriter(
            self._places, self._line, pack_id, self._code, self._keys, placed, self._cell, self._prepare
        ) as writer:
            files = pack_files(writer, pack_id, folder, fresh, tell)
            pack = writer.finish()
            failed = {upload.place: upload.error for upload in writer.uploads.values() if upload.error is not None}
            self._resting |= dict.fromkeys(failed, time.monotonic())
            stored = {index: [upload.place] for index, upload in writer.uploads.items() if upload.error is None}
            self._require_spare(len(stored), survey.silent | failed)
        manifest = self._manifest(pack, [*old.values(), *files])
        self._commit(manifest, copies=bearable(stored, self._code.raw) + 1)
        survey = guard(self._fence, self._places, self._line, self._keys)  # only who is not shut out may delete
        self._kept.insert(0, manifest)
        self._drop_old(survey)
        bears = min(bearable(self._holders(survey, each), each.raw) for each in manifest.packs if each.length)
        return Saved(manifest, time.monotonic() - began_s, len(stored), bears, survey.silent | failed)

    def _new_id(self, batch: int) -> PackId:
        self._tries += 1
        return PackId(batch, self._fence.epoch, f"{self._fence.token}{self._tries:08x}")

    def _manifest(self, pack: Pack, files: list[File]) -> Manifest:
        used = {file.pack for file in files}
        old = [each for each in (self.newest.packs if self.newest else ()) if each.id in used]
        kept = tuple(manifest.id for manifest in self._kept[: self._keep - 1])
        ordered = tuple(sorted(files, key=lambda file: file.path))
        return Manifest(self._line, pack.id, time.time(), ordered, (*old, pack), kept)

    def _commit(self, manifest: Manifest, copies: int) -> None:
        """From the moment on in which so many places have the manifest, the backup exists."""
        content = dump(manifest, self._keys)
        guard(self._fence, self._places, self._line, self._keys)
        key = manifest_key(self._line, manifest.id)
        answers = self._places.ask(lambda store: store.put(key, [content]))
        if len(answers.given) < copies:
            self._places.delete({name: [key] for name in self._places.stores})
            why = "; ".join(f"{name}: {reason}" for name, reason in answers.silent.items())
            raise StateError(f"{self._line}: {len(answers.given)} places took the manifest, {copies} must: {why}")

    # ---- where the blocks go, and how safe they are there

    def _place(self, survey: Survey) -> dict[int, str]:
        """No place gets more blocks than if all were there: what a lost one should have had is mended later."""
        now_s = time.monotonic()
        self._resting = {name: at_s for name, at_s in self._resting.items() if now_s - at_s < REST_S}
        answering = [name for name in self._places.stores if name not in survey.silent]
        usable = [name for name in answering if name not in self._resting]
        if len(usable) * self._most_per_place <= self._code.raw:
            usable = answering
        hosts = {name: self._places.hosts[name] for name in usable}
        placed = place(range(self._code.blocks), hosts, {}, self._tries, self._most_per_place)
        host, lost = weakest_host(placed, hosts)
        if lost > self._code.check:
            log.info("%s: losing %s would lose %d blocks, more than the code bears", self._line, host, lost)
        return placed

    def _safe(self, survey: Survey, placed: dict[int, str]) -> set[PackId]:
        """The packs that bear as many losses as one that would be stored now."""
        new = bearable({index: [name] for index, name in placed.items()}, self._code.raw)
        packs = self.newest.packs if self.newest else ()
        return {pack.id for pack in packs if bearable(self._holders(survey, pack), pack.raw) >= new}

    def _holders(self, survey: Survey, pack: Pack) -> dict[int, list[str]]:
        return survey.holders(self._line, pack.id, pack.layout.fragment_bytes)

    def _require_spare(self, stored: int, failed: dict[str, str]) -> None:
        """A backup that could not bear a single loss is none; what is missing of one that can, the next one mends."""
        least = self._code.raw + (1 if self._code.check else 0)
        if stored < least:
            why = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
            blocks = self._code.blocks
            raise StateError(f"{self._line}: {stored} of {blocks} blocks were stored, {least} must be: {why}")

    def _require_sight(self, survey: Survey) -> None:
        """A backup is at more places than may be lost: whoever misses no more than that sees every backup."""
        placed = place(range(self._code.blocks), self._places.hosts, {}, 0, self._most_per_place)
        bears = bearable({index: [name] for index, name in placed.items()}, self._code.raw)
        require(self._places, max(self._places.majority, len(self._places) - bears), survey.silent)

    # ---- what is no longer needed

    def _drop_old(self, survey: Survey) -> None:
        if len(self._kept) > self._keep:
            self._kept = self._kept[: self._keep]
            self._drop_unused(survey)

    def _drop_unused(self, survey: Survey) -> None:
        """Manifests first, then the packs that they alone referred to."""
        kept = {manifest.id for manifest in self._kept}
        keys: dict[str, list[str]] = {}
        for pack, names in survey.manifests.get(self._line, {}).items():
            if pack not in kept:
                for name in names:
                    keys.setdefault(name, []).append(manifest_key(self._line, pack))
        self._places.delete(keys)
        self._drop_packs(survey, [pack for pack in survey.fragments.get(self._line, {}) if pack not in self._used()])

    def _drop_failed(self, survey: Survey) -> None:
        """What this writer's own tries have left behind."""
        packs = survey.fragments.get(self._line, {})
        self._drop_packs(survey, [pack for pack in packs if self._fence.wrote(pack) and pack not in self._used()])

    def _used(self) -> set[PackId]:
        return {pack.id for manifest in self._kept for pack in manifest.packs}

    def _drop_packs(self, survey: Survey, packs: list[PackId]) -> None:
        keys: dict[str, list[str]] = {}
        for pack in packs:
            for index, at in survey.fragments[self._line][pack].items():
                for name in at:
                    keys.setdefault(name, []).append(fragment_key(self._line, pack, index))
        if keys:
            self._places.delete(keys)
