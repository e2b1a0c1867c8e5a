"""Pictures of a growing checkpoint: what they hold, and what makes them impossible."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.errors import StateError
from headgate.state.folder import LocalFolder, Seen
from headgate.state.places import Places
from headgate.state.snapshot import Gone, look
from tests.backups import saver
from tests.checkpoints import FlakyStore, GrowingCheckpoint


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
