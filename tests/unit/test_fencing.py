"""One writer at a time, whoever dies or comes back when."""

from __future__ import annotations

import itertools
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from headgate.state.catalog import Catalog
from headgate.state.fence import FencedOff
from headgate.state.folder import LocalFolder
from headgate.state.places import Places
from headgate.state.saving import Saver
from tests.backups import KEYS, LINE, restored, saver
from tests.checkpoints import FlakyStore, GrowingCheckpoint, needed_of


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
        assert restored(places[0], tmp_path) == needed_of(checkpoint)

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


def _shut_out() -> NoReturn:
    raise FencedOff("shut out")
