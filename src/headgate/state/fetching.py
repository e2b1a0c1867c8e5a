"""Reading stripes of a pack from any r places, in parallel; the slowest is not waited for.

Every fragment that takes part has a thread that reads ahead of the reader, cells in a row. At first r of them take
part. If one fails, delivers a damaged cell, or lets the others wait, a further one joins in at the stripe that is being
waited for. A laggard skips what has been done without it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from headgate.core.galois import Matrix
from headgate.state.catalog import Holders, TooFewBlocks
from headgate.state.keys import Line, fragment_key
from headgate.state.layout import TAG_BYTES
from headgate.state.manifest import Pack
from headgate.state.places import Places
from headgate.state.tags import Keys, same

STALLED_S = 120.0
"""If nothing comes for so long although everybody was asked, nothing will."""

AHEAD = 6
"""Stripes that may be read before the one that is waited for: this bounds the memory."""

IN_A_ROW = 2
"""Stripes per request: another request is on its way while these are decoded."""

LEAST_PATIENCE_S = 0.15
PATIENCE = 2.0
"""A cell that is this many times later than cells usually are is asked for elsewhere as well."""


class StripeReader:
    """The raw cells of the wanted stripes, in order. Use it with `with`."""

    def __init__(self, places: Places, line: Line, holders: Holders, keys: Keys, wanted: Sequence[int]) -> None:
        self._places, self._line, self._holders, self._keys = places, line, holders, keys
        self._pack, self._layout, self._wanted = holders.pack, holders.pack.layout, list(wanted)
        self._changed = threading.Condition()
        self._at = 0
        self._cells: dict[int, dict[int, Matrix]] = {}
        self._times_s: list[float] = []
        self._closed = False
        self.lost: dict[int, str] = {}
        """Fragments that failed, and why."""
        self._waiting = list(holders.places)
        self._running: set[int] = set()

    def __enter__(self) -> StripeReader:
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def stripes(self) -> Iterator[tuple[int, dict[int, Matrix]]]:
        """(stripe, any r of its cells by index)."""
        for position, stripe in enumerate(self._wanted):
            with self._changed:
                cells = self._await(position)
                self._at = position + 1  # what still comes for this one is dropped
                self._changed.notify_all()
            yield stripe, cells

    def _await(self, position: int) -> dict[int, Matrix]:
        patient_until_s = time.monotonic() + self._patience_s()
        give_up_s = time.monotonic() + STALLED_S
        while True:
            got = self._cells.get(position, {})
            if len(got) >= self._pack.raw:
                del self._cells[position]
                return got
            if time.monotonic() > give_up_s:
                raise self._too_few(f"nothing came for {STALLED_S:g} s")
            short = self._pack.raw - len(got) - len([i for i in self._running if i not in got])
            if short > 0 or time.monotonic() > patient_until_s:
                for _ in range(max(1, short)):
                    self._start_another(short > 0)
                patient_until_s = time.monotonic() + self._patience_s()
            self._changed.wait(min(0.5, max(0.01, patient_until_s - time.monotonic())))

    def _patience_s(self) -> float:
        usual_s = median(self._times_s[-50:]) if self._times_s else 1.0
        return max(LEAST_PATIENCE_S, PATIENCE * usual_s)

    def _start_another(self, needed: bool) -> None:
        if self._waiting:
            index = self._waiting.pop(0)
            self._running.add(index)
            threading.Thread(target=self._read, args=(index,), name=f"fragment {index}", daemon=True).start()
        elif needed:
            raise self._too_few("no others are left")

    def _too_few(self, what: str) -> TooFewBlocks:
        words = [f"block {index} at {', '.join(names)}" for index, names in self._holders.places.items()]
        lost = "; ".join(f"block {index}: {why}" for index, why in self.lost.items()) or "none"
        return TooFewBlocks(
            f"{self._line}: pack {self._pack.id} cannot be read: {what}; {self._pack.raw} blocks are needed,"
            f" {len(words)} of {self._pack.code.blocks} were there ({'; '.join(words)}), and of these failed: {lost}"
        )

    # ---- one fragment

    def _read(self, index: int) -> None:
        next_at, names = 0, list(self._holders.places[index])
        while (turn := self._turn(next_at)) is not None:
            first, count = turn
            began_s = time.monotonic()
            try:
                cells = self._get(names[0], index, self._wanted[first], count)
            except Exception as error:
                names.pop(0)
                if names:
                    continue  # another place has the same fragment
                with self._changed:
                    self.lost[index] = f"{self._holders.places[index][-1]}: {error}"
                    self._running.discard(index)
                    self._changed.notify_all()
                return
            next_at = first + count
            with self._changed:
                self._times_s.append(time.monotonic() - began_s)
                for offset, cell in enumerate(cells):
                    if first + offset >= self._at:
                        self._cells.setdefault(first + offset, {})[index] = cell
                self._changed.notify_all()

    def _turn(self, next_at: int) -> tuple[int, int] | None:
        """The next stripes for this fragment, once they are not too far ahead: (position, how many in a row)."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or max(next_at, self._at) < self._at + AHEAD)
            first = max(next_at, self._at)
            if self._closed or first >= len(self._wanted):
                return None
            count = 1
            while (
                count < IN_A_ROW
                and first + count < len(self._wanted)
                and self._wanted[first + count] == self._wanted[first] + count
            ):
                count += 1
            return first, count

    def _get(self, name: str, index: int, stripe: int, count: int) -> list[Matrix]:
        start, end = self._layout.records(stripe, count)
        content = self._places.stores[name].get(fragment_key(self._line, self._pack.id, index), start, end)
        return split_cells(content, self._line, self._pack, self._keys, index, stripe, count)


def split_cells(
    content: bytes, line: Line, pack: Pack, keys: Keys, index: int, stripe: int, count: int
) -> list[Matrix]:
    """Cells without their tags; a ValueError if one does not fit its tag."""
    tag, view, at = keys.tagger(line, pack.id, index), memoryview(content), 0
    cells = []
    for number in range(stripe, stripe + count):
        length = pack.layout.cell_bytes(number)
        cell, given = view[at : at + length], view[at + length : at + length + TAG_BYTES]
        if len(given) < TAG_BYTES or not same(tag(number, cell), bytes(given)):
            raise ValueError(f"stripe {number} is damaged, or was written with another key")
        cells.append(np.frombuffer(cell, np.uint8))
        at += length + TAG_BYTES
    return cells
