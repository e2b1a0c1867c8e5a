"""The erasure code: r raw and c check blocks, any r of which give back all."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from headgate.core.galois import MOST_BLOCKS, PRODUCT, Matrix, code_matrix, rebuilding_matrix
from headgate.errors import BadParameter
from headgate.state import isal

log = logging.getLogger("headgate")


@dataclass(frozen=True, slots=True)
class Code:
    """`raw` blocks of data and `check` blocks computed from them."""

    raw: int = 7
    check: int = 3

    def __post_init__(self) -> None:
        for name, value, least in (("raw", self.raw, 1), ("check", self.check, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise BadParameter(name, value, "is no number of blocks", f"use a whole number from {least} up")
        if self.blocks > MOST_BLOCKS:
            raise BadParameter("raw + check", self.blocks, "are too many blocks", f"use at most {MOST_BLOCKS} in all")

    @property
    def blocks(self) -> int:
        return self.raw + self.check

    def encode(self, raw: Sequence[Matrix]) -> list[Matrix]:
        """The check blocks of these raw blocks, all of one length."""
        if not self.check or not len(raw[0]):
            return [np.empty(len(raw[0]), np.uint8) for _ in range(self.check)]
        return _multiply(_matrix(self.raw, self.check)[self.raw :], list(raw))

    def rebuild(self, have: Mapping[int, Matrix], wanted: Sequence[int]) -> dict[int, Matrix]:
        """The blocks `wanted`, from any r others by their indices."""
        if len(have) < self.raw:
            raise ValueError(f"{len(have)} blocks are there, {self.raw} are needed")
        given = {index: have[index] for index in wanted if index in have}
        missing = [index for index in wanted if index not in have]
        if not missing:
            return given
        chosen = sorted(have)[: self.raw]  # raw blocks first: the more of them, the sparser the matrix
        blocks = [have[index] for index in chosen]
        if not len(blocks[0]):
            return given | {index: blocks[0] for index in missing}
        matrix = _rebuilding(self.raw, self.check, tuple(chosen), tuple(missing))
        return given | dict(zip(missing, _multiply(matrix, blocks), strict=True))


@cache
def _matrix(raw: int, check: int) -> Matrix:
    return code_matrix(raw, check)


@lru_cache(maxsize=256)
def _rebuilding(raw: int, check: int, have: tuple[int, ...], wanted: tuple[int, ...]) -> Matrix:
    """A restore asks for the same one stripe after stripe."""
    return rebuilding_matrix(_matrix(raw, check), have, wanted)


def _multiply(matrix: Matrix, blocks: list[Matrix]) -> list[Matrix]:
    library = isal.load()
    if library is not None:
        return library.multiply(matrix, blocks)
    _say_once()
    return multiply_slowly(matrix, blocks)


def multiply_slowly(matrix: Matrix, blocks: list[Matrix]) -> list[Matrix]:
    """The same with NumPy's tables, for machines without ISA-L; and what its results are checked against."""
    made = []
    for row in matrix:
        total = np.zeros(len(blocks[0]), np.uint8)
        for factor, block in zip(row, blocks, strict=True):
            if factor:
                total ^= PRODUCT[factor][block]
        made.append(total)
    return made


@cache
def _say_once() -> None:
    log.warning("ISA-L was not found, so erasure coding runs at about 0.1 GB/s; install headgate's extra 'state'")
