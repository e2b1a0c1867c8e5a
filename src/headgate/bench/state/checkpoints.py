"""Checkpoints of a given size for measurements: files as RocksDB and Spark leave them, filled with noise."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

TABLE_BYTES = 4_000_000
"""Size of one of RocksDB's tables; theirs grow up to 64 MB."""


def make_checkpoint(root: Path, state_bytes: int, seed: int = 0) -> Path:
    """One committed batch with a state of this size. Noise: nothing on the way could make it smaller."""
    random = np.random.default_rng(seed)
    store = root / "state/0/0"
    (store / "SSTs").mkdir(parents=True)
    tables: list[dict[str, object]] = []
    left = state_bytes
    while left > 0:
        size = min(TABLE_BYTES, left)
        name = f"{len(tables):06d}-{seed:04d}.sst"
        (store / "SSTs" / name).write_bytes(random.bytes(size))
        tables.append({"localFileName": name, "dfsSstFileName": name, "sizeBytes": size})
        left -= size
    with zipfile.ZipFile(store / "1.zip", "w") as archive:
        archive.writestr("metadata", "v1\n" + json.dumps({"sstFiles": tables, "numKeys": 1}))
    for name, content in (("metadata", '{"id":"0"}'), ("offsets/0", "v1\n{}\n{}"), ("commits/0", "v1\n{}")):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root
