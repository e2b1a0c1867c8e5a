"""Two results against each other: only changes beyond the noise of the repeats count."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import pytest

from headgate.bench.linear_road.compare import Row, compare, regressed, to_text, warnings
from tests.linear_road_results import Results, capacity, full, nothing_finished, results, run, runs


def some(repeats: int = 3) -> Results:
    made = runs("cells", ["equal-8-u"], ("slo-edf", "sb-fifo"), (0.5,), repeats)
    searched = [
        capacity("mixed-u", name, load, repeat)
        for name, load in (("slo-edf", 0.8), ("sb-fifo", 0.4))
        for repeat in range(repeats)
    ]
    return results(runs=made, capacity=searched)


def slower(found: Results, contender: str, factor: float, key: str = "p95_s") -> Results:
    changed = copy.deepcopy(found)
    for each in changed["runs"]:
        for query in each["queries"].values() if each["contender"] == contender else ():
            query[key] *= factor
    return changed


def row(rows: list[Row], measure: str, contender: str = "slo-edf", where: str = "") -> Row:
    matching = [r for r in rows if r.key.measure == measure and r.key.contender == contender and where in r.key.where]
    assert len(matching) == 1, matching
    return matching[0]


def test_the_same_results_have_not_changed() -> None:
    rows = compare(full(deadlines_s=[8]), full(deadlines_s=[8]))
    assert {r.verdict for r in rows} == {"within noise"}
    assert {r.change for r in rows} == {0.0}
    assert {r.key.measure for r in rows} == {
        "p95, s",
        "p99, s",
        "late",
        "CPU s/million",
        "capacity, reports/s",
        "saturation, rows/s",
    }
    assert not regressed(rows)


@pytest.mark.parametrize(("factor", "verdict"), [(1.5, "worse"), (0.5, "better"), (1.05, "within noise")])
def test_a_change_counts_beyond_the_noise_of_repeats(factor: float, verdict: str) -> None:
    rows = compare(some(), slower(some(), "slo-edf", factor))
    found = row(rows, "p95, s", where="lr1")
    assert found.verdict == verdict
    assert found.change == pytest.approx(factor - 1)
    assert found.ratio == pytest.approx(found.new / found.old)
    assert found.noise == pytest.approx(2 * 0.04)  # twice the spread of three repeats
    assert regressed(rows) == (verdict == "worse")


def test_wide_repeats_hide_what_narrow_ones_show() -> None:
    old, new = some(), slower(some(), "slo-edf", 1.2)
    assert row(compare(old, new), "p95, s", where="lr1").verdict == "worse"
    old["runs"][0]["queries"]["lr1"]["p95_s"] *= 1.4
    assert row(compare(old, new), "p95, s", where="lr1").verdict == "within noise"
    assert row(compare(old, new), "p95, s", where="lr2").verdict == "worse"


@pytest.mark.parametrize(
    ("factor", "verdict"), [(2.1, "worse"), (1.9, "cannot tell"), (0.55, "cannot tell"), (0.45, "better")]
)
def test_one_repeat_tells_great_changes_only(factor: float, verdict: str) -> None:
    rows = compare(some(1), slower(some(1), "slo-edf", factor))
    assert row(rows, "p95, s", where="lr1").verdict == verdict
    assert {r.verdict for r in rows if r.key.measure != "p95, s"} == {"cannot tell"}
    assert regressed(rows) == (verdict == "worse")
    told = to_text(rows, everything=True)
    assert "no known noise" in told and "unknown" in told and "inf" not in told


@pytest.mark.parametrize(
    ("late", "cpu", "verdict"), [(0.06, 1.6, "worse"), (0.04, 1.4, "cannot tell"), (-0.06, 0.6, "better")]
)
def test_one_repeat_tells_great_changes_of_late_records_and_cpu(late: float, cpu: float, verdict: str) -> None:
    old, new = some(1), some(1)
    for found, more, factor in ((old, 0.0, 1.0), (new, late, cpu)):
        for each in found["runs"]:
            each["cpu_s"] *= factor
            each["queries"]["lr1"]["violation_rate"] = 0.1 + more
    rows = compare(old, new)
    assert row(rows, "late", where="lr1").verdict == verdict
    assert row(rows, "CPU s/million").verdict == verdict


def test_one_repeat_that_breaks_down_is_worse() -> None:
    new = some(1)
    new["runs"][0]["queries"]["lr1"] = nothing_finished(8.0)
    assert row(compare(some(1), new), "p95, s", where="lr1").verdict == "worse"
    assert row(compare(new, some(1)), "p95, s", where="lr1").verdict == "better"
    assert row(compare(new, new), "p95, s", where="lr1").verdict == "cannot tell"


def test_two_repeats_need_more_than_three() -> None:
    [two, three] = [row(compare(some(repeats), some(repeats)), "p95, s", where="lr1") for repeats in (2, 3)]
    assert two.noise / (0.02 / 0.99) == pytest.approx(3.0)
    assert three.noise / 0.04 == pytest.approx(2.0)


def test_less_is_worse_for_capacity_and_throughput() -> None:
    old, new = full(deadlines_s=[8]), full(deadlines_s=[8])
    for entry in new["capacity"]:
        entry["rate"] *= 0.5 if entry["contender"] == "slo-edf" else 2.0
    for entry in new["saturation"]:
        entry["rows_per_s"] *= 0.5
    rows = compare(old, new)
    assert row(rows, "capacity, reports/s", where="mixed-u").verdict == "worse"
    assert row(rows, "capacity, reports/s", "trigger-0", "mixed-u").verdict == "better"
    assert row(rows, "saturation, rows/s").verdict == "worse"


def test_late_records_are_compared_in_points() -> None:
    new = some()
    for each in new["runs"]:
        each["queries"]["lr1"]["violation_rate"] = 0.03 if each["contender"] == "slo-edf" else 0.0
    found = row(compare(some(), new), "late", where="lr1")
    assert found.verdict == "worse"
    assert found.change == pytest.approx(0.03 - 0.001)
    assert found.ratio is None
    assert "+2.90 points" in to_text([found])


def test_a_difference_that_nobody_would_act_on_is_none() -> None:
    old, new = some(), some()
    for found, rate in ((old, 0.0), (new, 0.001)):
        for each in found["runs"]:
            for query in each["queries"].values():
                query["violation_rate"] = rate
    assert row(compare(old, new), "late", where="lr1").verdict == "within noise"


def test_a_stock_contender_that_got_worse_is_no_regression_of_ours() -> None:
    rows = compare(some(), slower(some(), "sb-fifo", 2.0))
    assert row(rows, "p95, s", "sb-fifo", "lr1").verdict == "worse"
    assert not regressed(rows)


def test_runs_that_break_down_are_worse_not_noise() -> None:
    new = some()
    for each in new["runs"]:
        if each["contender"] == "slo-edf" and each["repeat"] > 0:
            each["queries"]["lr1"] = nothing_finished(8.0)
    rows = compare(some(), new)
    found = row(rows, "p95, s", where="lr1")
    assert (found.verdict, found.new) == ("worse", math.inf)
    assert compare(new, some())[0].verdict == "better"
    assert row(compare(new, new), "p95, s", where="lr1").verdict == "within noise"
    assert "inf" in to_text(rows)


def test_only_what_both_hold_is_compared() -> None:
    new = some()
    new["runs"] = [each | {"load": 0.6} for each in new["runs"]]
    assert {r.key.measure for r in compare(some(), new)} == {"capacity, reports/s"}
    assert compare({}, some()) == []
    assert to_text([]) == "nothing was measured in both"


def test_noise_alone_hardly_ever_counts() -> None:
    """Hundreds of rows from the same distribution: the exit code must not be a lottery."""
    random_ = random.Random(5)

    def noisy(each: dict[str, Any]) -> None:
        each["cpu_s"] *= random_.gauss(1, 0.05)
        for query in each["queries"].values():
            query["p95_s"] *= random_.gauss(1, 0.1)
            query["p99_s"] *= random_.gauss(1, 0.1)

    pairs = [(full(change=noisy, deadlines_s=[8]), full(change=noisy, deadlines_s=[8])) for _ in range(5)]
    rows = [r for old, new in pairs for r in compare(old, new) if r.key.measure != "late"]
    assert len(rows) > 1_000
    assert sum(r.verdict in ("better", "worse") for r in rows) <= len(rows) / 500


def test_the_text_shows_changes_first_and_everything_on_request() -> None:
    rows = compare(some(), slower(slower(some(), "slo-edf", 2.0), "sb-fifo", 0.3))
    lines = to_text(rows).splitlines()
    assert lines[0].split()[:2] == ["verdict", "contender"]
    assert lines[1].startswith("worse") and "slo-edf *" in lines[1]
    assert lines[-2].startswith("better") and "sb-fifo" in lines[-2]
    assert lines[-1] == f"{len(rows)} figures in both: 3 better, 3 worse, {len(rows) - 6} within noise, 0 cannot tell"
    assert len(to_text(rows, everything=True).splitlines()) == len(rows) + 2


def test_differences_of_machine_load_and_settings_are_warned_of() -> None:
    assert warnings(some(), some()) == []
    other = some()
    other["machine"] |= {"cores": 8, "memory_gb": 23.5}
    other["settings"]["measure_s"] = 10.0
    other["calibration"]["query_sets"]["lr1+lr2+lr3"] *= 1.3
    other["spark"] = "5.0.0"
    told = "\n".join(warnings(some(), other))
    for words in ("cores 2 and 8", "measure_s 60.0 and 10.0", "1.30 times the rate", "4.3.0 and 5.0.0"):
        assert words in told
    assert "memory" not in told  # a tenth of a gigabyte is the same machine
    assert warnings({}, {}) == []


def test_cpu_over_another_span_is_not_compared_and_warned_of() -> None:
    old = some()
    for each in old["runs"]:
        for query in each["queries"].values():
            del query["rows_in_window"]
    assert "CPU s/million" not in {r.key.measure for r in compare(old, some())}
    assert "CPU is compared only where" in "\n".join(warnings(old, some()))
    assert warnings(old, old) == []


def test_the_scaling_cells_are_told_apart_by_cores() -> None:
    made = [
        run("scaling", "equal-8-u", "slo-edf", repeat=repeat, cores=cores) for cores in (1, 2) for repeat in range(2)
    ]
    assert len([r for r in compare(results(runs=made), results(runs=made)) if r.key.measure == "CPU s/million"]) == 2
