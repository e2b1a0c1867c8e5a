"""From results to the targets table: each target can be met, missed and not measured, and says from what."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from headgate.bench.linear_road import lookup
from headgate.bench.linear_road.claims import CLAIMS, Claim
from headgate.bench.linear_road.evidence import answer
from headgate.bench.linear_road.measures import targets
from headgate.bench.linear_road.noise import noise
from headgate.bench.linear_road.report import report
from headgate.bench.report.target import Target
from tests.linear_road_results import Results, capacity, full, nothing_finished, query, results, run, runs

Spoil = Callable[[Results], None]


def target(found: Results, words: str) -> Target:
    matching = [row for row in targets(found) if all(word in row.measure for word in words.split("|"))]
    assert len(matching) == 1, [row.measure for row in matching]
    return matching[0]


def ours(found: Results, load: float | None = None) -> list[dict[str, Any]]:
    return [each for each in found["runs"] if each["contender"] == "slo-edf" and load in (None, each["load"])]


def spoil_capacity(scenario: str) -> Spoil:
    def spoil(found: Results) -> None:
        for entry in found["capacity"]:
            if (entry["scenario"], entry["contender"]) == (scenario, "slo-edf"):
                entry["load"] = 0.57  # 1.14 times the best static one

    return spoil


def spoil_queries(load: float, **figures: float) -> Spoil:
    def spoil(found: Results) -> None:
        for each in ours(found, load):
            next(iter(each["queries"].values())).update(figures)

    return spoil


def spoil_everywhere(key: str, factor: float, load: float | None = None) -> Spoil:
    def spoil(found: Results) -> None:
        for each in ours(found, load):
            for found_query in each["queries"].values():
                found_query[key] *= factor

    return spoil


def spoil_all_records(found: Results) -> None:
    for each in ours(found, 0.5):
        for found_query in each["queries"].values():
            found_query["cdf"] = [[1.1 * latency_s, share] for latency_s, share in found_query["cdf"]]


def spoil_cpu(found: Results) -> None:
    for each in ours(found, 0.5):
        each["cpu_s"] *= 1.2


def spoil_saturation(found: Results) -> None:
    for entry in found["saturation"]:
        entry["rows_per_s"] *= 0.9 if entry["contender"] == "slo-edf" else 1.0


def without(*keys: str) -> Spoil:
    return lambda found: found.update({key: [] for key in keys})


def without_contender(name: str) -> Spoil:
    return lambda found: found.update(runs=[each for each in found["runs"] if each["contender"] != name])


def without_load(load: float) -> Spoil:
    return lambda found: found.update(runs=[each for each in found["runs"] if each["load"] != load])


EACH = {
    "capacity|mixed-bursty": (spoil_capacity("mixed-bursty"), without("capacity")),
    "capacity|mixed-u": (spoil_capacity("mixed-u"), lambda found: found["best_static"].pop("mixed-u")),
    "capacity|equal-8-u": (spoil_capacity("equal-8-u"), None),
    "loads up to 0.7": (spoil_queries(0.7, violation_rate=0.011), without("runs")),
    "over sb-fifo, median": (spoil_everywhere("batch_max_p95_s", 1.7), without_contender("sb-fifo")),
    "over sb-fifo, worst": (spoil_queries(0.8, batch_max_p95_s=9.0), without_contender("slo-edf")),
    "over sb-fair, median": (spoil_everywhere("batch_max_p95_s", 1.7), without_contender("sb-fair")),
    "over sb-fair, worst": (spoil_queries(0.8, batch_max_p95_s=9.0), without("runs")),
    "Median latency|together": (spoil_all_records, without_contender("trigger-0")),
    "Median latency|geometric": (spoil_everywhere("p50_s", 1.1, 0.5), without_load(0.5)),
    "Median latency|worst": (spoil_queries(0.5, p50_s=9.0), without_contender("trigger-0")),
    "CPU": (spoil_cpu, without_contender("trigger-0")),
    "saturation": (spoil_saturation, without("saturation")),
    "clairvoyant": (spoil_queries(0.8, violation_rate=0.025), without("limit")),
}  # fmt: skip


@pytest.mark.parametrize("words", EACH)
def test_every_target_can_be_met_missed_and_not_measured(words: str) -> None:
    assert target(full(), words).verdict == "met"

    spoil, remove = EACH[words]
    spoiled = full()
    spoil(spoiled)
    assert target(spoiled, words).verdict == "missed"

    if remove is not None:
        missing = full()
        remove(missing)
        row = target(missing, words)
        assert (row.verdict, row.found, row.spread) == ("not measured", None, None)


def test_spoiling_one_target_leaves_the_others_alone() -> None:
    spoiled = full()
    spoil_saturation(spoiled)
    assert [row.measure for row in targets(spoiled) if row.verdict == "missed"] == [
        target(spoiled, "saturation").measure
    ]


def test_one_bad_query_shows_in_the_worst_but_not_in_the_middle() -> None:
    spoiled = full()
    for each in ours(spoiled):
        if (each["part"], each["scenario"], each["load"]) == ("cells", "equal-8-u", 0.5):
            each["queries"]["lr2"] |= {"p50_s": 1.8, "batch_max_p95_s": 9.0}
    assert target(spoiled, "Median latency|worst").verdict == "missed"
    assert target(spoiled, "Median latency|geometric").verdict == "met"
    assert target(spoiled, "over sb-fifo, worst").verdict == "missed"
    assert target(spoiled, "over sb-fifo, median").verdict == "met"


def test_higher_loads_are_none_of_the_promise_at_lower_ones() -> None:
    spoiled = full()
    spoil_queries(0.8, violation_rate=0.9)(spoiled)
    assert target(spoiled, "loads up to 0.7").verdict == "met"


def test_nothing_measured_is_no_target_met() -> None:
    assert {row.verdict for row in targets({})} == {"not measured"}
    assert len(targets({})) == len(EACH)


def test_equal_deadlines_without_a_capacity_are_named() -> None:
    [row] = [row for row in targets(full()) if row.verdict == "not measured"]
    assert "equal-5-u" in row.measure and "equal-8-u" not in row.measure


def test_ratios_are_made_within_a_repeat() -> None:
    """The median of the ratios (1.5), not the ratio of the medians (1.0)."""
    loads = {"slo-edf": (0.2, 0.4, 0.6), "static-0.5-fair": (0.6, 0.2, 0.4)}
    entries = [
        capacity("mixed-u", name, load, repeat) for name, found in loads.items() for repeat, load in enumerate(found)
    ]
    row = target(results(capacity=entries), "capacity|mixed-u")
    assert row.found == pytest.approx(1.5)
    assert row.spread == pytest.approx((1 / 3, 2.0))
    assert row.close


def test_a_repeat_that_only_one_contender_has_does_not_count() -> None:
    entries = [capacity("mixed-u", "slo-edf", 0.6, 0), capacity("mixed-u", "slo-edf", 6.0, 1)]
    row = target(results(capacity=[*entries, capacity("mixed-u", "static-0.5-fair", 0.3, 0)]), "capacity|mixed-u")
    assert row.by_repeat == (2.0,)


def test_runs_are_paired_within_a_repeat_and_a_cell() -> None:
    for other in ({"repeat": 1}, {"load": 0.8}, {"cores": 1}, {"scenario": "equal-5-u"}):
        made = [run("cells", "equal-8-u", "slo-edf"), run("cells", "equal-8-u", "sb-fifo") | other]
        assert target(results(runs=made), "over sb-fifo, worst").verdict == "not measured"


def test_no_capacity_at_all_on_the_other_side_is_infinitely_better() -> None:
    entries = [capacity("mixed-u", "slo-edf", 0.6), capacity("mixed-u", "static-0.5-fair", 0.0)]
    assert target(results(capacity=entries), "capacity|mixed-u").found == math.inf
    entries[0]["load"] = 0.0
    assert target(results(capacity=entries), "capacity|mixed-u").verdict == "not measured"


def test_a_stock_setting_that_got_further_than_the_best_one_is_named() -> None:
    found = full()
    assert target(found, "capacity|mixed-u").note == ""
    found["capacity"].append(capacity("mixed-u", "sb-fifo", 0.7))
    assert "sb-fifo got further" in target(found, "capacity|mixed-u").note


def test_the_worst_query_is_named_and_scaling_runs_do_not_count() -> None:
    found = full()
    guilty = next(each for each in ours(found, 0.7) if each["scenario"] == "mixed-bursty" and each["repeat"] == 1)
    guilty["queries"]["lr2"]["violation_rate"] = 0.5
    for each in ours(found):
        if each["part"] == "scaling":
            each["queries"]["lr1"]["violation_rate"] = 0.9
    row = target(found, "loads up to 0.7")
    assert row.worst is not None and row.worst.value == 0.5
    assert row.worst.where == "lr2, mixed-bursty, load 0.7, repeat 1"
    assert "scaling" not in row.made_from and "mixed" in row.made_from
    assert row.verdict == "met" and row.close  # one repeat of three is bad


def test_an_aborted_run_of_ours_is_infinitely_late_and_one_of_theirs_gets_the_benefit_of_the_doubt() -> None:
    found = results(runs=runs("cells", ["equal-8-u"], ("slo-edf", "sb-fifo"), (0.5,), 1))
    before = target(found, "over sb-fifo, worst").found
    found["runs"][1]["aborted"] = True
    assert target(found, "over sb-fifo, worst").found == before
    found["runs"][0]["aborted"] = True
    assert target(found, "over sb-fifo, worst").found == math.inf


def test_a_query_that_finished_nothing_was_late_with_everything() -> None:
    broken = run("cells", "equal-8-u", "slo-edf", 0.7)
    broken["queries"]["lr3"] = nothing_finished(8.0)
    assert lookup.violation_rate(broken, "lr3") == 1.0
    assert lookup.latency_s(broken, "lr3", "p95_s") == math.inf
    assert target(results(runs=[broken]), "loads up to 0.7").found == 1.0


def test_nothing_is_compared_with_a_query_that_finished_nothing() -> None:
    found = results(runs=runs("cells", ["equal-8-u"], ("slo-edf", "sb-fifo"), (0.5,), 1))
    found["runs"][1]["queries"] = dict.fromkeys(("lr1", "lr2", "lr3"), nothing_finished(8.0))
    assert target(found, "over sb-fifo, worst").verdict == "not measured"


def test_noise_is_the_spread_of_repeats() -> None:
    made = [run("cells", "equal-8-u", "slo-edf", 0.5, repeat, cpu_s=cpu_s) for repeat, cpu_s in enumerate((30.0, 36.0))]
    made[1]["queries"]["lr1"] = query(8.0, 0.4, 0.05)
    [found] = noise(results(runs=[*made, run("cells", "equal-8-u", "sb-fifo")]))
    assert (found.contender, found.repeats) == ("slo-edf", 2)
    assert found.cpu is not None and found.cpu.worst == pytest.approx(6 / 33)
    assert found.violations is not None and found.violations.worst == pytest.approx(0.05 - 0.00098)
    assert found.p95 is not None and found.p95.cells == 3


def test_a_run_that_broke_down_is_no_noise() -> None:
    made = [run("cells", "equal-8-u", "slo-edf", 0.5, repeat, aborted=repeat == 1) for repeat in range(2)]
    assert noise(results(runs=made))[0].p95 is None


def test_helpers_of_one_run() -> None:
    one = run("cells", "equal-8-u", "slo-edf", cpu_s=30.0, rows=1_700_000, measured_s=60.0)
    assert lookup.cpu_s_per_million(one) == pytest.approx(20.0)  # 3 x 500,000 records within the 60 s, 200,000 after
    assert lookup.rows_per_s(one) == pytest.approx(25_000.0)
    assert lookup.rows_per_busy_s(one, "lr1") == pytest.approx(480_000 / 31.0)
    idle = one | {"queries": {"lr1": nothing_finished(8.0)}}
    assert (lookup.cpu_s_per_million(idle), lookup.rows_per_s(idle)) == (None, 0.0)


def test_results_that_did_not_count_records_within_the_measured_time_have_no_cpu_figure() -> None:
    old = run("cells", "equal-8-u", "slo-edf", rows=1_700_000)
    del old["queries"]["lr2"]["rows_in_window"]
    assert (lookup.cpu_s_per_million(old), lookup.rows_per_s(old)) == (None, None)
    assert lookup.latency_s(old, "lr2", "p95_s") < 8.0


def left_behind(deadline_s: float) -> dict[str, Any]:
    """A query whose p95 lies among the records that had no result at the end."""
    unknown = dict.fromkeys(("p95_s", "p99_s", "max_s", "mean_s", "batch_max_p95_s"))
    at_least = {"at_least_s": dict.fromkeys(unknown, deadline_s), "left_late_rows": 120_000}
    return query(deadline_s, 0.4, 0.2, **unknown, **at_least)


def test_a_figure_among_records_without_a_result_is_infinite_for_us_and_the_least_for_them() -> None:
    one = run("cells", "equal-8-u", "slo-edf")
    one["queries"]["lr1"] = left_behind(8.0)
    assert lookup.latency_s(one, "lr1", "p95_s") == math.inf
    assert lookup.seen_latency_s(one, "lr1", "p95_s") == 8.0
    assert lookup.only_at_least(one, "lr1", "p95_s") and not lookup.only_at_least(one, "lr1", "p50_s")
    assert lookup.latency_s(one, "lr1", "p50_s") == pytest.approx(1.6)


def test_a_figure_beyond_the_end_is_our_miss_and_a_marked_win_against_theirs() -> None:
    found = results(runs=runs("cells", ["equal-8-u"], ("slo-edf", "sb-fifo"), (0.5,), 1))
    mine, other = found["runs"]
    other["queries"] = dict.fromkeys(("lr1", "lr2", "lr3"), left_behind(8.0))
    row = target(found, "over sb-fifo, worst")
    assert row.found == pytest.approx(mine["queries"]["lr1"]["batch_max_p95_s"] / 8.0)
    assert row.verdict == "met" and "sb-fifo lies beyond the end in 3 of 3" in row.note
    mine["queries"]["lr2"] = left_behind(8.0)
    assert target(found, "over sb-fifo, worst").found == math.inf  # and not infinite over infinite
    assert target(found, "over sb-fifo, worst").verdict == "missed"
    average = claim("average latency up to −48 %")
    told = answer(results(runs=[run("cells", "equal-10-u", "slo-edf"), run("cells", "equal-10-u", "sb-fifo") | {
        "queries": {"lr1": left_behind(10.0)}}]), average, "slo-edf")  # fmt: skip
    assert told == ("−80 %", "sb-fifo beyond the end counts with the least it waited")  # 2 s over at least 10 s


def test_a_capacity_has_the_clairvoyant_ratio_beside_it_of_the_same_repeats() -> None:
    entries = [capacity("mixed-u", name, load, 0) for name, load in (("slo-edf", 0.6), ("static-0.5-fair", 0.5))]
    found = results(capacity=entries)
    assert "clairvoyant" not in target(found, "capacity|mixed-u").note
    limits = [{"scenario": "mixed-u", "repeat": repeat, "load": load} for repeat, load in ((0, 0.7), (1, 9.0))]
    found["capacity_limit"] = [*limits, {"scenario": "mixed-bursty", "repeat": 0, "load": 9.0}]
    assert target(found, "capacity|mixed-u").note == "a clairvoyant scheduler, simulated: 1.40"


def test_a_run_is_held_against_the_limit_of_its_own_traffic() -> None:
    made = [run("cells", "equal-8-u", "slo-edf", 0.8, repeat) for repeat in range(2)]
    for each, late in zip(made, (0.01, 0.05), strict=True):
        for found_query in each["queries"].values():
            found_query["violation_rate"] = late
    entry = {"scenario": "equal-8-u", "load": 0.8, "violation_rates": dict.fromkeys(("lr1", "lr2", "lr3"), 0.03)}
    both = target(results(runs=made, limit=[entry]), "clairvoyant")
    assert both.by_repeat == pytest.approx((-0.02, 0.02))
    own = [dict.fromkeys(("lr1", "lr2", "lr3"), late) for late in (0.01, 0.05)]
    row = target(results(runs=made, limit=[entry | {"repeats": [0, 1], "by_repeat": own}]), "clairvoyant")
    assert row.by_repeat == pytest.approx((0.0, 0.0))


def test_a_p95_of_few_batches_is_called_the_maximum() -> None:
    found = results(runs=runs("cells", ["equal-8-u"], ("slo-edf", "sb-fifo"), (0.5,), 1))
    assert target(found, "over sb-fifo, worst").note == ""
    found["runs"][1]["queries"]["lr2"]["batches"] = 7
    assert "the maximum, not the p95, in 1 of 3" in target(found, "over sb-fifo, worst").note
    few = results(runs=[run("cells", "equal-10-u", name) for name in ("slo-edf", "sb-fifo")])
    few["runs"][0]["queries"]["lr1"]["batches"] = 19
    assert "fewer than 20 batches" in answer(few, claim("p95 up to −34 %"), "slo-edf").detail


def test_the_median_of_all_records_is_not_that_of_the_queries() -> None:
    quick, slow = query(1.0, 1.0, 0.0), query(1.0, 1.0, 0.0, cdf=[[5.0, 0.5], [9.0, 1.0]])
    quick["cdf"] = [[0.1, 0.9], [6.0, 1.0]]
    both = run("mixed", "mixed-u", "slo-edf") | {"queries": {"quick": quick, "slow": slow}}
    assert lookup.median_of_all_s(both) == 5.0
    assert lookup.median_of_all_s(both | {"aborted": True}) == math.inf
    assert lookup.median_of_all_s(both | {"queries": {"slow": nothing_finished(1.0)}}) == math.inf


def test_repeats_are_pooled_with_equal_weight() -> None:
    pooled = lookup.pooled([[[1.0, 0.5], [3.0, 1.0]], [[2.0, 1.0]]])
    assert pooled == [(1.0, 0.25), (2.0, 0.75), (3.0, 1.0)]
    assert lookup.quantile_s(pooled, 0.5) == 2.0
    assert lookup.quantile_s([], 0.5) is None


def test_a_repeat_that_finished_nothing_keeps_the_pooled_curve_low() -> None:
    assert lookup.pooled([[[1.0, 0.8]], []]) == [(1.0, 0.4)]
    assert lookup.pooled([[], []]) == []


def test_kinds_and_order_of_contenders() -> None:
    found = results()
    assert lookup.kind_of(found, "zstream-edf") == "paper"
    assert lookup.kind_of(found, "slo-edf") == "headgate"
    assert lookup.contenders(found)[0] == "slo-edf"
    assert lookup.contenders(found)[-2:] == ["static-0.25-fair", "static-0.5-fair"]


def claim(says: str) -> Claim:
    [found] = [each for each in CLAIMS if says in each.says]
    return found


def test_claims_are_held_against_the_same_cells() -> None:
    found = full()
    tail = claim("p95 up to −34 %")
    assert answer(found, tail, "zstream-edf").found == "−32 %"  # 0.85 / 1.25
    assert answer(found, tail, "slo-edf").found == "−68 %"
    worse = results(runs=[run("cells", "equal-10-u", "sb-fifo"), run("cells", "equal-10-u", "zstream-edf")])
    worse["runs"][1]["queries"]["lr1"]["batch_max_p95_s"] = 15.0 * worse["runs"][0]["queries"]["lr1"]["batch_max_p95_s"]
    assert answer(worse, tail, "zstream-edf").found == "+1400 %"
    assert answer(found, claim("lowest violation"), "qspark-fair").found == "27 of 54"  # on a par with trigger 0
    assert answer(found, claim("lowest violation"), "slo-edf").found == "0 of 54"  # also where ours is worse
    assert answer(found, claim("close to the deadline"), "slo-edf").found.endswith("×")


def test_claims_without_runs_are_not_measured() -> None:
    assert {answer({}, each, each.ours).found for each in CLAIMS} == {"not measured"}
    assert answer({}, claim("admission control brings"), "").found == "–"  # nobody carries out a rule of theirs


def test_a_single_load_says_nothing_about_low_traffic() -> None:
    found = results(runs=runs("cells", ["equal-10-u"], ("slo-edf", "sb-fifo"), (0.7,), 1))
    assert lookup.traffic_loads(found) == {"high": 0.7}
    assert answer(found, claim("low traffic: p95 up to −26 %"), "slo-edf").found == "not measured"
    assert answer(found, claim("high traffic: p95 up to −34 %"), "slo-edf").found == "−68 %"
    assert lookup.traffic_loads(full()) == {"low": 0.5, "high": 0.8}


def test_the_papers_own_rates_are_told_apart_from_loads_of_this_machine() -> None:
    made = runs("cells", ["equal-8-u"], ("slo-edf", "sb-fifo"), (0.7, 1_000.0, 10_000.0), 1)
    for each in made:
        each["load_met"] = each["load"] / 24_000 if each["load"] > 1 else each["load"]
        for found_query in each["queries"].values():
            found_query["batch_max_p95_s"] = 4.0 if each["contender"] == "sb-fifo" else 1.0 if each["load"] > 1 else 3.0
    found = results(runs=made)
    assert lookup.traffic_loads(found) == {"low": 1_000, "high": 10_000}
    assert target(found, "at 1,000 reports/s, 10,000 reports/s, over sb-fifo, worst").found == 0.25
    assert target(found, "at load 0.7, over sb-fifo, worst").found == 0.75
    assert target(found, "loads up to 0.7").made_from.endswith("3 runs, 1 repeat")
    assert "zStream’s Fig. 11" in report(found).html()


def test_the_lowest_of_all_is_judged_against_every_stock_contender_of_the_cell() -> None:
    made = runs("cells", ["equal-8-u"], ("slo-edf", "sb-fifo"), (0.8,), 2)
    lowest = claim("lowest violation")
    assert answer(results(runs=made), lowest, "slo-edf") == ("6 of 6", "lowest or equal of sb-fifo")
    better = run("sweep", "equal-8-u", "static-0.25-fair", 0.8, 1)  # of another part, in one of the repeats
    assert answer(results(runs=[*made, better]), lowest, "slo-edf") == (
        "3 of 6", "lowest or equal of sb-fifo, static-0.25-fair (3)",
    )  # fmt: skip
    only_ours = [each for each in made if each["contender"] == "slo-edf"]
    assert answer(results(runs=only_ours), lowest, "slo-edf").found == "not measured"


def test_more_cores_are_compared_with_fewer() -> None:
    made = [run("scaling", "equal-10-u", "sb-fifo", cores=cores) for cores in (1, 2, 4)]
    made[2]["queries"]["lr1"]["batch_max_p95_s"] = made[0]["queries"]["lr1"]["batch_max_p95_s"] / 2
    assert answer(results(runs=made), claim("stock FIFO does not gain"), "sb-fifo").found == "−50 %"
