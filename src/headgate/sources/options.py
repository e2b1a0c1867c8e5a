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


def positive_int(options: Mapping[str, str], name: str, default: int | None = None) -> int | None:
    """A whole number above zero, or the default where the option is absent."""
    text = text_of(options, name)
    if text is None:
        return default
    if not text.strip().isdecimal() or int(text) < 1:
        raise BadParameter(name, text, "this is not a whole number above zero", 'write for example "1000"')
    return int(text)


def flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    return choice(options, name, ("true", "false") if default else ("false", "true")) == "true"


def choice(options: Mapping[str, str], name: str, allowed: tuple[str, ...], *, required: bool = False) -> str:
    """One of `allowed`, in any case; the first is the default, unless the option is required."""
    text = text_of(options, name)
    if text is None and not required:
        return allowed[0]
    value = (text or "").strip().lower()
    if value not in allowed:
        raise BadParameter(name, text, "this is not one of the choices", f"write one of {', '.join(allowed)}")
    return value


def refuse(options: Mapping[str, str], refused: Mapping[str, str], harmless: Mapping[str, str] | None = None) -> None:
    """Stop at an option that would be ignored in silence.

    :param refused: the remedy by the option's name.
    :param harmless: values that ask for what is done anyway, in lower case, by the option's name.
    """
    for name, remedy in refused.items():
        value = text_of(options, name)
        if value is not None and value.strip().lower() != (harmless or {}).get(name):
            raise BadParameter(name, value, "this does not apply here", remedy)
