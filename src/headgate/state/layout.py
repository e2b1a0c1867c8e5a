"""How a pack of bytes lies in its fragments. Pure arithmetic.

A pack is cut into stripes of r cells; cell i of every stripe belongs to fragment i, and every cell is followed by its
tag. All cells of a fragment have one size, but for those of the last stripe, so the place of any of them is known::

    pack        | s t r i p e  0 | s t r i p e  1 | last |
    fragment 0  | cell tag | cell tag | ce tag |
    fragment 1  | cell tag | cell tag | ce tag |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

CELL_BYTES = 1 << 20
"""Large enough that a request costs little beside it, small enough that ten places times a few cells fit in memory."""

TAG_BYTES = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """The shape of one pack's fragments."""

    length: int
    raw: int
    cell: int = CELL_BYTES

    @property
    def stripe_bytes(self) -> int:
        return self.raw * self.cell

    @property
    def stripes(self) -> int:
        return -(-self.length // self.stripe_bytes)

    def cell_bytes(self, stripe: int) -> int:
        """Cells of the last stripe share what is left; its last cell is padded."""
        return -(-self.data_bytes(stripe) // self.raw)

    def data_bytes(self, stripe: int) -> int:
        """Bytes of the pack in this stripe, without padding."""
        return min(self.stripe_bytes, self.length - stripe * self.stripe_bytes)

    def records(self, first: int, count: int) -> tuple[int, int]:
        """From where to where the cells of these stripes and their tags lie in a fragment."""
        start = first * (self.cell + TAG_BYTES)
        last = first + count - 1
        return start, last * (self.cell + TAG_BYTES) + self.cell_bytes(last) + TAG_BYTES

    @property
    def fragment_bytes(self) -> int:
        return self.records(0, self.stripes)[1] if self.stripes else 0

    def stripes_of(self, spans: Iterable[tuple[int, int]]) -> list[int]:
        """The stripes in which these (start, length) spans of the pack lie, in order."""
        found: set[int] = set()
        for start, length in spans:
            if length:
                found.update(range(start // self.stripe_bytes, (start + length - 1) // self.stripe_bytes + 1))
        return sorted(found)
