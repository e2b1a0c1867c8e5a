"""Backups of a growing checkpoint, at places that fail."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headgate.errors import StateError
from headgate.state.catalog import Catalog
from headgate.state.code import Code
from headgate.state.fence import TooFewPlaces
from headgate.state.folder import LocalFolder
from headgate.state.places import Places
from headgate.state.saving import Saver
from tests.backups import CELL, KEYS, LINE, restored, saver
from tests.checkpoints import FlakyStore, GrowingCheckpoint, flaky_places, needed_of


class TestSaving:
    def _past_a_snapshot(self, checkpoint: GrowingCheckpoint) -> None:
        """After a whole state is written there is little left of what was saved before it."""
        checkpoint.run_batch()
        checkpoint.run_batch()

    def test_any_losses_up_to_c_are_survived(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        saved = saver(places[0]).save(LocalFolder(checkpoint.root))
        assert saved is not None and saved.stored == 6 and not saved.failed
        for one in range(6):
            for other in range(one):
                places[1][one].down = places[1][other].down = True
                assert restored(places[0], tmp_path) == needed_of(checkpoint)
                places[1][one].down = places[1][other].down = False

    def test_files_that_did_not_change_are_not_coded_again(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        self._past_a_snapshot(checkpoint)
        writer = saver(places[0])
        first = writer.save(LocalFolder(checkpoint.root))
        checkpoint.run_batch()
        second = writer.save(LocalFolder(checkpoint.root))
        assert first is not None and second is not None
        new = {path for path in needed_of(checkpoint)} - {file.path for file in first.manifest.files}
        assert {file.path for file in second.manifest.files if file.pack == second.manifest.id} == new
        assert second.manifest.own_bytes < second.manifest.bytes
        assert restored(places[0], tmp_path) == needed_of(checkpoint)

    def test_a_new_writer_goes_on_from_what_is_stored(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        self._past_a_snapshot(checkpoint)
        saver(places[0]).save(LocalFolder(checkpoint.root))
        checkpoint.run_batch()
        second = saver(places[0]).save(LocalFolder(checkpoint.root))
        assert second is not None
        assert 0 < second.manifest.own_bytes < second.manifest.bytes

    def test_nothing_new_is_not_saved(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        writer = saver(places[0])
        assert writer.save(LocalFolder(checkpoint.root)) is not None
        assert writer.save(LocalFolder(checkpoint.root)) is None

    def test_the_last_k_are_kept_and_nothing_else(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        writer, wanted = saver(places[0], keep=2), {}
        for _ in range(20):
            checkpoint.run_batch()
            assert writer.save(LocalFolder(checkpoint.root)) is not None
            wanted[checkpoint.batch] = needed_of(checkpoint)
        catalog = Catalog(places[0], LINE, KEYS)
        assert [manifest.batch for manifest in catalog.manifests()] == [22, 21]
        used = {pack.id for manifest in catalog.manifests() for pack in manifest.packs}
        assert set(catalog.survey.fragments[LINE]) == used
        for batch in (21, 22):
            assert restored(places[0], tmp_path, batch) == wanted[batch]

    @pytest.mark.parametrize("puts", range(4))
    def test_an_interrupted_backup_leaves_the_previous_one(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path, puts: int
    ) -> None:
        """With one put left a place takes its fragment but no manifest, and so on."""
        writer = saver(places[0])
        writer.save(LocalFolder(checkpoint.root))
        before = needed_of(checkpoint)
        checkpoint.run_batch()
        for store in places[1][:4]:
            store.puts_left = puts
        if puts < 2:
            with pytest.raises(StateError):
                writer.save(LocalFolder(checkpoint.root))
            assert restored(places[0], tmp_path) == before
        else:
            assert writer.save(LocalFolder(checkpoint.root)) is not None
            assert restored(places[0], tmp_path) == needed_of(checkpoint)
        for store in places[1]:
            store.puts_left = None
        again = saver(places[0]).save(LocalFolder(checkpoint.root))
        assert (again is None) == (puts >= 2)
        assert restored(places[0], tmp_path) == needed_of(checkpoint)

    def test_left_overs_of_interrupted_backups_are_removed(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        writer = saver(places[0])
        for store in places[1][:4]:
            store.puts_left = 1
        with pytest.raises(StateError):
            writer.save(LocalFolder(checkpoint.root))
        for store in places[1]:
            store.puts_left = None
        assert places[0].survey().fragments[LINE]
        saver(places[0])
        assert not places[0].survey().fragments.get(LINE)

    def test_a_place_that_is_down_is_done_without(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        places[1][2].down = True
        saved = saver(places[0]).save(LocalFolder(checkpoint.root))
        assert saved is not None and saved.stored == 5 and saved.bears == 1
        assert "place-2 is down" in saved.failed["place-2"]
        places[1][4].down = True
        assert restored(places[0], tmp_path) == needed_of(checkpoint)

    def test_without_a_majority_nothing_is_saved(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        for store in places[1][:3]:
            store.down = True
        with pytest.raises(TooFewPlaces, match="3 of 6 places answer, 4 must"):
            saver(places[0])

    def test_up_to_c_places_may_be_lost_again_and_again(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        """A running writer notices what places have lost, and its next backup bears c losses again."""
        self._past_a_snapshot(checkpoint)
        writer = saver(places[0])
        for turn in range(4):
            checkpoint.run_batch()
            saved = writer.save(LocalFolder(checkpoint.root))
            assert saved is not None and saved.bears == 2
            for number in (turn, turn + 1):
                places[1][number].wipe()
            assert restored(places[0], tmp_path) == needed_of(checkpoint)

    def test_a_place_that_was_away_leaves_no_weak_spot(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        self._past_a_snapshot(checkpoint)
        writer = saver(places[0])
        places[1][2].down = True
        writer.save(LocalFolder(checkpoint.root))
        places[1][2].down = False
        checkpoint.run_batch()
        saved = writer.save(LocalFolder(checkpoint.root))
        assert saved is not None and saved.bears == 2
        for one in range(6):
            for other in range(one):
                places[1][one].down = places[1][other].down = True
                assert restored(places[0], tmp_path) == needed_of(checkpoint)
                places[1][one].down = places[1][other].down = False

    def test_failed_tries_leave_nothing_behind(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        writer = saver(places[0])
        for store in places[1][:2]:
            store.puts_left = 0
        for _ in range(4):
            with pytest.raises(StateError, match="no space left"):
                writer.save(LocalFolder(checkpoint.root))
        assert sum(key.endswith(".fragment") for store in places[1] for key in store.find()) <= 6

    def test_a_place_that_takes_nothing_is_left_alone(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        self._past_a_snapshot(checkpoint)
        writer = saver(places[0])
        places[1][0].puts_left = 0
        writer.save(LocalFolder(checkpoint.root))
        checkpoint.run_batch()
        second = writer.save(LocalFolder(checkpoint.root))
        assert second is not None
        assert second.manifest.own_bytes < second.manifest.bytes / 2

    def test_another_history_with_the_same_number_is_saved(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        saver(places[0]).save(LocalFolder(checkpoint.root))
        other = GrowingCheckpoint(tmp_path / "other", seed=99)
        for _ in range(3):
            other.run_batch()
        assert other.batch == checkpoint.batch
        assert saver(places[0]).save(LocalFolder(other.root)) is not None
        assert restored(places[0], tmp_path) == needed_of(other)

    def test_a_query_that_went_back_is_saved_under_its_lower_number(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        for _ in range(5):
            checkpoint.run_batch()
        saver(places[0]).save(LocalFolder(checkpoint.root))
        other = GrowingCheckpoint(tmp_path / "other", seed=99)
        other.run_batch()
        writer = saver(places[0])
        writer.save(LocalFolder(other.root))
        catalog = Catalog(places[0], LINE, KEYS)
        assert [manifest.batch for manifest in catalog.manifests()] == [0, 7]
        assert restored(places[0], tmp_path) == needed_of(other)

    def test_few_places_hold_several_blocks_each(self, checkpoint: GrowingCheckpoint, tmp_path: Path) -> None:
        places, stores = flaky_places(3)
        saved = Saver(places, LINE, Code(4, 2), KEYS, cell=CELL).save(LocalFolder(checkpoint.root))
        assert saved is not None and (saved.stored, saved.bears) == (6, 1)
        stores[1].down = True
        assert restored(places, tmp_path) == needed_of(checkpoint)

    def test_what_a_place_could_not_delete_is_not_listed_again(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        writer = saver(places[0], keep=1)
        writer.save(LocalFolder(checkpoint.root))
        places[1][5].down = True
        checkpoint.run_batch()
        writer.save(LocalFolder(checkpoint.root))
        places[1][5].down = False
        assert [manifest.batch for manifest in Catalog(places[0], LINE, KEYS).manifests()] == [3]

    def test_a_place_that_hangs_is_asked_once(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        let_go, before = threading.Event(), threading.active_count()
        hanging = places[1][0]
        monkeypatch.setattr(hanging, "find", lambda prefix="": (let_go.wait(), {})[1])
        try:
            answers = [places[0].ask(lambda store: store.find(), patience_s=0.2) for _ in range(5)]
            assert all(list(each.silent) == ["place-0"] and len(each.given) == 5 for each in answers)
            assert "earlier question" in answers[-1].silent["place-0"]
            assert threading.active_count() <= before + 1
        finally:
            let_go.set()

    def test_a_file_that_changes_while_it_is_read_starts_the_copy_again(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        class Moving(LocalFolder):
            opened = 0

            def open(self, path: str):
                self.opened += 1
                if self.opened == 5:
                    for _ in range(8):
                        checkpoint.run_batch()
                return super().open(path)

        saved = saver(places[0]).save(Moving(checkpoint.root))
        assert saved is not None and saved.manifest.batch == checkpoint.batch
        assert restored(places[0], tmp_path) == needed_of(checkpoint)
