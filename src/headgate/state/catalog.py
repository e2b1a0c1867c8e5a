"""What backups there are, and how whole each of them is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.errors import BadParameter, StateError
from headgate.state.fence import age, is_valid, read_fences
from headgate.state.keys import Line, PackId, manifest_key
from headgate.state.manifest import Manifest, Pack, parse
from headgate.state.places import Places, Survey
from headgate.state.tags import Keys


class TooFewBlocks(StateError):
    """Fewer blocks are left than a pack needs."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Where the fragments of a pack are: by index, the places that have it in full length."""

    pack: Pack
    places: dict[int, list[str]]

    @property
    def missing(self) -> list[int]:
        return [index for index in range(self.pack.code.blocks) if index not in self.places] if self.pack.length else []

    @property
    def spare(self) -> int:
        """How many more may be lost; below 0 it cannot be restored."""
        return len(self.places) - self.pack.raw if self.pack.length else self.pack.check


class Catalog:
    """The backups of one query, as a survey of the places found them."""

    def __init__(self, places: Places, line: Line, keys: Keys, survey: Survey | None = None) -> None:
        self.places, self.line, self.keys = places, line, keys
        self.survey = survey or places.survey(line.prefix)
        self.damaged: dict[PackId, str] = {}
        """Manifests that cannot be read anywhere, and why."""
        self._read: dict[PackId, Manifest] = {}
        self.ids = self._valid()
        """The backups that count, the newest first."""

    def manifests(self) -> list[Manifest]:
        """All that can be read, the newest first."""
        return [found for pack in self.ids if (found := self.manifest(pack)) is not None]

    def _valid(self) -> list[PackId]:
        """Those that no later writer has disowned, and of these what the newest that can be read says were kept."""
        fences = read_fences(self.places, self.line, self.survey, self.keys)
        packs = self.survey.manifests.get(self.line, {})
        found = sorted((pack for pack in packs if is_valid(pack, fences)), key=age, reverse=True)
        for number, pack in enumerate(found):
            if (newest := self.manifest(pack)) is not None:
                return [*found[: number + 1], *(each for each in found[number + 1 :] if each in newest.kept)]
        return found

    def manifest(self, pack: PackId) -> Manifest | None:
        """From the first place that has it undamaged."""
        if pack in self._read:
            return self._read[pack]
        reasons = []
        for name in self.survey.manifests[self.line][pack]:
            try:
                self._read[pack] = self.manifest_at(name, pack)
                return self._read[pack]
            except (OSError, StateError) as error:
                reasons.append(str(error))
        self.damaged[pack] = "; ".join(reasons)
        return None

    def manifest_at(self, name: str, pack: PackId) -> Manifest:
        content = self.places.stores[name].get(manifest_key(self.line, pack))
        return parse(content, self.keys, self.line, pack, name)

    def holders(self, pack: Pack) -> Holders:
        return Holders(pack, self.survey.holders(self.line, pack.id, pack.layout.fragment_bytes))

    def spare(self, manifest: Manifest) -> int:
        """How many more blocks may be lost before the backup is."""
        return min((self.holders(pack).spare for pack in manifest.packs), default=0)

    def choose(self, batch: int | None = None) -> Manifest:
        """The newest backup, or that of a batch; an error says what is there and what is missing."""
        readable = self.manifests()
        if not readable:
            raise StateError(f"{self.line}: no backup can be read; {self._why_nothing()}")
        if batch is None:
            chosen = readable[0]
            if self.damaged and age(newest := max(self.damaged, key=age)) > age(chosen.id):
                raise StateError(
                    f"{self.line}: the newest backup (batch {newest.batch}) cannot be read: {self.damaged[newest]};"
                    f" the one of batch {chosen.batch} can: ask for it with batch={chosen.batch}"
                )
        else:
            known = {manifest.batch: manifest for manifest in reversed(readable)}
            if batch not in known:
                there = ", ".join(str(number) for number in sorted(known))
                raise BadParameter("batch", batch, f"there is no backup of it for {self.line}", f"there are {there}")
            chosen = known[batch]
        self._check_whole(chosen, readable)
        return chosen

    def _check_whole(self, manifest: Manifest, others: list[Manifest]) -> None:
        for pack in manifest.packs:
            holders = self.holders(pack)
            if holders.spare < 0:
                whole = [str(other.batch) for other in others if self.spare(other) >= 0]
                remedy = f"whole backups: batch {', '.join(whole)}" if whole else "no other backup is whole either"
                raise TooFewBlocks(f"{self.line}, batch {manifest.batch}: {self.lack(holders)}; {remedy}")

    def lack(self, holders: Holders, damaged: Callable[[int], str | None] = lambda index: None) -> str:
        """What is missing of a pack, in words."""
        pack = holders.pack
        words = [damaged(index) or f"block {index} is at no place that answers" for index in holders.missing]
        silent = [f"{name} does not answer ({why})" for name, why in self.survey.silent.items()]
        return (
            f"{len(holders.places)} of {pack.code.blocks} blocks of pack {pack.id} are left, {pack.raw} are needed: "
            + "; ".join(words + silent)
        )

    def _why_nothing(self) -> str:
        if self.damaged:
            return "; ".join(self.damaged.values())
        if self.survey.silent:
            return "; ".join(f"{name} does not answer ({why})" for name, why in self.survey.silent.items())
        return f"none of the {len(self.places)} places has one under this name; see: headgate state list"
