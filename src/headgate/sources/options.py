"""Options that Headgate adds to every source it reads, and how sources read their own."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.errors import BadParameter
from headgate.sources.gate_client import GateClient

FOLDER = "headgate.folder"
"""Where the coordinator's socket is; set by ``Headgate.readStream`` and ``Headgate.gate``."""

GATE = "headgate.gate"
"""Which gated DataFrame this is; how ``Headgate.start`` recognises it in a plan."""

TASKS = "headgate.tasks"
"""Upper bound of a batch's source tasks (the cores of this Spark)."""


def gate_of(options: Mapping[str, str]) -> GateClient | None:
    """The gate of a source, or None where it is read without Headgate."""
    folder, gate = options.get(FOLDER), options.get(GATE)
    return GateClient(folder, gate) if folder and gate else None


def text_of(options: Mapping[str, str], name: str) -> str | None:
    """An option whose name has capitals: Spark gives all names in lower case, tests as they are written."""
    return next((value for key, value in options.items() if key.lower() == name.lower()), None)


def positive_int(options: Mapping[str, str], name: str, default: int | None) -> int | None:
    """A whole number above zero, or the default where the option is absent."""
    text = options.get(name)
    if text is None:
        return default
    if not text.strip().isdigit() or int(text) <= 0:
        raise BadParameter(name, text, "this is not a positive whole number", 'write for example "1000"')
    return int(text)
