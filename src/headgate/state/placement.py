"""Which place gets which fragment, and what losses that bears. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def place(
    fragments: Sequence[int], hosts: Mapping[str, str], held: Mapping[str, int], turn: int = 0, most: int | None = None
) -> dict[int, str]:
    """A place for every fragment, so that hosts, and then places, hold as equal numbers of them as can be.

    :param hosts: the host of every place that can be used.
    :param held: how many fragments of the pack each place has already.
    :param turn: where to begin among equals, so that the raw fragments of all packs do not meet at the same places.
    :param most: so many at one place at most; fragments for which there is no room are left out.
    """
    names = list(hosts)
    on_place = Counter({name: held.get(name, 0) for name in names})
    on_host = Counter[str]()
    for name in names:
        on_host[hosts[name]] += on_place[name]
    chosen = {}
    for fragment in fragments:
        free = [at for at, name in enumerate(names) if most is None or on_place[name] < most]
        if not free:
            break
        best = min(
            free,
            key=lambda at: (on_host[hosts[names[at]]], on_place[names[at]], (at - turn - fragment) % len(names)),
        )
        chosen[fragment] = names[best]
        on_place[names[best]] += 1
        on_host[hosts[names[best]]] += 1
    return chosen


def bearable(places_of: Mapping[int, Sequence[str]], raw: int) -> int:
    """How many places may be lost, whichever they are, so that `raw` fragments are left; -1 if they are not there now.

    A fragment at several places counts at the first of them only.
    """
    left = len(places_of)
    if left < raw:
        return -1
    counts = Counter(names[0] for names in places_of.values())
    for lost, (_, count) in enumerate(counts.most_common()):
        left -= count
        if left < raw:
            return lost
    return len(counts)


def weakest_host(placed: Mapping[int, str], hosts: Mapping[str, str]) -> tuple[str, int]:
    """The host whose loss would cost most fragments, and how many."""
    return Counter(hosts[name] for name in placed.values()).most_common(1)[0]
