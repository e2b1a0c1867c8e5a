"""One colour per contender, everywhere: Headgate is teal, stock Spark grey and red, the papers' rules amber and blue.

Pictures name colours by role; the page gives each role a shade for light and one for dark screens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SHADES: dict[str, tuple[str, str]] = {
    "ink": ("#1d2327", "#dfe4e6"),
    "faint": ("#8a9499", "#77848a"),
    "headgate": ("#0b7a75", "#36b3ab"),
    "headgate-2": ("#57a9a4", "#7fd0ca"),
    "headgate-3": ("#2f5d62", "#a5c9c6"),
    "headgate-4": ("#8cc0a8", "#58977f"),
    "stock": ("#c2464f", "#e8757c"),
    "stock-2": ("#7d8589", "#9aa4a9"),
    "stock-3": ("#4a5155", "#c3cacd"),
    "stock-4": ("#9c6b5f", "#c79a8d"),
    "stock-5": ("#d08a80", "#a86a61"),
    "paper": ("#c98a1b", "#e5b04d"),
    "paper-2": ("#3b6ea5", "#7aa9dc"),
    "paper-3": ("#8a5fa8", "#bb94d6"),
    "good": ("#0b7a75", "#36b3ab"),
    "bad": ("#b3323d", "#f08088"),
}
"""Role -> (on light, on dark)."""

DASHES = ("solid", "dashed", "dotted", "dashdot")


@dataclass(frozen=True, slots=True)
class Style:
    """How one contender is drawn: colour by role, and a dash so that print and colour-blind readers can tell."""

    role: str
    dash: str = "solid"
    width: float = 1.3


def styles(kinds: Mapping[str, str]) -> dict[str, Style]:
    """A style for every contender from its kind, in the order given: the first of each kind has its main colour."""
    seen: dict[str, int] = {}
    found = {}
    for name, kind in kinds.items():
        family = kind if kind in ("headgate", "stock") else "paper"
        found[name] = _style(family, seen.get(family, 0))
        seen[family] = seen.get(family, 0) + 1
    return found


def _style(family: str, index: int) -> Style:
    """Colours first; when a family has no more of them, they come again with another dash."""
    roles = [role for role in SHADES if role.split("-")[0] == family]
    dash = DASHES[(index % len(roles) + index // len(roles)) % len(DASHES)] if index else "solid"
    return Style(roles[index % len(roles)], dash, 2.0 if (family, index) == ("headgate", 0) else 1.3)


def variables(dark: bool) -> str:
    """The shades as CSS variables."""
    return " ".join(f"--{role}: {shades[dark]};" for role, shades in SHADES.items())
