"""Linear Road reports: the benchmark's world holds, and any range of them can be had at once."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from headgate.errors import BadParameter
from headgate.workloads.counter import Counter
from headgate.workloads.linear_road import SCHEMA_DDL, LinearRoad, vehicles_for

VEHICLES, ROUNDS = 2000, 120
ROAD = LinearRoad(vehicles=VEHICLES, expressways=2, seed=5)

GOLDEN = [[4567, 45, 0, 1, 1, 41], [4568, 57, 0, 2, 0, 14], [4569, 48, 0, 3, 1, 93]]


def batch(road: LinearRoad, first: int, last: int) -> pa.RecordBatch:
    return road.batch(first, last, np.arange(first, last, dtype=np.float64))


@cache
def history() -> dict[str, np.ndarray]:
    """An hour of traffic: for each column a row per round and a column per vehicle."""
    made = batch(ROAD, 0, VEHICLES * ROUNDS)
    return {name: made.column(name).to_numpy().reshape(ROUNDS, VEHICLES) for name in made.schema.names[1:]}


def same_place() -> np.ndarray:
    """Whether a report comes from where the vehicle's previous one came from."""
    place = np.stack([history()[name] for name in ("highway", "direction", "segment", "lane")])
    return np.vstack([np.zeros((1, VEHICLES), bool), (place[:, 1:] == place[:, :-1]).all(axis=0)])


