"""A checkpoint that has begun to grow, and places for its backups."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.state.places import Places
from tests.backups import CODE
from tests.checkpoints import FlakyStore, GrowingCheckpoint, flaky_places, grown


@pytest.fixture
def checkpoint(tmp_path: Path) -> GrowingCheckpoint:
    return grown(tmp_path / "checkpoint")


@pytest.fixture
def places() -> tuple[Places, list[FlakyStore]]:
    return flaky_places(CODE.blocks)
