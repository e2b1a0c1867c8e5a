"""When may a micro-batch start? A rule maps (snapshot, query) to a decision that carries its reason."""

from __future__ import annotations

from collections.abc import Callable

from headgate.core.admission.decision import Decision
from headgate.core.admission.papers import qspark, zstream
from headgate.core.admission.slo import latest, slo
from headgate.core.admission.verdicts import observe
from headgate.core.snapshot import QueryView, Snapshot
from headgate.errors import BadParameter

Rule = Callable[[Snapshot, QueryView], Decision]

RULES: dict[str, Rule] = {"slo": slo, "latest": latest, "qspark": qspark, "zstream": zstream, "observe": observe}
DEFAULT_RULE = "slo"


def find_rule(name: str) -> Rule:
    """Return the rule called `name`."""
    if name not in RULES:
        raise BadParameter("admission", name, "there is no such rule", f"use one of {', '.join(RULES)}")
    return RULES[name]


__all__ = ["DEFAULT_RULE", "RULES", "Decision", "Rule", "find_rule", "latest", "observe", "qspark", "slo", "zstream"]
