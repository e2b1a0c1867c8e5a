"""Saving, listing, restoring and repairing backups of a growing checkpoint, at places that fail."""

from __future__ import annotations

import itertools
import json
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import fsspec
import pytest

from headgate.errors import BadParameter, StateError
from headgate.state.backup import Backup
from headgate.state.catalog import Catalog, TooFewBlocks
from headgate.state.code import Code
from headgate.state.fence import FencedOff, TooFewPlaces
from headgate.state.folder import LocalFolder, Seen, open_folder
from headgate.state.keys import Line, PackId, manifest_key, parse_key
from headgate.state.manifest import File, Manifest, Pack, dump, parse
from headgate.state.places import Places
from headgate.state.relocating import relocated
from headgate.state.repairing import Health, bad_manifests, examine, packs_of, repair
from headgate.state.restoring import restore
from headgate.state.saving import Saver
from headgate.state.snapshot import Gone, look
from headgate.state.tags import Keys
from tests.checkpoints import FlakyStore, GrowingCheckpoint, contents, flaky_places

LINE, KEYS, CODE, CELL = Line("shop", "orders/eu 1"), Keys("a secret key"), Code(4, 2), 64


@pytest.fixture
def checkpoint(tmp_path: Path) -> GrowingCheckpoint:
    made = GrowingCheckpoint(tmp_path / "checkpoint")
    for _ in range(3):
        made.run_batch()
    return made


@pytest.fixture
def places() -> tuple[Places, list[FlakyStore]]:
    return flaky_places(6)


def saver(places: Places, keys: Keys = KEYS, keep: int = 3) -> Saver:
    return Saver(places, LINE, CODE, keys, keep, cell=CELL)


def restored(places: Places, tmp_path: Path, batch: int | None = None, keys: Keys = KEYS) -> dict[str, bytes]:
    catalog = Catalog(places, LINE, keys)
    into = tmp_path / "restored"
    shutil.rmtree(into, ignore_errors=True)
    restore(catalog, catalog.choose(batch), str(into))
    return contents(into)


def expected(checkpoint: GrowingCheckpoint) -> dict[str, bytes]:
    snapshot = look(LocalFolder(checkpoint.root))
    assert snapshot is not None
    return {path: content for path, content in checkpoint.content().items() if path in snapshot.files}


