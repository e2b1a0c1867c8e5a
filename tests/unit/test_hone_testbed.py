"""The testbed's pure parts: sentences, traffic, latencies from checkpoints, forecast, batch room, programme, report."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headgate.bench.hone import calibration, forecast, skew, spark_targets
from headgate.bench.hone.checkpoint import committed_ends, read_batches
from headgate.bench.hone.experiment import FILE, Experiment
from headgate.bench.hone.feeder import in_order
from headgate.bench.hone.latency import Batches, feeder_lag, figures, largest_backlog, latencies_s
from headgate.bench.hone.programme import CONTENDERS, MAIN, Programme, middle
from headgate.bench.hone.report import write_report
from headgate.bench.hone.sentences import sentences, word
from headgate.bench.linear_road.order import turns
from headgate.bench.linear_road.store import machine
from headgate.cli import bench_hone
from headgate.errors import BadParameter, HeadgateError

# ---- sentences


def test_sentences_have_every_length_and_zipfs_words() -> None:
    made = [each.decode().split(" ") for each in sentences(20_000, 10, seed=3)]
    lengths = Counter(map(len, made))
    assert set(lengths) == set(range(1, 11))
    assert min(lengths.values()) > 0.9 * 20_000 / 10
    often = Counter(each for words in made for each in words)
    assert often[word(0)] / often[word(1)] == pytest.approx(2, rel=0.1)
    assert often[word(0)] / often[word(9)] == pytest.approx(10, rel=0.2)


def test_the_same_seed_gives_the_same_sentences() -> None:
    assert sentences(50, 30, seed=1) == sentences(50, 30, seed=1) != sentences(50, 30, seed=2)


def test_words_differ_and_frequent_ones_are_short() -> None:
    assert len({word(rank) for rank in range(20_000)}) == 20_000
    assert (len(word(0)), len(word(25)), len(word(26)), len(word(19_999))) == (1, 1, 2, 4)


# ---- traffic


def traffic(kind: str, seed: int = 1) -> skew.Traffic:
    return skew.Traffic(kind, rate=2_000.0, seed=seed, settle_s=10.0, seconds=100.0, max_words=30)


@pytest.mark.parametrize("kind", skew.TITLES)
def test_every_kind_has_its_mean_rate_in_order(kind: str) -> None:
    stamps = traffic(kind).stamps_s()
    assert len(stamps) == skew.PARTITIONS
    assert all(np.all(np.diff(each) >= 0) and each[0] >= 0 and each[-1] < 100.0 for each in stamps)
    # What a cut off producer did not send while nothing was measured is within the minute that it gathered.
    cut_off = (skew.CUT_OFF_S - 10.0) * 200 if kind == skew.CATCH_UP else 0.0
    assert sum(map(len, stamps)) == pytest.approx(200_000 + cut_off, rel=0.02)


def test_one_partition_catches_up_and_another_one_next_time() -> None:
    for seed in (1, 2):
        stamps = traffic(skew.CATCH_UP, seed).stamps_s()
        assert stamps[seed][0] == 10.0 == stamps[seed][10_000]  # nothing before, a minute's worth at once
        assert np.searchsorted(stamps[seed + 1], 10.0) == pytest.approx(2_000, rel=0.1)


def test_bursts_are_of_one_partition_at_a_time_of_its_own() -> None:
    stamps = traffic(skew.BURSTS).stamps_s()
    counts = np.array([np.histogram(each, bins=100, range=(0, 100))[0] for each in stamps])
    assert counts.max() > 8 * np.median(counts)
    assert len(set(counts[:, :20].argmax(axis=1))) > 3


def test_lasting_skew_is_zipfs() -> None:
    counts = [len(each) for each in traffic(skew.HOT).stamps_s()]
    assert counts[0] / counts[1] == pytest.approx(2, rel=0.05) and counts[0] / counts[9] == pytest.approx(10, rel=0.05)


def test_records_are_sent_in_the_order_in_which_they_are_due() -> None:
    due_s, partitions = in_order([np.array([1.0, 5.0]), np.array([0.5, 5.0, 6.0])])
    assert due_s.tolist() == [0.5, 1.0, 5.0, 5.0, 6.0]
    assert partitions.tolist() == [1, 0, 0, 1, 1]


# ---- latencies

STAMPS = [np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.6, 3.0])]
BATCHES = Batches(np.array([[1, 0], [1, 2], [3, 2]]), np.array([1.0, 2.0, 4.0]))


def test_a_latency_is_from_the_stamp_to_the_commit_of_the_batch_that_took_it() -> None:
    first, second = latencies_s(STAMPS, BATCHES, ended_s=10.0)
    assert first.tolist() == [1.0, 3.0, 2.0]
    assert second.tolist() == pytest.approx([1.5, 1.4, 7.0])  # the last one was never taken


def test_figures_are_of_the_records_that_came_in_time() -> None:
    found = figures(STAMPS, BATCHES, from_s=0.55, to_s=3.0, ended_s=10.0)
    assert (found["rows"], found["unfinished_rows"]) == (3, 0)
    assert found["mean_s"] == pytest.approx((3.0 + 2.0 + 1.4) / 3)
    assert found["max_s"] == 3.0
    assert found["slowest"]["partition"] == 0 and found["slowest"]["rows"] == 2
    assert [each["rows"] for each in found["partitions"]] == [2, 1]


def test_records_that_nobody_took_are_counted() -> None:
    assert figures(STAMPS, BATCHES, 0.0, 9.0, 10.0)["unfinished_rows"] == 1
    nothing = Batches(np.zeros((0, 2), np.int64), np.zeros(0))
    assert figures(STAMPS, nothing, 0.0, 9.0, 10.0)["unfinished_rows"] == 6
    assert figures(STAMPS, BATCHES, 20.0, 30.0, 40.0) == {"rows": 0}


def test_the_largest_backlog_is_of_one_partition() -> None:
    #  at 1.0 two records of the second have come and none is taken; at 2.0 one of the first waits
    assert largest_backlog(STAMPS, BATCHES, 0.0, 9.0) == 2
    assert largest_backlog(STAMPS, BATCHES, 1.5, 3.0) == 1
    assert largest_backlog(STAMPS, BATCHES, 5.0, 9.0) == 0


def test_the_feeders_lag_is_of_the_records_that_were_due_in_the_measured_time() -> None:
    planned = [np.array([0.5, 1.0, 2.0]), np.array([1.5, 3.0])]
    came = [np.array([5.5, 1.1, 2.4]), np.array([3.5, 9.0])]  # one that is late to the end of the time counts too
    assert feeder_lag(planned, came, 1.0, 3.0, 10.0) == {
        "feeder_lag_p99_s": pytest.approx(np.quantile([0.1, 0.4, 2.0], 0.99)),
        "feeder_lag_max_s": pytest.approx(2.0),
    }


def test_records_that_were_never_sent_are_late_until_the_end() -> None:
    planned = [np.array([1.0, 2.0]), np.array([1.0])]
    found = feeder_lag(planned, [np.array([1.0]), np.array([1.0])], 0.0, 3.0, ended_s=10.0)
    assert found["feeder_lag_max_s"] == 8.0
    twice = [np.array([1.0, 2.5, 9.0]), np.array([1.0])]  # a record more than was planned
    assert feeder_lag(planned, twice, 0.0, 3.0, ended_s=10.0)["feeder_lag_max_s"] == 0.5
    assert feeder_lag(planned, planned, 5.0, 6.0, 10.0) == {}  # nothing was due then


# ---- checkpoints


def commit(checkpoint: Path, number: int, positions: dict[str, int], at_s: float) -> None:
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
    offsets = ["v1", '{"batchWatermarkMs":0,"conf":{"a":"b"}}', json.dumps({"topic": positions})]
    (checkpoint / "offsets" / str(number)).write_text("\n".join(offsets))
    (checkpoint / "commits" / str(number)).write_text("v1\n{}")
    (checkpoint / "commits" / f".{number}.crc").write_text("checksum")
    os.utime(checkpoint / "commits" / str(number), (at_s, at_s))


def test_batches_are_read_from_a_checkpoint_in_their_order(tmp_path: Path) -> None:
    assert committed_ends(tmp_path, "topic", 2).tolist() == [0, 0]
    commit(tmp_path, 10, {"0": 7, "1": 5}, 1003.25)
    commit(tmp_path, 9, {"0": 3}, 1001.5)
    (tmp_path / "offsets" / "11").write_text('v1\n{}\n{"topic":{"0":9,"1":9}}')  # not committed
    found = read_batches(tmp_path, "topic", 2)
    assert found.ends.tolist() == [[3, 0], [7, 5]]
    assert found.committed_s.tolist() == [1001.5, 1003.25]
    assert committed_ends(tmp_path, "topic", 2).tolist() == [7, 5]


# ---- forecast


@pytest.mark.parametrize("rule", forecast.RULES)
def test_a_simulated_rule_takes_everything_once_and_no_batch_has_more_than_its_room(rule: str) -> None:
    stamps = [each[each < 8.0] for each in traffic(skew.BURSTS).stamps_s()]
    batches = forecast.simulated(stamps, rule, room=500, trigger_s=0.25, batch_s=0.1)
    taken = np.diff(batches.ends, axis=0)
    assert taken.min() >= 0 and taken.sum(axis=1).max() <= 500
    assert batches.ends[-1].tolist() == [len(each) for each in stamps]
    assert min(each.min() for each in latencies_s(stamps, batches, 0.0)) >= 0.1


def test_which_rule_wins_depends_on_the_skew_and_oldest_never_loses() -> None:
    slowest = {
        (kind, rule): _forecast(kind, rule)["slowest"]["p99_s"]
        for kind in (skew.CATCH_UP, skew.HOT)
        for rule in forecast.RULES
    }
    assert slowest[skew.CATCH_UP, "lbf"] < 0.75 * slowest[skew.CATCH_UP, "proportional"]
    assert slowest[skew.HOT, "lbf"] > 1.5 * slowest[skew.HOT, "proportional"]
    for kind in (skew.CATCH_UP, skew.HOT):
        assert slowest[kind, "oldest"] <= 1.02 * min(slowest[kind, rule] for rule in forecast.RULES)


def test_all_rules_that_use_their_room_have_the_same_average() -> None:
    found = [_forecast(skew.CATCH_UP, rule, whole=True)["mean_s"] for rule in ("lbf", "oldest", "round-robin")]
    assert found == pytest.approx([found[0]] * 3, rel=0.01)


def _forecast(kind: str, rule: str, whole: bool = False) -> dict[str, Any]:
    stamps = skew.Traffic(kind, 1_050.0, seed=1, settle_s=5.0, seconds=45.0, max_words=30).stamps_s()
    return forecast.forecast(stamps, rule, 400, 0.4, 0.3, *((0.0, 100.0) if whole else (5.0, 35.0)))


def test_the_most_that_a_rule_can_gain_is_what_simulation_finds() -> None:
    assert forecast.most_to_gain(1) == pytest.approx(0.0, abs=1e-6)
    assert forecast.most_to_gain(10) == pytest.approx(0.524, abs=0.001)
    assert forecast.most_to_gain(100) > forecast.most_to_gain(10)
    # A burst of 200 batches' worth in one of ten partitions at full load, with batches that are short against it.
    stamps = [np.arange(0, 900, 1 / 20) + part / 200 for part in range(10)]
    stamps[0] = np.sort(np.concatenate([stamps[0], np.full(40_000, 1.0)]))
    served = [
        latencies_s(stamps, forecast.simulated(stamps, rule, 200, 1.0, 0.0), 0.0)[0][20:40_020].max()
        for rule in ("lbf", "proportional")
    ]
    assert 1 - served[0] / served[1] == pytest.approx(forecast.most_to_gain(10), abs=0.02)


# ---- batch room


def test_the_trigger_is_the_shortest_that_the_slowest_source_bears() -> None:
    quick, slow = calibration.BatchCost(0.1, 1e-5), calibration.BatchCost(0.21, 4e-5)
    alone, found = calibration.room([quick]), calibration.room([quick, slow])
    assert (alone.trigger_s, found.trigger_s) == (0.2, 0.5)
    assert [alone.rows, found.rows] == pytest.approx([4_000, 3_500], abs=1)
    assert found.capacity == found.rows / 0.5
    with pytest.raises(HeadgateError, match="nothing can be compared"):
        calibration.room([calibration.BatchCost(9.0, 1e-5)])


def test_a_cost_is_made_of_two_batches() -> None:
    found = calibration.cost(0.205, 0.3)
    assert (found.fixed_s, found.record_s) == pytest.approx((0.2, 1e-5))
    assert found.of(1_000) == pytest.approx(0.21)
    assert calibration.cost(0.3, 0.2).record_s > 0  # noise: a large batch that was quicker


def test_a_calibration_goes_on_while_batches_become_faster() -> None:
    assert calibration.still_falling({"a": [1.0], "b": [1.0]})
    assert calibration.still_falling({"a": [9.0, 1.0, 0.7], "b": [9.0, 1.0, 1.0]})
    assert not calibration.still_falling({"a": [9.0, 1.0, 0.97], "b": [9.0, 1.0, 1.1]})


# ---- programme


def test_contenders_take_turns_and_all_meet_in_every_setting() -> None:
    runs = list(Programme(repeats=2).runs())
    settings = Programme().settings()
    assert len(settings) == 4 * 3 + 3
    assert len(runs) == len(set(runs)) == 2 * len(settings) * len(CONTENDERS)
    assert {runs[5 * k][2].name for k in range(len(settings))} == set(CONTENDERS)  # everybody begins at times
    assert turns(["abc"], 0) == ["a", "b", "c"] and turns(["abc"], 1) == ["a", "c", "b"]
    assert middle([1.05, 0.85, 0.95]) == 0.95


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bench_hone.arguments(parser)
    return parser.parse_args(["--spark", *words])


def test_a_programme_is_narrowed_to_what_was_asked_for() -> None:
    found = bench_hone.programme_of(parsed("--skews", "hot", "--loads", "0.9", "--repeats", "5", "--seconds", "20"))
    assert (found.skews, found.loads, found.repeats, found.measure_s) == (("hot",), (0.9,), 5, 20.0)
    assert [each.title for each in found.settings()] == ["shuffle-30, hot, load 0.9"]
    assert bench_hone.programme_of(parsed("--quick")).repeats == 1
    for wrong in (["--skews", "steep"], ["--contenders", "lbf,best"], ["--loads", "0"], ["--repeats", "0"]):
        with pytest.raises(BadParameter):
            bench_hone.programme_of(parsed(*wrong))


# ---- going on with a folder


def begun(folder: Path) -> dict[str, Any]:
    """What a run that was interrupted at once leaves behind."""
    data = Experiment(Programme(), folder, "headgate bench hone --spark", lambda *_: None).data
    (folder / FILE).write_text(json.dumps(data))
    return data


def go_on(folder: Path, programme: Programme) -> Experiment:
    return Experiment(programme, folder, "headgate bench hone --spark", lambda *_: None)


def test_a_folder_goes_on_with_more_of_the_same(tmp_path: Path) -> None:
    data = begun(tmp_path)
    assert go_on(tmp_path, Programme(repeats=5)).data == data


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"spark": "3.5.0"}, "spark 3.5.0"),
        ({"headgate": "0.0.1"}, "headgate 0.0.1"),
        ({"machine": machine() | {"cores": 96}}, "machine cores 96"),
        ({"settings": {"measure_s": 40.0, "settle_s": 10.0, "seed": 7}}, "settings seed 7 (now 1)"),
    ],
)
def test_a_folder_that_was_begun_otherwise_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    (tmp_path / FILE).write_text(json.dumps(begun(tmp_path) | change))
    with pytest.raises(BadParameter) as refused:
        go_on(tmp_path, Programme())
    assert refused.value.problem.startswith(f"it holds results with {told}")
    assert refused.value.problem.count("now") == 1  # nothing else is blamed


# ---- targets and report


def run_of(contender: str, kind: str, slowest_s: float, repeat: int = 0, **more: Any) -> dict[str, Any]:
    spread = {"rows": 9, "mean_s": 1.0, "p50_s": 1.0, "p95_s": 2.0, "p99_s": slowest_s, "max_s": 9.0}
    return {
        "workload": MAIN.name, "skew": kind, "load": 0.95, "contender": contender, "repeat": repeat,
        "slowest": spread | {"partition": 1}, "partitions": [spread] * 10, "unfinished_rows": 0,
        "largest_backlog_rows": 5, "batches": 9, "batch_p50_s": 0.2, "batch_p95_s": 0.3, "overruns": 0.1,
    } | spread | more  # fmt: skip


def results(runs: list[dict[str, Any]]) -> dict[str, Any]:
    costs = {name: {"fixed_s": 0.2, "record_s": 1e-5} for name in ("lbf", "spark")}
    return {
        "spark": "4.3.0", "machine": {"cores": 2}, "settings": {"measure_s": 60.0, "settle_s": 10.0, "seed": 1},
        "calibration": {MAIN.name: {"trigger_s": 0.5, "rows": 5_000, "costs": costs}}, "runs": runs,
        "forecast": [run_of("lbf", skew.CATCH_UP, 2.2)],
    }  # fmt: skip


def test_targets_hold_runs_of_the_same_traffic_against_each_other() -> None:
    runs = [run_of("lbf", skew.CATCH_UP, 2.0, 0), run_of("proportional", skew.CATCH_UP, 8.0, 0)]
    runs += [run_of("lbf", skew.CATCH_UP, 3.0, 1), run_of("proportional", skew.CATCH_UP, 4.0, 1)]
    runs += [run_of("lbf", skew.EVEN, 1.2), run_of("spark", skew.EVEN, 1.0)]
    found = {row.measure: row for row in spark_targets.targets(results(runs))}
    caught_up, uneven = (
        next(row for name, row in found.items() if kind in name and peer in name)
        for kind, peer in (("catches up", "same source"), ("no skew", "Spark’s own"))
    )
    assert caught_up.by_repeat == (0.75, 0.25) and caught_up.verdict == "met"
    assert uneven.by_repeat == (1.2,) and uneven.verdict == "missed"
    assert sum(row.verdict == "not measured" for row in found.values()) == 6


def test_losses_are_told_the_worst_first() -> None:
    runs = [run_of("lbf", skew.HOT, 4.0), run_of("oldest", skew.HOT, 1.0), run_of("spark", skew.HOT, 2.0)]
    assert [(each.peer, each.ratio) for each in spark_targets.losses(results(runs))] == [
        ("oldest", 4.0),
        ("spark", 2.0),
    ]


def test_the_report_shows_what_was_measured(tmp_path: Path) -> None:
    runs = [run_of(name, kind, 1.0 + number) for number, name in enumerate(CONTENDERS) for kind in skew.TITLES]
    runs += [run_of(name, skew.CATCH_UP, 2.0, workload="partial-key-30") for name in CONTENDERS]
    page = write_report(None, tmp_path / "report.html", results(runs)).read_text()
    for expected in ("catches up", "never taken", "partial-key-30", "where largest backlog first loses", "52 %"):
        assert expected in page
    assert "Fig. 6" not in page
    assert page.count("<svg") > 15


def test_the_report_copes_with_a_single_run(tmp_path: Path) -> None:
    page = write_report(None, tmp_path / "report.html", results([run_of("lbf", skew.EVEN, 1.0)])).read_text()
    assert "not measured" in page and "Nowhere" in page


def test_the_report_marks_runs_whose_traffic_came_late(tmp_path: Path) -> None:
    seen = [("lbf", 0, 0.25), ("lbf", 1, 0.26), ("spark", 0, 0.25)]  # half a trigger is 0.25 s
    runs = [
        run_of(name, skew.EVEN, 1.0, repeat, feeder_lag_p99_s=p99_s, feeder_lag_max_s=0.75)
        for name, repeat, p99_s in seen
    ]
    runs.append(run_of("oldest", skew.EVEN, 1.0))  # from before the lag was looked at
    page = write_report(None, tmp_path / "report.html", results(runs)).read_text()
    assert page.count("late in 1 of 2") == 1 == page.count("late in")
    assert "known of 3 of 4 runs. Its p99 is above 0.5 of the trigger in 1 of them" in page and "0.750 s" in page