def runs_of_true(flags: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def test_the_batch_has_the_types_that_spark_wants() -> None:
    schema = batch(ROAD, 0, 10).schema
    assert schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert {field.type for field in schema if field.name != "timestamp"} == {pa.int32()}
    assert [part.split()[0] for part in SCHEMA_DDL.split(", ")] == schema.names


def test_timestamps_are_the_stamps_to_the_microsecond() -> None:
    made = ROAD.batch(0, 2, np.array([1_700_000_000.000001, 1_700_000_000.9999996]))
    assert made.column("timestamp").cast(pa.int64()).to_pylist() == [1_700_000_000_000_001, 1_700_000_001_000_000]


def test_vehicles_report_in_turn() -> None:
    assert batch(ROAD, VEHICLES - 1, VEHICLES + 2).column("vehicle").to_pylist() == [VEHICLES - 1, 0, 1]


def test_vehicles_report_every_thirty_seconds() -> None:
    assert vehicles_for(1000) == 30_000
    assert vehicles_for(0.001) == 1


def test_stays_within_the_benchmarks_world() -> None:
    assert {name: (column.min(), column.max()) for name, column in history().items() if name != "speed"} == {
        "vehicle": (0, VEHICLES - 1),
        "highway": (0, 1),
        "lane": (0, 4),
        "direction": (0, 1),
        "segment": (0, 99),
    }
    assert history()["speed"].min() == 0
    assert 90 < history()["speed"].max() <= 100


def test_every_trip_enters_in_lane_0_and_leaves_in_lane_4() -> None:
    lane = history()["lane"]
    assert ((lane[:-1] == 4) == (lane[1:] == 0)).all()
    assert 0.005 < (lane == 0).mean() < 0.1


def test_vehicles_stay_on_their_road_and_drive_one_way() -> None:
    on_trip = history()["lane"][1:] != 0
    for name in ("highway", "direction"):
        assert (np.diff(history()[name], axis=0)[on_trip] == 0).all()
    onward = np.diff(history()["segment"], axis=0) * np.where(history()["direction"][1:] == 0, 1, -1)
    # At most 64 mph, in a hurry 16/11 of that, is 0.78 segments from one report to the next.
    assert set(np.unique(onward[on_trip])) == {0, 1}


def test_vehicles_take_as_long_for_their_way_as_their_speed_says() -> None:
    # Over 16 reports, a whole slot, nobody is more than a stand and its hurry away from cruising.
    onward = np.abs(history()["segment"][16:] - history()["segment"][:-16])
    whole = np.all([history()["lane"][k : ROUNDS - 16 + k] > 0 for k in range(1, 17)], axis=0)
    miles = onward[whole]
    assert miles.min() > 16 * 45 / 120 - 6
    assert miles.max() < 16 * 64 / 120 + 6
    assert miles.mean() == pytest.approx(16 * 54.5 / 120, rel=0.05)


def test_some_places_are_slow_but_not_most() -> None:
    place = (history()["highway"] * 2 + history()["direction"]) * 100 + history()["segment"]
    cell = (np.arange(ROUNDS)[:, None] * 400 + place).ravel()
    reports = np.bincount(cell)
    mean_speed = np.bincount(cell, history()["speed"].ravel())[reports > 0] / reports[reports > 0]
    assert 0.05 < (mean_speed < 40).mean() < 0.3


def test_accidents_stop_vehicles_at_one_place_for_at_least_four_reports() -> None:
    stopped, stays = history()["speed"] == 0, same_place()
    found = [(v, *run) for v in range(VEHICLES) for run in runs_of_true(stopped[:, v])]
    # A stand that the hour's edge cuts may look shorter.
    whole = [(v, begin, end) for v, begin, end in found if begin > 0 and end < ROUNDS]
    assert len(whole) > 20
    for vehicle, begin, end in whole:
        assert end - begin >= 4
        assert stays[begin + 1 : end, vehicle].all()


def test_accidents_are_rare_and_spread_over_time() -> None:
    share = (history()["speed"] == 0).mean(axis=1)
    assert 0 < share.mean() < 0.02
    assert (share > 0).mean() > 0.5


def test_an_accident_stops_all_who_are_there() -> None:
    first_stop = (history()["speed"][1:] == 0) & (history()["speed"][:-1] > 0)
    rounds, vehicles = np.nonzero(first_stop)
    places = {name: history()[name][1:][first_stop] for name in ("highway", "direction", "segment")}
    accidents = set(zip(rounds.tolist(), *(column.tolist() for column in places.values()), strict=True))
    assert len(accidents) < len(vehicles)


def test_the_seed_decides() -> None:
    assert batch(ROAD, 0, 500) == batch(LinearRoad(VEHICLES, 2, 5), 0, 500)
    assert batch(ROAD, 0, 500) != batch(LinearRoad(VEHICLES, 2, 6), 0, 500)
    assert batch(LinearRoad(VEHICLES, 2, -1), 0, 500).num_rows == 500


def test_reports_are_the_same_everywhere_and_for_ever() -> None:
    # Benchmarks are compared across machines and versions: these numbers must never change.
    made = batch(LinearRoad(vehicles=30_000, expressways=3, seed=42), 1_234_567, 1_234_570)
    assert [list(row.values())[1:] for row in made.to_pylist()] == GOLDEN


def test_any_range_is_part_of_the_whole() -> None:
    whole = batch(ROAD, 0, 10_000)
    for first, last in ((0, 1), (1999, 2001), (123, 9_876), (5000, 5000)):
        assert batch(ROAD, first, last) == whole.slice(first, last - first)


def test_travels_light() -> None:
    batch(ROAD, 0, 1000)
    assert len(pickle.dumps(ROAD)) < 200


def test_refuses_what_makes_no_road() -> None:
    with pytest.raises(BadParameter, match="vehicles=0"):
        LinearRoad(vehicles=0)
    with pytest.raises(BadParameter, match="expressways=-1"):
        LinearRoad(expressways=-1)
    with pytest.raises(ValueError, match="2 stamps"):
        ROAD.batch(0, 3, np.zeros(2))


def test_the_counter_counts() -> None:
    made = Counter().batch(7, 10, np.array([1.0, 2.0, 3.5]))
    assert made.column("value").to_pylist() == [7, 8, 9]
    assert made.column("timestamp").cast(pa.int64()).to_pylist() == [1_000_000, 2_000_000, 3_500_000]
    assert made.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert [part.split()[0] for part in Counter.schema_ddl.split(", ")] == made.schema.names
