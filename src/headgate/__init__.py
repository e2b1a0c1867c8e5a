"""Headgate gives PySpark Structured Streaming queries deadlines.

from headgate import Headgate

with Headgate() as hg:
    clicks = hg.gate(hg.spark.readStream.format("rate").load())
    hg.start(clicks.writeStream.format("console"), deadline="5s").awaitTermination()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate._version import __version__
from headgate.errors import BadParameter, HeadgateError, StateError, UnsupportedSpark

if TYPE_CHECKING:
    from headgate.engine.query import GatedQuery
    from headgate.engine.session import ROCKSDB, session
    from headgate.headgate import Headgate
    from headgate.state.backup import Backup

__all__ = [
    "ROCKSDB",
    "Backup",
    "BadParameter",
    "GatedQuery",
    "Headgate",
    "HeadgateError",
    "StateError",
    "UnsupportedSpark",
    "__version__",
    "session",
]

_LAZY = {
    "Backup": "headgate.state.backup",
    "ROCKSDB": "headgate.engine.session",
    "Headgate": "headgate.headgate",
    "GatedQuery": "headgate.engine.query",
    "session": "headgate.engine.session",
}


def __getattr__(name: str) -> Any:
    """Import Spark only when something of it is used: ``headgate --help`` answers in a blink."""
    if name not in _LAZY:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)
