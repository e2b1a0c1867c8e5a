"""Who runs when: contenders that are compared run soon after each other, and not always in the same order. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.bench.linear_road.scenarios import find_scenario


def groups(scenarios: Sequence[str]) -> list[list[str]]:
    """Scenarios with the same queries and traffic: an application warms up once for all of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in scenarios:
        scenario = find_scenario(name)
        found.setdefault((scenario.query_set, scenario.traffic), []).append(name)
    return list(found.values())


def turns(blocks: Sequence[Sequence[str]], repeat: int) -> list[str]:
    """The contenders of a repeat, each once. Those of a block stay together.

    From repeat to repeat the first of each block changes, and every other repeat goes backwards: a machine that gets
    slower or faster is kind to nobody.
    """
    seen: set[str] = set()
    order: list[str] = []
    for block in blocks:
        new = [name for name in dict.fromkeys(block) if name not in seen]
        first = repeat % len(new) if new else 0
        order += new[first:] + new[:first]
        seen.update(new)
    return order[::-1] if repeat % 2 else order
