"""Lost and damaged blocks, made anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.state.catalog import Catalog
from headgate.state.folder import LocalFolder
from headgate.state.keys import PackId
from headgate.state.places import Places
from headgate.state.repairing import Health, bad_manifests, examine, packs_of, repair
from tests.backups import KEYS, LINE, restored, saver
from tests.checkpoints import FlakyStore, GrowingCheckpoint, needed_of


class TestRepair:
    def test_lost_and_damaged_blocks_are_made_anew(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        saver(places[0]).save(LocalFolder(checkpoint.root))
        places[1][0].wipe()
        damaged = places[1][3]
        damaged.damage(next(key for key in damaged.find() if key.endswith(".fragment")), 50)
        _repair(places[0])
        health = _examine(places[0])
        assert all(not each.missing and not each.damaged for each in health.values())
        for store in (places[1][1], places[1][2]):
            store.down = True
        assert restored(places[0], tmp_path) == needed_of(checkpoint)

    def test_damaged_manifests_are_written_anew(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        saver(places[0]).save(LocalFolder(checkpoint.root))
        for store in places[1][:4]:
            store.damage(next(key for key in store.find() if key.endswith("manifest")), 30)
        catalog = Catalog(places[0], LINE, KEYS)
        assert len(bad_manifests(catalog, catalog.manifests())) == 4
        _repair(places[0])
        assert not bad_manifests(catalog, catalog.manifests())

    def test_a_new_place_takes_over(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        saver(places[0]).save(LocalFolder(checkpoint.root))
        spare = FlakyStore("spare")
        moved = Places([*places[1][1:], spare])
        _repair(moved)
        assert [key for key in spare.find() if key.endswith(".fragment")]
        assert [key for key in spare.find() if key.endswith("manifest")]
        for store in places[1][1:3]:
            store.down = True
        assert restored(moved, tmp_path) == needed_of(checkpoint)

    def test_the_next_backup_mends_what_places_have_lost(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        monkeypatch.setattr("headgate.state.saving.REST_S", 0.0)
        writer = saver(places[0])
        places[1][0].puts_left = 0
        saved = writer.save(LocalFolder(checkpoint.root))
        assert saved is not None and saved.stored == 5 and "no space left" in saved.failed["place-0"]
        places[1][0].puts_left = None
        checkpoint.run_batch()
        writer.save(LocalFolder(checkpoint.root))
        places[1][1].down = places[1][2].down = True
        assert restored(places[0], tmp_path) == needed_of(checkpoint)


def _examine(places: Places) -> dict[PackId, Health]:
    catalog = Catalog(places, LINE, KEYS)
    return examine(catalog, packs_of(catalog.manifests()))


def _repair(places: Places) -> None:
    catalog = Catalog(places, LINE, KEYS)
    assert not repair(catalog, examine(catalog, packs_of(catalog.manifests()))).failed
