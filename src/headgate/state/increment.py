"""Which files of a snapshot must be coded again. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping

from headgate.state.folder import Seen
from headgate.state.keys import PackId
from headgate.state.manifest import File, Manifest

MOST_PACKS = 12
"""A restore opens every pack at every place; so many small requests still cost less than the bytes."""

LEAST_ALIVE = 0.5
"""A pack of which less than this is in use is left behind: its files are coded again."""


def reusable(last: Manifest | None, files: Mapping[str, Seen], safe: Container[PackId]) -> dict[str, File]:
    """The files whose bytes are safe already, in packs that are worth keeping.

    :param safe: the packs that bear as many losses as a new one would.
    """
    if last is None:
        return {}
    alive = defaultdict[PackId, list[File]](list)
    for file in last.files:
        if file.mark and files.get(file.path) == Seen(file.length, file.mark):
            alive[file.pack].append(file)
    kept = []
    for pack in last.packs:
        in_use = sum(file.length for file in alive[pack.id])
        if (pack.id in safe or not pack.length) and in_use >= LEAST_ALIVE * pack.length:
            kept.append((in_use, pack.id))
    largest = sorted(kept, reverse=True)[: MOST_PACKS - 1]  # and the one that will be made
    return {file.path: file for _, pack in largest for file in alive[pack]}