class TestSnapshot:
    def test_nothing_before_the_first_commit(self, tmp_path: Path) -> None:
        made = GrowingCheckpoint(tmp_path / "c")
        made.run_batch(committed=False)
        assert look(LocalFolder(made.root)) is None

    def test_a_batch_that_is_not_committed_is_not_in_it(self, checkpoint: GrowingCheckpoint) -> None:
        checkpoint.run_batch(committed=False)
        snapshot = look(LocalFolder(checkpoint.root))
        assert snapshot is not None
        assert snapshot.batch == 2
        assert "state/0/0/4.delta" not in snapshot.files
        assert "offsets/3" in snapshot.files  # what it will read is fixed already
        assert {"metadata", "commits/2", "offsets/2", "sources/0/0", "state/0/1/3.delta"} <= set(snapshot.files)

    def test_only_what_the_state_needs(self, checkpoint: GrowingCheckpoint) -> None:
        for _ in range(3):
            checkpoint.run_batch()
        snapshot = look(LocalFolder(checkpoint.root))
        assert snapshot is not None
        state = {path for path in snapshot.files if path.startswith("state/0/0/")}
        assert state == {"state/0/0/4.snapshot", "state/0/0/5.delta", "state/0/0/6.delta"}

    def test_a_version_that_vanished_is_noticed(self, checkpoint: GrowingCheckpoint) -> None:
        (checkpoint.root / "state/0/0/2.delta").unlink()
        with pytest.raises(Gone, match="version 2 is missing"):
            look(LocalFolder(checkpoint.root))

    def test_offsets_are_taken_only_with_what_they_need(self, checkpoint: GrowingCheckpoint) -> None:
        """A batch that begins while the folder is being listed: its sources' log may have been passed already."""

        class SlowWalk(LocalFolder):
            def walk(self) -> dict[str, Seen]:
                before = super().walk()
                checkpoint.run_batch(committed=False)
                after = super().walk()
                return {path: seen for path, seen in after.items() if path in before or not path.startswith("sources")}

        snapshot = look(SlowWalk(checkpoint.root))
        assert snapshot is not None
        assert "sources/0/3" not in snapshot.files
        assert "offsets/3" not in snapshot.files

    def test_sources_number_their_logs_as_they_like(self, checkpoint: GrowingCheckpoint) -> None:
        (checkpoint.root / "sources/0/9").write_text("ahead of the batches, after a crash")
        snapshot = look(LocalFolder(checkpoint.root))
        assert snapshot is not None
        assert "sources/0/9" in snapshot.files

    def test_hidden_and_temporary_files_stay_behind(self, checkpoint: GrowingCheckpoint) -> None:
        for name in ("commits/.2.crc", "state/0/0/.4.delta.abc.tmp", "offsets/.9.tmp", "headgate/model.json.7.part"):
            (checkpoint.root / name).parent.mkdir(exist_ok=True)
            (checkpoint.root / name).write_text("x")
        snapshot = look(LocalFolder(checkpoint.root))
        assert snapshot is not None
        assert not [path for path in snapshot.files if "tmp" in path or "crc" in path or "part" in path]

    def test_a_backup_of_a_checkpoint_that_keeps_breaking_fails(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        (checkpoint.root / "state/0/0/2.delta").unlink()
        with pytest.raises(StateError, match=r"changed 5 times.*version 2 is missing"):
            saver(places[0]).save(LocalFolder(checkpoint.root))


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
                assert restored(places[0], tmp_path) == expected(checkpoint)
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
        new = {path for path in expected(checkpoint)} - {file.path for file in first.manifest.files}
        assert {file.path for file in second.manifest.files if file.pack == second.manifest.id} == new
        assert second.manifest.own_bytes < second.manifest.bytes
        assert restored(places[0], tmp_path) == expected(checkpoint)

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
            wanted[checkpoint.batch] = expected(checkpoint)
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
        before = expected(checkpoint)
        checkpoint.run_batch()
        for store in places[1][:4]:
            store.puts_left = puts
        if puts < 2:
            with pytest.raises(StateError):
                writer.save(LocalFolder(checkpoint.root))
            assert restored(places[0], tmp_path) == before
        else:
            assert writer.save(LocalFolder(checkpoint.root)) is not None
            assert restored(places[0], tmp_path) == expected(checkpoint)
        for store in places[1]:
            store.puts_left = None
        again = saver(places[0]).save(LocalFolder(checkpoint.root))
        assert (again is None) == (puts >= 2)
        assert restored(places[0], tmp_path) == expected(checkpoint)

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
        assert restored(places[0], tmp_path) == expected(checkpoint)

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
            assert restored(places[0], tmp_path) == expected(checkpoint)

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
                assert restored(places[0], tmp_path) == expected(checkpoint)
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
        assert restored(places[0], tmp_path) == expected(other)

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
        assert restored(places[0], tmp_path) == expected(other)

    def test_few_places_hold_several_blocks_each(self, checkpoint: GrowingCheckpoint, tmp_path: Path) -> None:
        places, stores = flaky_places(3)
        saved = Saver(places, LINE, Code(4, 2), KEYS, cell=CELL).save(LocalFolder(checkpoint.root))
        assert saved is not None and (saved.stored, saved.bears) == (6, 1)
        stores[1].down = True
        assert restored(places, tmp_path) == expected(checkpoint)

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
        monkeypatch.setattr("headgate.state.places.PATIENCE_S", 0.2)
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
        assert restored(places[0], tmp_path) == expected(checkpoint)


class TestFencing:
    def test_a_later_writer_shuts_out_an_earlier_one(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        first = saver(places[0])
        first.save(LocalFolder(checkpoint.root))
        second = saver(places[0])
        checkpoint.run_batch()
        with pytest.raises(FencedOff, match="another writer"):
            first.save(LocalFolder(checkpoint.root))
        assert second.save(LocalFolder(checkpoint.root)) is not None
        assert restored(places[0], tmp_path) == expected(checkpoint)

    def test_what_a_shut_out_writer_completes_too_late_counts_for_nobody(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = saver(places[0])
        first.save(LocalFolder(checkpoint.root))
        saver(places[0])
        checkpoint.run_batch()
        with monkeypatch.context() as before, pytest.raises(FencedOff):
            looks = iter([True, True, False])  # it has looked just before the other one came, and looks again later
            before.setattr(
                "headgate.state.saving.guard",
                lambda fence, places, line, keys: places.survey(line.prefix) if next(looks) else _shut_out(),
            )
            first.save(LocalFolder(checkpoint.root))
        assert [pack.batch for pack in places[0].survey().manifests[LINE]] == [2, 3]
        catalog = Catalog(places[0], LINE, KEYS)
        assert [manifest.batch for manifest in catalog.manifests()] == [2]
        saver(places[0])
        assert [pack.batch for pack in places[0].survey().manifests[LINE]] == [2]

    def test_taking_over_never_leaves_nothing(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        """With keep=1: the old writer completes a backup while the new one takes over, at every moment."""
        first = saver(places[0], keep=1)
        first.save(LocalFolder(checkpoint.root))
        checkpoint.run_batch()
        asked = Places.ask
        for moment in range(1, 8):
            calls = itertools.count(1)

            def ask(
                self: Places, *args: Any, old: Saver = first, calls: Any = calls, at: int = moment, **more: Any
            ) -> Any:
                if next(calls) == at:
                    monkeypatch.setattr(Places, "ask", asked)
                    with suppress(FencedOff):
                        old.save(LocalFolder(checkpoint.root))
                return asked(self, *args, **more)

            monkeypatch.setattr(Places, "ask", ask)
            first = saver(places[0], keep=1)
            monkeypatch.setattr(Places, "ask", asked)
            assert restored(places[0], tmp_path)
            checkpoint.run_batch()


class TestRefusals:
    def test_too_few_blocks_are_named(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        saver(places[0]).save(LocalFolder(checkpoint.root))
        for store in places[1][:3]:
            store.down = True
        with pytest.raises(TooFewBlocks, match=r"3 of 6 blocks .* are left, 4 are needed: block .* place-0 does not"):
            restored(places[0], tmp_path)
        assert not (tmp_path / "restored").exists()

    def test_an_older_backup_is_offered_when_the_newest_is_lost(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        writer = saver(places[0])
        writer.save(LocalFolder(checkpoint.root))
        before = expected(checkpoint)
        checkpoint.run_batch()
        saved = writer.save(LocalFolder(checkpoint.root))
        assert saved is not None
        for store in places[1][:3]:
            for key in [key for key in store.find() if str(saved.manifest.id) in key and "fragment" in key]:
                store.delete(key)
        with pytest.raises(TooFewBlocks, match="whole backups: batch 2"):
            restored(places[0], tmp_path)
        assert restored(places[0], tmp_path, batch=2) == before

    def test_a_damaged_block_counts_as_lost(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        saver(places[0]).save(LocalFolder(checkpoint.root))
        for number, store in enumerate(places[1][:2]):
            key = next(key for key in store.find() if key.endswith(".fragment"))
            store.damage(key, 100 * number)
        assert restored(places[0], tmp_path) == expected(checkpoint)
        store = places[1][2]
        store.damage(next(key for key in store.find() if key.endswith(".fragment")), 7)
        with pytest.raises(TooFewBlocks, match="stripe 0 is damaged"):
            restored(places[0], tmp_path)
        assert not (tmp_path / "restored").exists()

    def test_blocks_of_another_place_in_the_pack_are_refused(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        saver(places[0]).save(LocalFolder(checkpoint.root))
        keys = {store: next(key for key in store.find() if key.endswith(".fragment")) for store in places[1][:2]}
        one, other = (store.get(key) for store, key in keys.items())
        for (store, key), content in zip(keys.items(), (other, one), strict=True):
            store.put(key, [content])
        catalog = Catalog(places[0], LINE, KEYS)
        health = examine(catalog, packs_of(catalog.manifests()))
        assert [len(each.missing) for each in health.values()] == [2]

    def test_a_fence_counts_only_where_it_was_raised(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        """Copied under another number, or made up, it must not shut anybody out, nor disown a backup."""
        writer = saver(places[0])
        writer.save(LocalFolder(checkpoint.root))
        store = places[1][0]
        fence = next(key for key in store.find() if "/fence/" in key)
        store.put(f"{LINE.prefix}/fence/00000099-ffff", [store.get(fence)])
        store.put(f"{LINE.prefix}/fence/99999999-0", [b"junk"])
        checkpoint.run_batch()
        assert writer.save(LocalFolder(checkpoint.root)) is not None
        checkpoint.run_batch()
        assert saver(places[0]).save(LocalFolder(checkpoint.root)) is not None
        assert restored(places[0], tmp_path) == expected(checkpoint)

    def test_a_manifest_counts_only_where_it_was_written(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        saved = saver(places[0]).save(LocalFolder(checkpoint.root))
        assert saved is not None
        other = Line("shop", "payments")
        newer = PackId(99, saved.manifest.id.epoch, saved.manifest.id.token)
        for store in places[1]:
            for key in store.find():
                store.put(key.replace(LINE.prefix, other.prefix), [store.get(key)])
            store.put(manifest_key(LINE, newer), [store.get(manifest_key(LINE, saved.manifest.id))])
        with pytest.raises(StateError, match="put in the place of shop/payments"):
            Catalog(places[0], other, KEYS).choose()
        with pytest.raises(StateError, match=r"batch 99.* put in the place of .*ask for it with batch=2"):
            restored(places[0], tmp_path)
        assert restored(places[0], tmp_path, batch=2) == expected(checkpoint)

    @pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a//b", "", "a/./b"])
    def test_paths_that_lead_out_are_refused(self, path: str) -> None:
        pack = Pack(PackId(1, 1, "ab"), 10, 4, 2, 64)
        manifest = Manifest(LINE, pack.id, 0.0, (File(path, 1, "m", 0, pack.id, 0),), (pack,))
        with pytest.raises(StateError, match="leads out"):
            parse(dump(manifest, KEYS), KEYS, LINE, pack.id, "here")

    def test_another_key_reads_nothing(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        saver(places[0]).save(LocalFolder(checkpoint.root))
        with pytest.raises(StateError, match="written with another key"):
            restored(places[0], tmp_path, keys=Keys("some other key"))
        with pytest.raises(StateError, match="written with another key"):
            restored(places[0], tmp_path, keys=Keys())

    def test_nothing_is_written_over(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        saver(places[0]).save(LocalFolder(checkpoint.root))
        before = checkpoint.content()
        catalog = Catalog(places[0], LINE, KEYS)
        with pytest.raises(BadParameter, match="never written over"):
            restore(catalog, catalog.choose(), str(checkpoint.root))
        assert checkpoint.content() == before

    def test_batches_that_are_not_there(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]]
    ) -> None:
        saver(places[0]).save(LocalFolder(checkpoint.root))
        with pytest.raises(BadParameter, match="there are 2"):
            Catalog(places[0], LINE, KEYS).choose(77)

    def test_no_backup_at_all(self, places: tuple[Places, list[FlakyStore]]) -> None:
        with pytest.raises(StateError, match="none of the 6 places has one"):
            Catalog(places[0], LINE, KEYS).choose()


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
        assert restored(places[0], tmp_path) == expected(checkpoint)

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
        assert restored(moved, tmp_path) == expected(checkpoint)

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
        assert restored(places[0], tmp_path) == expected(checkpoint)


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            ({"places": []}, "backups need places"),
            ({"places": "/a/folder"}, "backups need places"),
            ({"places": ["/a"], "keep": 0}, "keep at least 1"),
            ({"places": ["/a"], "raw": 0}, "raw=0"),
            ({"places": ["/a"], "every": "soon"}, "every='soon'"),
            ({"places": ["/a"], "topology": ""}, "topology=''"),
        ],
    )
    def test_bad_ones_are_named(self, settings: dict[str, object], problem: str) -> None:
        with pytest.raises(BadParameter, match=problem):
            Backup(**settings)  # type: ignore[arg-type]

    def test_the_key_is_not_shown(self) -> None:
        assert "very secret" not in repr(Backup(["/a"], key="very secret"))
        with pytest.raises(BadParameter) as raised:
            Backup(["/a"], key="short").keys  # noqa: B018
        assert "short'" not in str(raised.value)

    def test_names_survive_as_keys(self) -> None:
        line = Line("..", "a/b c.d", "ü")
        found = parse_key(f"{line.prefix}/00000000000000000001-00000001-ab/manifest")
        assert found is not None and found.line == line
        assert ".." not in line.prefix


def _shut_out() -> NoReturn:
    raise FencedOff("shut out")


def _examine(places: Places) -> dict[PackId, Health]:
    catalog = Catalog(places, LINE, KEYS)
    return examine(catalog, packs_of(catalog.manifests()))


def _repair(places: Places) -> None:
    catalog = Catalog(places, LINE, KEYS)
    assert not repair(catalog, examine(catalog, packs_of(catalog.manifests()))).failed


class TestRelocating:
    PATHS = ("file:/old/place/state/0/_stateSchema/default/0_ab", "s3a://old/x/state/3/_stateSchema/default/1_cd")

    def test_paths_of_schemas_follow_the_checkpoint(self) -> None:
        before = {"operatorInfo": {"operatorId": 0}, "stateStoreInfo": [{"stateSchemaFilePaths": list(self.PATHS)}]}
        content = b"v2\n" + json.dumps(before).encode()
        version, body = relocated(content, "file:/new", "x").split(b"\n")
        assert version == b"v2"
        paths = json.loads(body)["stateStoreInfo"][0]["stateSchemaFilePaths"]
        assert paths == ["file:/new/state/0/_stateSchema/default/0_ab", "file:/new/state/3/_stateSchema/default/1_cd"]

    def test_what_is_not_understood_is_an_error(self) -> None:
        with pytest.raises(StateError, match="not understood"):
            relocated(b"v9\nsomething", "file:/new", "state/0/_metadata/v2/0")

    def test_metadata_of_a_batch_that_is_not_committed_stays_behind(self, checkpoint: GrowingCheckpoint) -> None:
        folder = checkpoint.root / "state/0/_metadata/v2"
        folder.mkdir()
        for batch in (0, 2, 3):
            (folder / str(batch)).write_text("v2\n{}")
        snapshot = look(LocalFolder(checkpoint.root))
        assert snapshot is not None
        assert {path[-1] for path in snapshot.files if "v2" in path} == {"0", "2"}


class TestRemote:
    """A checkpoint, and a folder to restore into, behind fsspec."""

    def test_there_and_back(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        filesystem, root = fsspec.core.url_to_fs(f"memory://remote-{tmp_path.name}/checkpoint")
        for path, content in checkpoint.content().items():
            filesystem.pipe_file(f"{root}/{path}", content)
        saved = saver(places[0]).save(open_folder(f"memory://remote-{tmp_path.name}/checkpoint"))
        assert saved is not None and saved.manifest.batch == 2
        catalog, into = Catalog(places[0], LINE, KEYS), f"memory://remote-{tmp_path.name}/restored"
        restore(catalog, catalog.choose(), into)
        target, where = fsspec.core.url_to_fs(into)
        found = {path.removeprefix(f"{where}/"): target.cat_file(path) for path in target.find(where)}
        assert found == expected(checkpoint)
        with pytest.raises(BadParameter, match="never written over"):
            restore(catalog, catalog.choose(), into)

    def test_what_cannot_be_completed_is_deleted(
        self, checkpoint: GrowingCheckpoint, places: tuple[Places, list[FlakyStore]], tmp_path: Path
    ) -> None:
        saver(places[0]).save(LocalFolder(checkpoint.root))
        for store in places[1][:3]:
            store.damage(next(key for key in store.find() if key.endswith(".fragment")), -1)
        into = f"memory://remote-{tmp_path.name}/half"
        catalog = Catalog(places[0], LINE, KEYS)
        with pytest.raises(TooFewBlocks):
            restore(catalog, catalog.choose(), into)
        target, where = fsspec.core.url_to_fs(into)
        assert not target.exists(where)
