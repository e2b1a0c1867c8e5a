"""Which place gets which fragment. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def place(fragments: Sequence[int], hosts: Mapping[str, str], held: Mapping[str, int], turn: int = 0) -> dict[int, str]:
    """A place for every fragment, so that hosts, and then places, hold as equal numbers of them as can be.

    :param hosts: the host of every place that can be used.
    :param held: how many fragments of the pack each place has already.
    :param turn: where to begin among equals, so that the raw fragments of all packs do not meet at the same places.
    """
    names = list(hosts)
    on_place = Counter({name: held.get(name, 0) for name in names})
    on_host = Counter[str]()
    for name in names:
        on_host[hosts[name]] += on_place[name]
    chosen = {}
    for fragment in fragments:
        best = min(
            range(len(names)),
            key=lambda at: (on_host[hosts[names[at]]], on_place[names[at]], (at - turn - fragment) % len(names)),
        )
        chosen[fragment] = names[best]
        on_place[names[best]] += 1
        on_host[hosts[names[best]]] += 1
    return chosen


def weakest_host(placed: Mapping[int, str], hosts: Mapping[str, str]) -> tuple[str, int]:
    """The host whose loss would cost most fragments, and how many."""
    return Counter(hosts[name] for name in placed.values()).most_common(1)[0]
