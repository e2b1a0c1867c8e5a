"""Sentences for WordCount: a Zipf vocabulary, and lengths from one word up. Pure NumPy.

The paper's sentences are Wikipedia's and have 1 to 32 words; it does not tell how many have how many. Here every length
up to the largest is as frequent as every other, the widest spread that the range allows.
"""

from __future__ import annotations

import numpy as np

VOCABULARY = 20_000
"""Words: as many as a fluent reader knows, and enough that most words of a small batch are rare ones."""

EXPONENT = 1.0
"""Zipf's own: the k-th word is as frequent as 1 / k."""

_LETTERS = "etaoinshrdlcumwfgypbvkjxqz"
"""By their frequency in English; which letter it is means nothing here."""


def sentences(count: int, max_words: int, seed: int) -> list[bytes]:
    """`count` sentences of 1 to `max_words` words, the same for the same seed."""
    chance = np.random.default_rng(seed)
    lengths = chance.integers(1, max_words + 1, count)
    edges = np.cumsum(1.0 / np.arange(1, VOCABULARY + 1) ** EXPONENT)
    drawn = np.searchsorted(edges, chance.random(int(lengths.sum())) * edges[-1])
    words = [word(rank).encode() for rank in range(VOCABULARY)]
    ends = np.cumsum(lengths)
    return [
        b" ".join(words[rank] for rank in drawn[first:end]) for first, end in zip(ends - lengths, ends, strict=True)
    ]


def word(rank: int) -> str:
    """The word of a rank from 0 on: frequent ones are short, as in a language."""
    letters = ""
    rank += 1
    while rank > 0:
        rank, letter = divmod(rank - 1, len(_LETTERS))
        letters = _LETTERS[letter] + letters
    return letters
