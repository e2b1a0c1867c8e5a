"""Random batches, backups, losses, damage, repairs and restarts, against a model that just remembers."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headgate.state.catalog import Catalog
from headgate.state.code import Code
from headgate.state.fence import FencedOff
from headgate.state.folder import LocalFolder
from headgate.state.keys import Line
from headgate.state.repairing import examine, packs_of, repair
from headgate.state.restoring import restore
from headgate.state.saving import Saver
from headgate.state.snapshot import look
from headgate.state.tags import Keys
from tests.checkpoints import GrowingCheckpoint, contents, flaky_places

LINE, KEYS, KEEP = Line("shop", "orders"), Keys("a secret key"), 2
CODE = Code(3, 2)
PLACES = 5


class BackupMachine(RuleBasedStateMachine):
    """The model: the content of every backup that must still be there; how many places have lost something."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.kept: dict[int, dict[str, bytes]] = {}
        self.hurt: set[int] = set()
        self.restores = 0

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.checkpoint = GrowingCheckpoint(self.folder / "checkpoint", seed=seed)
        self.checkpoint.run_batch()
        self.places, self.stores = flaky_places(PLACES)
        self._new_writer()

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule(count=st.integers(1, 6))
    def batches(self, count: int) -> None:
        for _ in range(count):
            self.checkpoint.run_batch()

    @rule()
    def a_batch_begins(self) -> None:
        self.checkpoint.run_batch(committed=False)

    @rule(down=st.sampled_from([None, *range(PLACES)]))
    def save(self, down: int | None) -> None:
        """Perhaps with a place that does not answer; lengths of blocks and their number are seen, damage is not."""
        snapshot = look(LocalFolder(self.checkpoint.root))
        assert snapshot is not None
        if down is not None:
            self.stores[down].down = True
        saved = self.saver.save(LocalFolder(self.checkpoint.root))
        assert (saved is None) == (snapshot.batch == max(self.kept, default=-1))
        if saved is not None:
            content = self.checkpoint.content()
            self.kept[saved.manifest.batch] = {path: content[path] for path in snapshot.files}
            self.kept = dict(sorted(self.kept.items())[-KEEP:])
            if down is not None:
                self.hurt.add(down)
        if down is not None:
            self.stores[down].down = False

    @rule()
    def the_writer_restarts(self) -> None:
        self._new_writer()

    @rule()
    def an_outdated_writer_tries(self) -> None:
        outdated = self.saver
        self._new_writer()
        self.checkpoint.run_batch()
        with suppress(FencedOff):
            outdated.save(LocalFolder(self.checkpoint.root))
            raise AssertionError("it was not shut out")

    @precondition(lambda self: len(self.hurt) < CODE.check)
    @rule(which=st.integers(0, PLACES - 1))
    def a_place_loses_everything(self, which: int) -> None:
        self.stores[which].wipe()
        self.hurt.add(which)

    @precondition(lambda self: len(self.hurt) < CODE.check)
    @rule(which=st.integers(0, PLACES - 1), at=st.integers(0, 10_000))
    def a_place_is_damaged(self, which: int, at: int) -> None:
        for key in self.stores[which].find(LINE.prefix):
            if key.endswith(".fragment") and self.stores[which].find(key):
                self.stores[which].damage(key, at)
        self.hurt.add(which)

    @rule()
    def repair(self) -> None:
        catalog = Catalog(self.places, LINE, KEYS)
        assert not repair(catalog, examine(catalog, packs_of(catalog.manifests()))).failed
        after = Catalog(self.places, LINE, KEYS)
        health = examine(after, packs_of(after.manifests()))
        assert all(not each.missing for each in health.values())
        self.hurt.clear()

    @precondition(lambda self: bool(self.kept))
    @rule(pick=st.integers(0, KEEP - 1), down=st.sets(st.integers(0, PLACES - 1), max_size=CODE.check))
    def restore(self, pick: int, down: set[int]) -> None:
        down = set(list(down - self.hurt)[: CODE.check - len(self.hurt)])
        for which in down:
            self.stores[which].down = True
        batch = sorted(self.kept)[pick % len(self.kept)]
        into = self.folder / f"restored-{self.restores}"
        self.restores += 1
        catalog = Catalog(self.places, LINE, KEYS)
        restore(catalog, catalog.choose(batch), str(into))
        assert contents(into) == self.kept[batch]
        for which in down:
            self.stores[which].down = False

    @invariant()
    def all_that_is_kept_is_listed(self) -> None:
        if hasattr(self, "places"):
            listed = [manifest.batch for manifest in Catalog(self.places, LINE, KEYS).manifests()]
            assert sorted(listed) == sorted(self.kept)

    def _new_writer(self) -> None:
        self.saver = Saver(self.places, LINE, CODE, KEYS, KEEP, cell=64)


TestBackups = BackupMachine.TestCase
TestBackups.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
