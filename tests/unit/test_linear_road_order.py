"""Who runs when, and what traffic they get."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.bench.linear_road.limits import Ending, clairvoyant_queries
from headgate.bench.linear_road.order import groups, turns
from headgate.bench.linear_road.scenarios import (
    SCENARIOS,
    Window,
    find_scenario,
    realised_rate,
    traffic_text,
    traffic_within,
)
from headgate.core.traffic import Traffic, parse_traffic
from headgate.errors import BadParameter

KINDS = ("U", "bursty", "constant", "diurnal")


@pytest.mark.parametrize("kind", KINDS)
def test_a_rate_is_the_mean_whatever_the_traffic(kind: str) -> None:
    assert parse_traffic(traffic_text(kind, 9_000), 1).mean_rate == pytest.approx(9_000, rel=0.01)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("begin_s", "end_s"), [(35.0, 95.0), (15.0, 60.0), (10.0, 17.5)])
def test_a_window_has_the_rate_that_was_asked_for(kind: str, seed: int, begin_s: float, end_s: float) -> None:
    window = Window(begin_s, end_s, seed)
    assert realised_rate(traffic_within(kind, 9_000, window), window) == pytest.approx(9_000, rel=1e-3)


def test_chance_alone_would_not_have_it() -> None:
    assert realised_rate(traffic_text("U", 9_000), Window(15.0, 60.0, 1)) < 0.95 * 9_000


def test_every_promise_is_there_with_every_traffic() -> None:
    promises = ("mixed", "equal-5", "equal-8", "equal-10")
    assert set(SCENARIOS) == {f"{promise}-{kind.lower()}" for promise in promises for kind in KINDS}


def test_traffic_of_a_file_is_scaled_to_the_rate_of_the_window(tmp_path: Path) -> None:
    path = tmp_path / "Counts.txt"
    path.write_text("\n".join(str(second % 40) for second in range(100)))
    scenario, window = find_scenario(f"mixed-file:{path}"), Window(35.0, 95.0, 1)
    assert scenario.name == f"mixed-file:{path}" and scenario.title.endswith("counts of Counts.txt")
    assert scenario.deadlines_s == SCENARIOS["mixed-u"].deadlines_s
    for query in scenario.queries(9_000, window):
        assert realised_rate(query.rate, window) == pytest.approx(9_000, rel=1e-3)


def test_a_file_without_records_in_the_measured_seconds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.txt"
    path.write_text("\n".join(["5"] * 35 + ["0"] * 60))
    with pytest.raises(BadParameter, match="no report arrives from second 35 to 95"):
        find_scenario(f"equal-8-file:{path}").queries(9_000, Window(35.0, 95.0, 1))


@pytest.mark.parametrize("name", ["mixed-nothing", "equal-7-u", "equal-7-file:counts.txt", "mixed-file:", "mixed"])
def test_a_scenario_that_does_not_exist_is_told_with_the_remedy(name: str) -> None:
    with pytest.raises(BadParameter, match=r"mixed-bursty.*mixed-file:"):
        find_scenario(name)


def test_scenarios_with_the_same_queries_and_traffic_are_one_group() -> None:
    assert groups(["mixed-bursty", "equal-5-u", "mixed-u", "equal-8-u"]) == [
        ["mixed-bursty"], ["equal-5-u", "equal-8-u"], ["mixed-u"],
    ]  # fmt: skip


def test_every_contender_has_one_turn_in_every_repeat_and_blocks_stay_together() -> None:
    blocks = [["a", "b", "c"], [], ["c", "d", "e"]]
    for repeat in range(6):
        order = turns(blocks, repeat)
        assert sorted(order) == ["a", "b", "c", "d", "e"]
        assert {*order[:3]} == {"a", "b", "c"} or {*order[-3:]} == {"a", "b", "c"}


def test_everybody_is_first_of_a_block_and_comes_before_and_after_everybody() -> None:
    orders = [turns([["a", "b", "c"]], repeat) for repeat in range(6)]
    assert {order[0] for order in orders[::2]} == {"a", "b", "c"}
    for one, other in ("ab", "bc", "ac"):
        before = [order.index(one) < order.index(other) for order in orders]
        assert 0 < sum(before) < 6


def test_the_limit_has_the_traffic_and_the_window_of_the_repeat() -> None:
    window = Window(35.0, 95.0, seed=2)
    costs = {name: {"fixed_s": 0.1, "per_row_s": 1e-6} for name in ("lr1", "lr2", "lr3")}
    for query in clairvoyant_queries(SCENARIOS["equal-8-u"], 9_000, window, costs):
        arrived = query.traffic.count_before(95.0) - query.traffic.count_before(35.0)
        assert arrived == pytest.approx(60 * 9_000, rel=1e-3)
        assert query.traffic.count_before(200.0) == query.traffic.count_before(95.0)


def test_traffic_that_ends_is_the_same_until_then() -> None:
    whole = parse_traffic("U(100)", 5)
    ending = Traffic(Ending(whole.shape, 40))
    assert [ending.count_before(t) for t in (0, 17.3, 40)] == [whole.count_before(t) for t in (0, 17.3, 40)]
    assert ending.count_before(5_000) == whole.count_before(40)
