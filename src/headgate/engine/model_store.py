"""Cost models survive restarts: one JSON file beside each checkpoint."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from headgate.core.cost import CostModel
from headgate.errors import StateError
from headgate.state.urls import local_path

log = logging.getLogger("headgate")

FOLDER = "headgate"
"""Inside the checkpoint, where Spark ignores it and people who copy the checkpoint take it along."""


def state_dir(checkpoint: str) -> str | None:
    """The folder for Headgate's own files of a query, if its checkpoint is on a local disk."""
    path = local_path(checkpoint)
    return None if path is None else str(path / FOLDER)


def load(folder: str | None) -> CostModel:
    """The saved model; a fresh one where there is none or it cannot be used (and says so)."""
    path = None if folder is None else Path(folder) / "model.json"
    if path is None or not path.exists():
        return CostModel()
    try:
        return CostModel.from_json(json.loads(path.read_text()))
    except (OSError, ValueError, StateError) as error:
        log.warning(
            "the saved cost model %s cannot be used (%s): learning anew; delete it to silence this", path, error
        )
        return CostModel()


def save(folder: str | None, model: CostModel) -> None:
    """Write the model so that a reader finds the old one or the new one, never half of it."""
    if folder is None:
        return
    path = Path(folder) / "model.json"
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(model.to_json()))
        os.replace(part, path)
    except OSError as error:
        log.warning("the cost model was not saved to %s: %s", path, error)
