"""What comes back from backups, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest

from headgate.errors import BadParameter, StateError
from headgate.state.catalog import Catalog, TooFewBlocks
from headgate.state.folder import LocalFolder, open_folder
from headgate.state.keys import Line, PackId, manifest_key
from headgate.state.manifest import File, Manifest, Pack, dump, parse
from headgate.state.places import Places
from headgate.state.relocating import relocated
from headgate.state.repairing import Health, examine, packs_of
from headgate.state.restoring import restore
from headgate.state.snapshot import look
from headgate.state.tags import Keys
from tests.backups import KEYS, LINE, restored, saver
from tests.checkpoints import FlakyStore, GrowingCheckpoint, needed_of


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
        before = needed_of(checkpoint)
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
        assert restored(places[0], tmp_path) == needed_of(checkpoint)
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
        assert restored(places[0], tmp_path) == needed_of(checkpoint)

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
        assert restored(places[0], tmp_path, batch=2) == needed_of(checkpoint)

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
        assert found == needed_of(checkpoint)
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


def _examine(places: Places) -> dict[PackId, Health]:
    catalog = Catalog(places, LINE, KEYS)
    return examine(catalog, packs_of(catalog.manifests()))
