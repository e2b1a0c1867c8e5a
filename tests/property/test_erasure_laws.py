"""Laws of the code, of packs in fragments, of placement and of the choice of state files."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.core.galois import PRODUCT, code_matrix, inverse, invert, multiply
from headgate.errors import BadParameter
from headgate.state import isal
from headgate.state.code import Code, multiply_slowly
from headgate.state.layout import TAG_BYTES, Layout
from headgate.state.placement import place, weakest_host
from headgate.state.versions import Incomplete, needed, parse_version

ELEMENTS = st.integers(0, 255)


@given(ELEMENTS, ELEMENTS, ELEMENTS)
def test_the_field_is_a_field(a: int, b: int, c: int) -> None:
    assert PRODUCT[a, b] == PRODUCT[b, a]
    assert PRODUCT[a, PRODUCT[b, c]] == PRODUCT[PRODUCT[a, b], c]
    assert PRODUCT[a, b ^ c] == PRODUCT[a, b] ^ PRODUCT[a, c]
    assert PRODUCT[a, 1] == a
    if a:
        assert PRODUCT[a, inverse(a)] == 1


def test_every_square_part_of_small_codes_can_be_inverted() -> None:
    for raw, check in ((1, 3), (2, 2), (4, 3), (7, 3), (8, 4)):
        matrix = code_matrix(raw, check)
        for rows in itertools.combinations(range(raw + check), raw):
            part = matrix[list(rows)]
            assert (multiply(part, invert(part)) == np.eye(raw)).all()


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_r_blocks_give_back_all(data: st.DataObject) -> None:
    raw, check = data.draw(st.integers(1, 20)), data.draw(st.integers(0, 10))
    length = data.draw(st.integers(0, 300))
    code = Code(raw, check)
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    blocks = list(random.integers(0, 256, (raw, length), dtype=np.uint8))
    everything = dict(enumerate([*blocks, *code.encode(blocks)]))
    kept = data.draw(st.permutations(range(raw + check)))[:raw]
    rebuilt = code.rebuild({index: everything[index] for index in kept}, range(raw + check))
    assert all((rebuilt[index] == block).all() for index, block in everything.items())


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.integers(1, 8), st.integers(1, 5000), st.integers(0, 99))
def test_isal_computes_what_the_tables_say(raw: int, check: int, length: int, seed: int) -> None:
    library = isal.load()
    if library is None:
        pytest.skip("ISA-L is not installed")
    random = np.random.default_rng(seed)
    blocks = list(random.integers(0, 256, (raw, length), dtype=np.uint8))
    matrix = random.integers(0, 256, (check, raw), dtype=np.uint8)
    for fast, slow in zip(library.multiply(matrix, blocks), multiply_slowly(matrix, blocks), strict=True):
        assert (fast == slow).all()


def test_too_few_blocks_are_refused() -> None:
    block = np.zeros(4, np.uint8)
    with pytest.raises(ValueError, match="1 blocks are there, 2 are needed"):
        Code(2, 1).rebuild({0: block}, [1])


@pytest.mark.parametrize(("raw", "check"), [(0, 3), (-1, 3), (True, 1), (7, -1), (200, 56)])
def test_impossible_codes_are_refused(raw: int, check: int) -> None:
    with pytest.raises(BadParameter):
        Code(raw, check)


@given(st.integers(0, 5000), st.integers(1, 12), st.integers(1, 64))
def test_stripes_cover_a_pack_and_fragments_hold_them(length: int, raw: int, cell: int) -> None:
    layout = Layout(length, raw, cell)
    assert sum(layout.data_bytes(stripe) for stripe in range(layout.stripes)) == length
    at = 0
    for stripe in range(layout.stripes):
        start, end = layout.records(stripe, 1)
        assert start == at
        at = end
        assert layout.cell_bytes(stripe) * raw >= layout.data_bytes(stripe)
        assert end - start == layout.cell_bytes(stripe) + TAG_BYTES
    assert layout.fragment_bytes == at


@given(st.integers(1, 3000), st.integers(1, 6), st.integers(1, 50), st.data())
def test_the_stripes_of_spans_are_those_that_hold_their_bytes(
    length: int, raw: int, cell: int, data: st.DataObject
) -> None:
    layout = Layout(length, raw, cell)
    start = data.draw(st.integers(0, length - 1))
    size = data.draw(st.integers(0, length - start))
    expected = sorted({byte // layout.stripe_bytes for byte in range(start, start + size)})
    assert layout.stripes_of([(start, size)]) == expected


@given(
    st.integers(1, 30),
    st.lists(st.integers(0, 5), min_size=1, max_size=15),
    st.integers(0, 50),
)
def test_fragments_are_spread_evenly_over_hosts_and_places(fragments: int, host_of: list[int], turn: int) -> None:
    hosts = {f"place-{number}": f"host-{host}" for number, host in enumerate(host_of)}
    placed = place(range(fragments), hosts, {}, turn)
    assert sorted(placed) == list(range(fragments))
    on_host = Counter({host: 0 for host in hosts.values()})
    on_host.update(hosts[name] for name in placed.values())
    assert max(on_host.values()) - min(on_host.values()) <= 1
    for host in on_host:
        there = Counter({name: 0 for name in hosts if hosts[name] == host})
        there.update(name for name in placed.values() if hosts[name] == host)
        assert max(there.values()) - min(there.values()) <= 1
    assert weakest_host(placed, hosts)[1] == max(on_host.values())


def test_new_fragments_go_where_fewest_are() -> None:
    hosts = {"a": "a", "b": "b", "c": "c"}
    assert place([5], hosts, {"a": 1, "b": 1}) == {5: "c"}


@given(st.integers(1, 60), st.integers(1, 12), st.sets(st.integers(1, 60)), st.booleans())
def test_a_version_is_rebuilt_from_what_is_chosen(wanted: int, keep: int, whole: set[int], newer: bool) -> None:
    first = max(1, wanted - keep)
    names = [f"{number}.delta" for number in range(first, wanted + 1)]
    names += [f"{number}.snapshot" for number in whole if number <= wanted]
    names += [f"{wanted + 1}.delta"] if newer else []
    files = [found for name in names if (found := parse_version(name)) is not None]
    bases = [number for number in whole if number <= wanted]
    base = max(bases, default=0)
    if base < first - 1:
        with pytest.raises(Incomplete):
            needed(files, wanted, lambda version, unique: True)
        return
    chosen = {file.name for file in needed(files, wanted, lambda version, unique: True)}
    expected = {f"{number}.delta" for number in range(base + 1, wanted + 1)}
    assert chosen == expected | ({f"{base}.snapshot"} if base else set())


def test_states_of_tries_that_were_not_committed_are_no_base() -> None:
    names = ["3_aa.zip", "4_bb.zip", "4_aa.changelog", "5_aa.changelog", "5_cc.changelog", "4_bb.changelog"]
    files = [found for name in names if (found := parse_version(name)) is not None]
    chosen = {file.name for file in needed(files, 5, lambda version, unique: unique == "aa")}
    assert chosen == {"3_aa.zip", "4_aa.changelog", "4_bb.changelog", "5_aa.changelog", "5_cc.changelog"}


@pytest.mark.parametrize("name", ["schema", "12", "x.zip", "1.zip.tmp", "000012-ab.sst"])
def test_other_names_are_not_versions(name: str) -> None:
    assert parse_version(name) is None
