"""One writer per query: whoever comes later shuts out whoever was there before.

A writer raises a fence with a number above all others at a majority of the places, and looks for higher ones before
every backup is made valid: two writers have a place in common, so one of them sees the other. A fence also names the
backup after which it was raised: what a shut-out writer might still complete in that moment counts for nobody.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from dataclasses import dataclass

from headgate.errors import StateError
from headgate.state.keys import Line, PackId, fence_key, fence_prefix, parse_fence, parse_pack
from headgate.state.places import Places, Survey
from headgate.state.tags import Keys, same


class FencedOff(StateError):
    """Another writer has taken over this query's backups."""


class TooFewPlaces(StateError):
    """So few places answer that nothing can be said for sure."""


@dataclass(frozen=True, slots=True)
class Fence:
    """This writer's claim."""

    line: Line
    epoch: int
    token: str
    after: PackId | None

    def guard(self, places: Places) -> list[str]:
        """The places that answer; raises if a later writer has been at one of them, or too few answer."""
        answers = places.ask(lambda store: store.find(fence_prefix(self.line)))
        _enough(places, len(answers.given), answers.silent)
        mine = (self.epoch, self.token)
        for name, keys in answers.given.items():
            for key in keys:
                if (other := parse_fence(key)) is not None and other > mine:
                    raise FencedOff(
                        f"{self.line}: another writer (number {other[0]}, this is {self.epoch}) has taken over the"
                        f" backups, seen at {name}; this one stops; two queries must not share one name and instance"
                    )
        return list(answers.given)


def raise_fence(places: Places, line: Line, survey: Survey, after: PackId | None, keys: Keys) -> Fence:
    """Take over: from here on, earlier writers find themselves shut out."""
    known = [epoch for epoch, _ in survey.fences.get(line.prefix, {})]
    known += [pack.epoch for pack in survey.fragments.get(line, {})]
    fence = Fence(line, max(known, default=0) + 1, secrets.token_hex(8), after)
    content = _dump(fence, keys)
    answers = places.ask(lambda store: store.put(fence_key(line, fence.epoch, fence.token), [content]))
    _enough(places, len(answers.given), answers.silent)
    fence.guard(places)
    return fence


def _enough(places: Places, answered: int, silent: dict[str, str]) -> None:
    if answered < places.majority:
        why = "; ".join(f"{name}: {reason}" for name, reason in silent.items())
        raise TooFewPlaces(f"{answered} of {len(places)} places answer, {places.majority} must: {why}")


def _dump(fence: Fence, keys: Keys) -> bytes:
    body = {
        "after": None if fence.after is None else str(fence.after),
        "writer": f"{socket.gethostname()}:{os.getpid()}",
        "at_s": time.time(),
    }
    content = json.dumps(body)
    return f"{keys.text('fence', content.encode())}\n{content}".encode()


def disowned(places: Places, line: Line, survey: Survey, keys: Keys) -> list[tuple[int, PackId | None]]:
    """Per fence its number and the last backup before it, for `is_valid`; a fence that is damaged says nothing."""
    found = []
    for (epoch, token), names in survey.fences.get(line.prefix, {}).items():
        for name in names:
            try:
                tag, _, content = places.stores[name].get(fence_key(line, epoch, token)).partition(b"\n")
            except OSError:
                continue
            if same(tag, keys.text("fence", content).encode()):
                after = json.loads(content)["after"]
                found.append((epoch, None if after is None else parse_pack(after)))
                break
    return found


def is_valid(pack: PackId, fences: list[tuple[int, PackId | None]]) -> bool:
    """Whether a backup was complete before the next writer took over."""
    return all(epoch <= pack.epoch or (after is not None and age(pack) <= age(after)) for epoch, after in fences)


def age(pack: PackId) -> tuple[int, int, str]:
    """Backups in the order in which they were made valid: a later writer may begin again at an earlier batch."""
    return pack.epoch, pack.batch, pack.token
