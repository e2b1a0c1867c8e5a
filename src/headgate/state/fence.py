"""One writer per query: whoever comes later shuts out whoever was there before.

A writer raises a fence with a number above all others at a majority of the places, and looks for higher ones before a
backup becomes valid and before anything is deleted: two writers have a place in common, so one of them sees the other.
Then it looks what backups there are and settles the fence: the newest of them is the last that earlier writers made.
What one of them might still complete in between counts for nobody.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headgate.errors import StateError
from headgate.state.keys import Line, PackId, fence_key, parse_pack
from headgate.state.places import Places, Survey
from headgate.state.tags import Keys, same

log = logging.getLogger("headgate")


class FencedOff(StateError):
    """Another writer has taken over this query's backups."""


class TooFewPlaces(StateError):
    """So few places answer that nothing can be said for sure."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A writer's claim."""

    epoch: int
    token: str
    settled: bool = False
    after: PackId | None = None
    """The newest backup when it was settled."""

    @property
    def number(self) -> tuple[int, str]:
        return self.epoch, self.token

    def wrote(self, pack: PackId) -> bool:
        """Names of backups begin with the token of their writer: two that took the same number are told apart."""
        return pack.epoch == self.epoch and pack.token.startswith(self.token)


def raise_fence(places: Places, line: Line, keys: Keys) -> Fence:
    """Take over: from here on, earlier writers find themselves shut out."""
    survey = places.survey(line.prefix)
    known = [fence.epoch for fence in read_fences(places, line, survey, keys)]
    known += [pack.epoch for pack in survey.manifests.get(line, {})]
    fence = Fence(max(known, default=0) + 1, secrets.token_hex(4))
    _write(fence, places, line, keys)
    guard(fence, places, line, keys)
    return fence


def settle(fence: Fence, places: Places, line: Line, keys: Keys, after: PackId | None) -> Fence:
    """Say which backups of earlier writers count, and remove their fences, which say nothing any more."""
    settled = replace(fence, settled=True, after=after)
    _write(settled, places, line, keys)
    survey = guard(settled, places, line, keys)
    older = {
        fence_key(line, *number): at
        for number, at in survey.fences.get(line.prefix, {}).items()
        if number < fence.number
    }
    by_place = {name: [key for key, at in older.items() if name in at] for name in places.stores}
    places.delete({name: found for name, found in by_place.items() if found})
    return settled


def guard(fence: Fence, places: Places, line: Line, keys: Keys) -> Survey:
    """What is at the places; raises if a later writer has been at one of them, or too few answer."""
    survey = places.survey(line.prefix)
    require(places, places.majority, survey.silent)
    higher = [number for number in survey.fences.get(line.prefix, {}) if number > fence.number]
    for other in read_fences(places, line, survey, keys, higher):
        raise FencedOff(
            f"{line}: another writer (number {other.epoch}, this is {fence.epoch}) has taken over the backups; this one"
            f" stops; two queries must not share one name and instance"
        )
    return survey


def require(places: Places, least: int, silent: dict[str, str]) -> None:
    answered = len(places) - len(silent)
    if answered < least:
        why = "; ".join(f"{name}: {reason}" for name, reason in silent.items())
        raise TooFewPlaces(f"{answered} of {len(places)} places answer, {least} must: {why}")


def read_fences(
    places: Places, line: Line, survey: Survey, keys: Keys, numbers: Sequence[tuple[int, str]] | None = None
) -> list[Fence]:
    """Those that were signed for this line and number. Of several versions at several places, the settled one."""
    found = []
    for number, names in survey.fences.get(line.prefix, {}).items():
        if numbers is None or number in numbers:
            versions = [fence for name in names if (fence := _read(places, line, number, keys, name)) is not None]
            found += [max(versions, key=lambda fence: fence.settled)] if versions else []
    return found


def is_valid(pack: PackId, fences: Sequence[Fence]) -> bool:
    """Whether a backup was complete before the newest writer settled, or is its own."""
    settled = [fence for fence in fences if fence.settled]
    if not settled:
        return True
    newest = max(settled, key=lambda fence: fence.number)
    if pack.epoch == newest.epoch:
        return newest.wrote(pack)
    return pack.epoch > newest.epoch or (newest.after is not None and age(pack) <= age(newest.after))


def age(pack: PackId) -> tuple[int, str, int]:
    """Backups in the order in which they were made: a later writer may begin again at an earlier batch."""
    return pack.epoch, pack.token, pack.batch


def _write(fence: Fence, places: Places, line: Line, keys: Keys) -> None:
    content = _dump(fence, line, keys)
    answers = places.ask(lambda store: store.put(fence_key(line, *fence.number), [content]))
    require(places, places.majority, answers.silent)


def _dump(fence: Fence, line: Line, keys: Keys) -> bytes:
    body = {
        "line": line.prefix, "epoch": fence.epoch, "token": fence.token, "settled": fence.settled,
        "after": None if fence.after is None else str(fence.after),
        "writer": f"{socket.gethostname()}:{os.getpid()}", "at_s": time.time(),
    }  # fmt: skip
    content = json.dumps(body)
    return f"{keys.text('fence', content.encode())}\n{content}".encode()


def _read(places: Places, line: Line, number: tuple[int, str], keys: Keys, name: str) -> Fence | None:
    try:
        tag, _, content = places.stores[name].get(fence_key(line, *number)).partition(b"\n")
        if not same(tag, keys.text("fence", content).encode()):
            raise ValueError("damaged, or written with another key")
        body = json.loads(content)
        if (body["line"], body["epoch"], body["token"]) != (line.prefix, *number):
            raise ValueError("belongs elsewhere")
        after = None if body["after"] is None else parse_pack(body["after"])
        return Fence(*number, bool(body["settled"]), after)
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("%s: a fence of %s is not taken seriously: %s", name, line, error)
        return None
