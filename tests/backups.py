"""What tests of backups share: one line, one key, a small code, and a way there and back."""

from __future__ import annotations

import shutil
from pathlib import Path

from headgate.state.catalog import Catalog
from headgate.state.code import Code
from headgate.state.keys import Line
from headgate.state.places import Places
from headgate.state.restoring import restore
from headgate.state.saving import Saver
from headgate.state.tags import Keys
from tests.checkpoints import contents

LINE, KEYS, CODE, CELL = Line("shop", "orders/eu 1"), Keys("a secret key"), Code(4, 2), 64


def saver(places: Places, keys: Keys = KEYS, keep: int = 3) -> Saver:
    return Saver(places, LINE, CODE, keys, keep, cell=CELL)


def restored(places: Places, tmp_path: Path, batch: int | None = None, keys: Keys = KEYS) -> dict[str, bytes]:
    catalog = Catalog(places, LINE, keys)
    into = tmp_path / "restored"
    shutil.rmtree(into, ignore_errors=True)
    restore(catalog, catalog.choose(batch), str(into))
    return contents(into)
