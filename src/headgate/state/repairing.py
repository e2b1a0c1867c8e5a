"""Reading every block there is, and making lost ones anew at other places."""

from __future__ import annotations

from collections.abc import Iterable
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


@dataclass(slots=True)
class Health:
    """What reading all blocks of a pack showed."""

    pack: Pack
    good: dict[int, list[str]] = field(default_factory=dict)
    """Places by index."""
    damaged: dict[tuple[int, str], str] = field(default_factory=dict)
    """Why, by (index, place)."""

    @property
    def missing(self) -> list[int]:
        return [index for index in range(self.pack.code.blocks) if index not in self.good] if self.pack.length else []

    @property
    def spare(self) -> int:
        return len(self.good) - self.pack.raw if self.pack.length else self.pack.check

    def complaint(self, index: int) -> str | None:
        """What was wrong with a block, at the places that had it."""
        found = [f"block {index} at {name}: {why}" for (each, name), why in self.damaged.items() if each == index]
        return "; ".join(found) or None


def packs_of(manifests: Iterable[Manifest]) -> list[Pack]:
    """Every pack once."""
    return list({pack.id: pack for manifest in manifests for pack in manifest.packs}.values())


def examine(catalog: Catalog, packs: Iterable[Pack], tell: Progress = lambda count: None) -> dict[PackId, Health]:
    """Read every block at every place, the places in parallel, and check all tags."""
    health = {pack.id: Health(pack) for pack in packs}
    work: dict[str, list[tuple[Holders, int]]] = {name: [] for name in catalog.places.stores}
    for each in health.values():
        found = catalog.survey.fragments.get(catalog.line, {}).get(each.pack.id, {})
        for index, at in found.items():
            for name in at:
                work[name].append((Holders(each.pack, {index: [name]}), index))
    read = {name: [(holders.pack.id, index) for holders, index in items] for name, items in work.items()}
    answers = catalog.places.ask(
        lambda store: [_problem(catalog, store.name, *item, tell) for item in work[store.name]],
        [name for name in work if work[name]],
        patience_s=READING_S,
    )
    for name, problems in answers.given.items():
        for (pack, index), problem in zip(read[name], problems, strict=True):
            if problem is None:
                health[pack].good.setdefault(index, []).append(name)
            else:
                health[pack].damaged[index, name] = problem
    return health


def _problem(catalog: Catalog, name: str, holders: Holders, index: int, tell: Progress) -> str | None:
    """What is wrong with a block at a place, or None."""
    layout, store = holders.pack.layout, catalog.places.stores[name]
    for stripe in range(0, layout.stripes, STRIPES_PER_READ):
        count = min(STRIPES_PER_READ, layout.stripes - stripe)
        try:
            content = store.get(fragment_key(catalog.line, holders.pack.id, index), *layout.records(stripe, count))
            split_cells(content, catalog.line, holders.pack, catalog.keys, index, stripe, count)
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
    return [catalog.lack(Holders(each.pack, each.good), each.complaint) for each in health.values() if each.spare < 0]


def _repair_pack(catalog: Catalog, health: Health, tell: Progress) -> dict[int, str]:
    pack, places = health.pack, catalog.places
    hosts = {name: host for name, host in places.hosts.items() if name not in catalog.survey.silent}
    held: dict[str, int] = {}
    for names in health.good.values():
        for name in names:
            held[name] = held.get(name, 0) + 1
    placed = place(health.missing, hosts, held)
    uploads = {
        index: Upload(
            places.stores[name],
            fragment_key(catalog.line, pack.id, index),
            catalog.keys.tagger(catalog.line, pack.id, index),
        )
        for index, name in placed.items()
    }
    holders = Holders(pack, dict(sorted(health.good.items())))
    try:
        with StripeReader(places, catalog.line, holders, catalog.keys, range(pack.layout.stripes)) as reader:
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
