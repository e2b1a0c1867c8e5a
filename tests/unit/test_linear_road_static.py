"""Stock Spark's static settings: their triggers, schedulers, slots and names."""

from __future__ import annotations

import pytest

from headgate.bench.linear_road.scenarios import SCENARIOS, SWEEP, find_contender, static
from headgate.errors import BadParameter


def test_every_trigger_is_tried_with_both_schedulers_on_the_same_slots() -> None:
    settings = [find_contender(name) for name in SWEEP]
    spare = {(each.tight_share, each.trigger_share, each.mode) for each in settings if not each.plain_slots}
    shares = (None, 0), (None, 0.25), (None, 0.5), (0.25, 0.5)
    assert spare == {(*share, mode) for share in shares for mode in ("FAIR", "FIFO")}
    assert any(setting.plain_slots for setting in settings)


def test_the_tightest_query_may_have_a_share_of_its_own() -> None:
    queries = SCENARIOS["mixed-u"].queries(1_000)
    one, two = static(0.5, "FAIR"), static(0.5, "FAIR", tight_share=0.25)
    assert [one.trigger_s(query, queries) for query in queries] == [0.75, 3.0, 10.0, 10.0]
    assert [two.trigger_s(query, queries) for query in queries] == [0.375, 3.0, 10.0, 10.0]
    assert [find_contender("slo-edf").trigger_s(query, queries) for query in queries] == [0, 0, 0, 0]


def test_static_settings_have_one_name_each() -> None:
    assert static(0.0, "FAIR").name == "trigger-0"
    assert static(1.0, "FIFO").name == "sb-fifo"
    assert find_contender("static-0.25-fifo") == static(0.25, "FIFO")
    assert find_contender("static-0.25-0.5-fair") == static(0.5, "FAIR", tight_share=0.25)
    for nonsense in ("fastest", "static-x-fair", "static-0.5-lifo"):
        with pytest.raises(BadParameter, match=nonsense):
            find_contender(nonsense)
    assert static(0.25, "FIFO").stock and not find_contender("scheduling-only").stock
