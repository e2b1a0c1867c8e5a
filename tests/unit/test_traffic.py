"""Traffic: what the specifications mean, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from headgate.core.traffic import Burst, Constant, Diurnal, Recorded, Traffic, Uniform, parse_traffic
from headgate.errors import BadParameter

GOLDEN = [1641, 378, 1736, 789, 736, 869, 389, 124]


def counts(traffic: Traffic, seconds: int) -> list[int]:
    return [traffic.rate_at(second) for second in range(seconds)]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("1000", Constant(1000)),
        (" 1_000 ", Constant(1000)),
        ("0.5", Constant(0.5)),
        ("1e4", Constant(10_000)),
        ("B(300)", Constant(300)),
        ("b( 300 )", Constant(300)),
        ("U(1000)", Uniform(1000, seed=7)),
        ("burst(1000, x3, 5s, every 30s)", Burst(1000, 3, 5, 30)),
        ("Burst(1000,2.5,5 s,every 30)", Burst(1000, 2.5, 5, 30)),
        ("diurnal(1000, period 600s, depth 0.8)", Diurnal(1000, 600, 0.8)),
    ],
)
def test_reads_specifications(text: str, shape: object) -> None:
    assert parse_traffic(text, seed=7).shape == shape


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write one of"),
        ("fast", "write one of"),
        ("-5", "write one of"),
        ("nan", "write one of"),
        ("U()", "write one of"),
        ("burst(1000, x3)", "burst(1000, x3, 5s, every 30s)"),
        ("0", "records per second"),
        ("1e12", "records per second"),
        ("U(0.1)", "records per second"),
        ("burst(1000, x3, 40s, every 30s)", "40 s do not fit into 30 s"),
        ("burst(1000, x3, 0s, every 0s)", "do not fit"),
        ("diurnal(1000, period 0s, depth 0.5)", "period"),
        ("diurnal(1000, period 60s, depth 1.5)", "depth from 0 to 1"),
        ("file:/no/such/file", "cannot be read"),
    ],
)
def test_refusals_name_the_text_and_the_remedy(text: str, says: str) -> None:
    with pytest.raises(BadParameter) as caught:
        parse_traffic(text, seed=0)
    assert caught.value.parameter == "rate"
    assert caught.value.value == text
    assert says in str(caught.value)


def test_constant_is_the_same_every_second() -> None:
    assert counts(parse_traffic("1000", 0), 5) == [1000] * 5


def test_fractions_of_a_record_are_made_up_for() -> None:
    assert counts(parse_traffic("0.5", 0), 6) == [0, 1, 0, 1, 0, 1]
    assert sum(counts(parse_traffic("0.1", 0), 3000)) == 300
    # 0.29 * 100 is a little less than 29 as floats.
    assert parse_traffic("0.29", 0).count_before(100) == 29


def test_uniform_covers_its_range_evenly() -> None:
    drawn = np.array(counts(parse_traffic("U(3)", 11), 7000))
    assert np.bincount(drawn, minlength=7).tolist() == pytest.approx([1000] * 7, rel=0.12)
    assert np.mean(counts(parse_traffic("U(1000)", 1), 10_000)) == pytest.approx(1000, rel=0.02)


def test_random_counts_are_the_same_everywhere_and_for_ever() -> None:
    # Benchmarks are compared across machines and versions: these numbers must never change.
    assert counts(parse_traffic("U(1000)", 42), 8) == GOLDEN
    assert counts(parse_traffic("U(1000)", 43), 8) != GOLDEN
    assert counts(parse_traffic("U(1000)", -1), 8) != GOLDEN


def test_random_counts_may_be_asked_for_anywhere() -> None:
    shape = Uniform(1000, seed=5)
    whole = shape.counts(0, 60)
    for second in range(50):
        assert shape.counts(second, 7).tolist() == whole[second : second + 7].tolist()


def test_a_burst_ends_each_period_on_top_of_the_base_rate() -> None:
    bursty = parse_traffic("burst(10, x3, 2s, every 5s)", 0)
    assert counts(bursty, 10) == [10, 10, 10, 30, 30] * 2
    assert bursty.mean_rate == 18


def test_a_pause_is_a_burst_of_nothing() -> None:
    assert counts(parse_traffic("burst(10, x0, 2s, every 4s)", 0), 8) == [10, 10, 0, 0] * 2


def test_diurnal_swings_around_its_mean() -> None:
    swinging = parse_traffic("diurnal(1000, period 600s, depth 0.8)", 0)
    drawn = counts(swinging, 1200)
    assert sum(drawn) == 1_200_000
    assert (min(drawn), max(drawn)) == (200, 1800)
    assert (drawn.index(1800), drawn.index(200)) == pytest.approx((150, 450), abs=10)
    assert swinging.mean_rate == 1000


def test_a_file_is_repeated(tmp_path: Path) -> None:
    path = tmp_path / "Counts.csv"
    path.write_text("records\n# a pause in the middle\n5\n0,\n\n 7 \n", encoding="utf-8")
    recorded = parse_traffic(f"file:{path}", 0)
    assert counts(recorded, 7) == [5, 0, 7, 5, 0, 7, 5]
    assert recorded.mean_rate == 4
    assert recorded.stamps_s(4, 6).tolist() == [0.9, 2 + 0.5 / 7]


def test_a_file_has_the_mean_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "counts (of May).csv"
    path.write_text("5\n0\n7\n", encoding="utf-8")
    scaled = parse_traffic(f"file(400, {path})", 0)
    assert counts(scaled, 4) == [500, 0, 700, 500]
    assert scaled.mean_rate == pytest.approx(400)


def test_a_file_without_records_has_no_mean(tmp_path: Path) -> None:
    path = tmp_path / "counts.txt"
    path.write_text("0\n0\n", encoding="utf-8")
    with pytest.raises(BadParameter, match="no records"):
        parse_traffic(f"file(400, {path})", 0)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("5\nmany\n", "line 2 is 'many'"),
        ("5\n-1\n", "line 2"),
        ("1,2\n", "line 1"),
        ("", "no counts"),
        ("0\n", "between"),
    ],
)
def test_a_file_with_nonsense_is_refused(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "counts.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadParameter, match=says):
        parse_traffic(f"file:{path}", 0)


def test_records_are_centred_in_their_share_of_the_second() -> None:
    assert parse_traffic("4", 0).stamps_s(2, 6).tolist() == [0.625, 0.875, 1.125, 1.375]
    assert parse_traffic("4", 0).stamp_s(5) == 1.375


@pytest.mark.parametrize(("t_s", "expected"), [(-1.0, 0), (0.0, 0), (0.125, 1), (0.37, 1), (0.375, 2), (2.0, 8)])
def test_a_record_counts_from_its_very_stamp_on(t_s: float, expected: int) -> None:
    assert parse_traffic("4", 0).count_before(t_s) == expected


def test_arrivals_are_one_run_per_second() -> None:
    arrivals = parse_traffic("4", 0).arrivals(2, 9, origin_s=100.0)
    assert arrivals.to_json() == [[100.625, 0.25, 2], [101.125, 0.25, 4], [102.125, 0.25, 1]]


def test_ranges_may_be_empty_but_not_reversed() -> None:
    traffic = parse_traffic("4", 0)
    for index in (0, 3, 4, 4096):
        assert traffic.stamps_s(index, index).size == 0
        assert traffic.arrivals(index, index, 0.0).total == 0
    for first, last in ((3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="not a range"):
            traffic.stamps_s(first, last)


def test_wall_clock_times_are_taken_for_the_mistake_they_are() -> None:
    traffic = parse_traffic("4", 0)
    with pytest.raises(ValueError, match="wall-clock"):
        traffic.count_before(1.7e9)
    with pytest.raises(ValueError, match="too far"):
        traffic.stamp_s(10**12)


def test_nothing_arrives_before_the_beginning() -> None:
    assert parse_traffic("4", 0).rate_at(-1) == 0


@pytest.mark.parametrize("text", ["1000", "U(1000)", "burst(1000, x3, 5s, every 30s)"])
def test_pickles_stay_small_after_hours(text: str) -> None:
    traffic = parse_traffic(text, seed=3)
    half_day_s = 43_200.5
    expected = traffic.count_before(half_day_s)
    pickled = pickle.dumps(traffic)
    assert len(pickled) < 300
    assert pickle.loads(pickled).count_before(half_day_s) == expected


def test_scaling_keeps_the_shape(tmp_path: Path) -> None:
    path = tmp_path / "counts.txt"
    path.write_text("4\n0\n8\n", encoding="utf-8")
    assert counts(parse_traffic(f"file:{path}", 0).scaled(0.5), 6) == [2, 0, 4, 2, 0, 4]
    assert counts(parse_traffic("burst(10, x3, 2s, every 5s)", 0).scaled(2), 5) == [20, 20, 20, 60, 60]
    random, tenfold = parse_traffic("U(1000)", 9), parse_traffic("U(1000)", 9).scaled(10)
    assert np.array(counts(tenfold, 100)) / 10 == pytest.approx(np.array(counts(random, 100)), abs=1)
    assert parse_traffic("diurnal(1000, period 60s, depth 0.5)", 0).scaled(0.1).mean_rate == pytest.approx(100)
    assert parse_traffic("1000", 0).scaled(0.25).mean_rate == 250


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_refuses_to_scale_by_nonsense(factor: float) -> None:
    with pytest.raises(BadParameter, match="records per second"):
        parse_traffic("1000", 0).scaled(factor)


def test_shows_what_it_is() -> None:
    assert repr(parse_traffic("5", 0)) == "Traffic(Constant(rate=5.0))"
    assert Recorded((1, 2)).mean_rate == 1.5
