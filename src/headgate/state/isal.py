"""ISA-L's erasure code through ctypes: the library that the pyeclib wheel brings along.

pyeclib's own functions copy every block and hold Python's lock while they compute. The two functions used here do
neither: other threads go on while a stripe is coded.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import logging
from functools import cache
from importlib.metadata import PackageNotFoundError, files

import numpy as np

from headgate.core.galois import Matrix

log = logging.getLogger("headgate")

TABLE_BYTES = 32
"""ISA-L expands every element of a matrix into a table of so many bytes."""


class Isal:
    """Multiplies blocks with a matrix."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._init, self._encode = library.ec_init_tables, library.ec_encode_data
        pointer, number = ctypes.c_void_p, ctypes.c_int
        self._init.argtypes, self._init.restype = [number, number, pointer, pointer], None
        self._encode.argtypes, self._encode.restype = [number, number, number, pointer, pointer, pointer], None

    def multiply(self, matrix: Matrix, blocks: list[Matrix]) -> list[Matrix]:
        """`matrix` x `blocks`; the blocks are contiguous and of one length."""
        rows, columns = matrix.shape
        length = len(blocks[0])
        tables = np.empty(TABLE_BYTES * rows * columns, np.uint8)
        matrix = np.ascontiguousarray(matrix)
        self._init(columns, rows, matrix.ctypes.data, tables.ctypes.data)
        made = [np.empty(length, np.uint8) for _ in range(rows)]
        self._encode(length, columns, rows, tables.ctypes.data, _addresses(blocks), _addresses(made))
        return made


def _addresses(blocks: list[Matrix]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(blocks))(*(block.ctypes.data for block in blocks))


@cache
def load() -> Isal | None:
    """The library of the wheel, or the system's; None where there is neither."""
    for path in [*_in_wheel(), *filter(None, [ctypes.util.find_library("isal")])]:
        try:
            return Isal(ctypes.CDLL(path))
        except (OSError, AttributeError) as error:
            log.info("%s cannot be used for erasure coding: %s", path, error)
    return None


def _in_wheel() -> list[str]:
    try:
        found = files("pyeclib") or []
    except PackageNotFoundError:
        return []
    return [str(file.locate()) for file in found if file.name.startswith("libisal")]
