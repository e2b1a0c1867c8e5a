"""A checkpoint in a new place: the one kind of file in which Spark writes down where the checkpoint is.

The metadata of `transformWithState` names the files of its state schemas by their whole path. Restored elsewhere, the
query would look for them in the folder that was lost.
"""

from __future__ import annotations

import json
import re
from typing import Any

from headgate.errors import StateError
from headgate.state.versions import operator_batch

_BELOW_STATE = re.compile(r".*/(state/\d+/_stateSchema/.*)")


def names_its_place(path: str) -> bool:
    return operator_batch(path) is not None


def relocated(content: bytes, root: str, where: str) -> bytes:
    """The metadata of an operator (a line with its version, then JSON) for a checkpoint at `root`."""
    version, _, body = content.partition(b"\n")
    try:
        operator: dict[str, Any] = json.loads(body)
        for store in operator["stateStoreInfo"]:
            if "stateSchemaFilePaths" in store:
                store["stateSchemaFilePaths"] = [_moved(path, root) for path in store["stateSchemaFilePaths"]]
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"{where}: this metadata of an operator is not understood: {error!r}") from error
    return version + b"\n" + json.dumps(operator, separators=(",", ":")).encode()


def _moved(path: str, root: str) -> str:
    found = _BELOW_STATE.fullmatch(path)
    return path if found is None else f"{root}/{found[1]}"
