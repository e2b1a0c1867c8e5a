"""Reading every block there is, and making lost ones anew at other places."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from headgate.errors import StateError
from headgate.state.catalog import Catalog, Holders
from headgate.state.fetching import StripeReader, split_cells
from headgate.state.keys import PackId, fragment_key, manifest_key
from headgate.state.manifest import Manifest, Pack, dump
from headgate.state.packing import Progress, Upload, finish_all
from headgate.state.placement import place
from headgate.state.stores.port import FragmentStore

STRIPES_PER_READ = 4

READING_S = 24 * 3600.0
"""Reading everything takes as long as it takes; single requests have limits of their own."""


@dataclass(frozen=True, slots=True)
class Health:
    """What reading all blocks of a pack showed."""

    good: Holders
    damaged: dict[tuple[int, str], str]
    """Why, by (index, place)."""

    @property
    def pack(self) -> Pack:
        return self.good.pack

    @property
    def missing(self) -> list[int]:
        return self.good.missing

    @property
    def spare(self) -> int:
        return self.good.spare

    def complaint(self, index: int) -> str | None:
        """What was wrong with a block, at the places that had it."""
        found = [f"block {index} at {name}: {why}" for (each, name), why in self.damaged.items() if each == index]
        return "; ".join(found) or None


def packs_of(manifests: Iterable[Manifest]) -> list[Pack]:
    """Every pack once."""
    return list({pack.id: pack for manifest in manifests for pack in manifest.packs}.values())


def examine(catalog: Catalog, packs: Iterable[Pack], tell: Progress = lambda count: None) -> dict[PackId, Health]:
    """Read every block at every place, the places in parallel, and check all tags."""
    work = defaultdict[str, list[tuple[Pack, int]]](list)
    packs = list(packs)
    for pack in packs:
        for index, at in catalog.survey.fragments.get(catalog.line, {}).get(pack.id, {}).items():
            for name in at:
                work[name].append((pack, index))
    answers = catalog.places.ask(
        lambda store: [_problem(catalog, store, pack, index, tell) for pack, index in work[store.name]],
        list(work),
        patience_s=READING_S,
    )
    problems = {
        (pack.id, index, name): problem
        for name, found in answers.given.items()
        for (pack, index), problem in zip(work[name], found, strict=True)
    }
    return {pack.id: _health(pack, problems) for pack in packs}


def _health(pack: Pack, problems: Mapping[tuple[PackId, int, str], str | None]) -> Health:
    good, damaged = defaultdict[int, list[str]](list), {}
    for (each, index, name), problem in problems.items():
        if each == pack.id and problem is None:
            good[index].append(name)
        elif each == pack.id:
            damaged[index, name] = str(problem)
    return Health(Holders(pack, dict(sorted(good.items()))), damaged)


def _problem(catalog: Catalog, store: FragmentStore, pack: Pack, index: int, tell: Progress) -> str | None:
    """What is wrong with a block at a place, or None."""
    key = fragment_key(catalog.line, pack.id, index)
    for stripe in range(0, pack.layout.stripes, STRIPES_PER_READ):
        count = min(STRIPES_PER_READ, pack.layout.stripes - stripe)
        try:
            content = store.get(key, *pack.layout.records(stripe, count))
            split_cells(content, catalog.line, pack, catalog.keys, index, stripe, count)
        except (OSError, ValueError) as error:
            return str(error)
        tell(len(content))
    return None


def bad_manifests(catalog: Catalog, manifests: Iterable[Manifest]) -> dict[str, list[PackId]]:
    """By place that answers, the manifests that it does not have, or not as they were written."""
    wanted = [manifest.id for manifest in manifests]

    def check(store: FragmentStore) -> list[PackId]:
        return [pack for pack in wanted if not _has_manifest(catalog, store.name, pack)]

    return {name: bad for name, bad in catalog.places.ask(check).given.items() if bad}


def _has_manifest(catalog: Catalog, name: str, pack: PackId) -> bool:
    try:
        catalog.manifest_at(name, pack)
    except (FileNotFoundError, StateError):
        return False
    return True


@dataclass(slots=True)
class Repaired:
    """What was made anew, and what could not be."""

    blocks: dict[PackId, dict[int, str]] = field(default_factory=dict)
    """Places by pack and index."""
    manifests: dict[str, list[PackId]] = field(default_factory=dict)
    """By place."""
    failed: list[str] = field(default_factory=list)


def repair(catalog: Catalog, health: dict[PackId, Health], tell: Progress = lambda count: None) -> Repaired:
    """Make missing and damaged blocks and manifests anew. What fails does not keep the rest from being repaired."""
    made = Repaired()
    for each in health.values():
        if each.missing and each.spare >= 0:
            try:
                made.blocks[each.pack.id] = _repair_pack(catalog, each, tell)
            except (StateError, OSError) as error:
                made.failed.append(str(error))
    now = Catalog(catalog.places, catalog.line, catalog.keys)  # a running writer may have dropped some meanwhile
    manifests = {manifest.id: dump(manifest, catalog.keys) for manifest in now.manifests()}
    made.manifests = bad_manifests(now, now.manifests())

    def write(store: FragmentStore) -> None:
        for pack in made.manifests[store.name]:
            store.put(manifest_key(catalog.line, pack), [manifests[pack]])

    answers = catalog.places.ask(write, list(made.manifests))
    made.failed += [f"{name}: {why}" for name, why in answers.silent.items()]
    return made


def lost(catalog: Catalog, health: dict[PackId, Health]) -> list[str]:
    """The packs that cannot be repaired, in words."""
    return [catalog.lack(each.good, each.complaint) for each in health.values() if each.spare < 0]


def _repair_pack(catalog: Catalog, health: Health, tell: Progress) -> dict[int, str]:
    pack, places = health.pack, catalog.places
    hosts = {name: host for name, host in places.hosts.items() if name not in catalog.survey.silent}
    held = Counter(name for names in health.good.places.values() for name in names)
    placed = place(health.missing, hosts, held)
    uploads = {
        index: Upload(
            places.stores[name],
            fragment_key(catalog.line, pack.id, index),
            catalog.keys.tagger(catalog.line, pack.id, index),
        )
        for index, name in placed.items()
    }
    try:
        with StripeReader(places, catalog.line, health.good, catalog.keys, range(pack.layout.stripes)) as reader:
            for _, cells in reader.stripes():
                for index, cell in pack.code.rebuild(cells, health.missing).items():
                    uploads[index].send(cell)
                    tell(len(cell))
    except BaseException:
        for upload in uploads.values():
            upload.abandon()
        raise
    finish_all(uploads.values())
    if failed := {upload.place: upload.error for upload in uploads.values() if upload.error is not None}:
        raise StateError(f"pack {pack.id}: " + "; ".join(f"{name}: {why}" for name, why in failed.items()))
    for index, name in health.damaged:
        if placed.get(index) != name:
            with suppress(OSError):  # a damaged block that stays is only in the way
                places.stores[name].delete(fragment_key(catalog.line, pack.id, index))
    return placed
