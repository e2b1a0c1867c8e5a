"""Arithmetic in the field of 256 elements, and the matrices of an erasure code.

A code has r raw and c check blocks. Its (r + c) x r matrix has the unit matrix on top, so that raw blocks are the data
itself, and a Cauchy matrix below: every square part of such a matrix can be inverted, so *any* r blocks give back the
data. (The paper takes a Vandermonde matrix, which has this property only after it was transformed.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.uint8]

POLYNOMIAL = 0x11D
"""x^8 + x^4 + x^3 + x^2 + 1: the field that ISA-L and most storage codes use."""

MOST_BLOCKS = 255
"""Raw and check blocks together: the field has no more distinct elements for the rows."""


def _tables() -> tuple[NDArray[np.int64], Matrix]:
    """Logarithms, and powers of the generator 2, twice over so that two logarithms can be added without a modulus."""
    powers, logarithms, value = np.zeros(512, np.uint8), np.zeros(256, np.int64), 1
    for exponent in range(255):
        powers[exponent] = powers[exponent + 255] = value
        logarithms[value] = exponent
        value = value << 1 ^ (POLYNOMIAL if value & 0x80 else 0)
    return logarithms, powers


_LOG, _POWER = _tables()


def _products() -> Matrix:
    a, b = np.arange(256)[:, None], np.arange(256)[None, :]
    return np.where((a == 0) | (b == 0), 0, _POWER[_LOG[a] + _LOG[b]]).astype(np.uint8)


PRODUCT = _products()
"""PRODUCT[a, b] = a * b; a row of it multiplies whole blocks by one number."""


def inverse(value: int) -> int:
    """1 / value."""
    if value == 0:
        raise ZeroDivisionError("0 has no inverse")
    return int(_POWER[255 - _LOG[value]])


def multiply(left: Matrix, right: Matrix) -> Matrix:
    """The product of two matrices; sums are exclusive or."""
    product: Matrix = np.bitwise_xor.reduce(PRODUCT[left[:, :, None], right[None, :, :]], axis=1)
    return product


def invert(matrix: Matrix) -> Matrix:
    """Gauss and Jordan; a singular matrix is a ZeroDivisionError."""
    size = len(matrix)
    work = np.concatenate([matrix, np.eye(size, dtype=np.uint8)], axis=1)
    for column in range(size):
        pivot = column + int(np.argmax(work[column:, column] != 0))
        work[[column, pivot]] = work[[pivot, column]]
        work[column] = PRODUCT[inverse(int(work[column, column])), work[column]]
        others = work[:, column].copy()
        others[column] = 0
        work ^= PRODUCT[others[:, None], work[column][None, :]]
    return work[:, size:].copy()


def code_matrix(raw: int, check: int) -> Matrix:
    """The unit matrix over a Cauchy matrix with the elements 1 / (i xor j), i >= raw > j."""
    rows = [[inverse(i ^ j) for j in range(raw)] for i in range(raw, raw + check)]
    return np.concatenate([np.eye(raw, dtype=np.uint8), np.array(rows, np.uint8).reshape(check, raw)])


def rebuilding_matrix(code: Matrix, have: Sequence[int], wanted: Sequence[int]) -> Matrix:
    """What to multiply the blocks `have` (exactly r of them) with to get the blocks `wanted`."""
    return multiply(code[list(wanted)], invert(code[list(have)]))
