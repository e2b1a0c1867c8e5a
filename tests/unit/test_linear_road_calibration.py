"""What the machine can do: costs that can be believed, and a rate that all queries sustain."""

from __future__ import annotations

from typing import Any, cast

import pytest

from headgate.bench.application import Application
from headgate.bench.linear_road import calibration
from headgate.bench.plan import Cell, Outcome
from headgate.core.traffic import parse_traffic
from headgate.errors import HeadgateError

STEADY = [(32_000, 1.2)] * 9
SMALL = [(8_000, 0.6)] * 9


class Machine:
    """Answers cells in the order given: batch times, or the seconds in which each query has done its rows."""

    def __init__(self, *answers: Any) -> None:
        self.cells: list[Cell] = []
        self._answers = list(answers)

    def run(self, cell: Cell) -> Outcome:
        self.cells.append(cell)
        answer = self._answers.pop(0)
        if cell.rows is None:
            return Outcome("t", "t", 1.0, 1.0, {cell.queries[0].name: {"batch_times": answer}})
        queries = {name: {"rows": cell.rows, "done_s": seconds} for name, seconds in answer(cell).items()}
        return Outcome("t", "t", 1.0, 300.0, queries)


def serving(lr1: float, lr2: float) -> Any:
    """Queries that do so many rows per second, or as many as come."""

    def answer(cell: Cell) -> dict[str, float]:
        assert cell.rows is not None
        arriving = parse_traffic(cell.queries[0].rate, 1).mean_rate
        return {"lr1": cell.rows / min(lr1, arriving), "lr2": cell.rows / min(lr2, arriving)}

    return answer


def costs_of(machine: Machine) -> dict[str, Any]:
    return calibration.query_costs(cast(Application, machine), ["lr1"], 2, lambda _: None)


def test_a_query_that_keeps_state_is_measured_when_it_is_full() -> None:
    for cell in calibration.alone("lr1", 8_000):
        assert cell.settle_s >= 35
        trigger_s = cell.queries[0].trigger_s
        assert trigger_s is not None
        assert cell.measure_s / trigger_s >= calibration.ENOUGH_BATCHES
    assert calibration.alone("alerts", 8_000)[0].settle_s < 35


def test_cheap_rows_are_many() -> None:
    assert calibration.alone("alerts", 8_000)[0].queries[0].rate == "B(40000)"
    assert calibration.alone("lr2", 8_000)[0].queries[0].rate == "B(8000)"


def test_two_batch_sizes_give_the_two_parts_of_the_cost() -> None:
    cost = costs_of(Machine(SMALL, STEADY))["lr1"]
    assert cost["per_row_s"] == pytest.approx(0.6 / 24_000)
    assert cost["fixed_s"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("small", "large", "words"),
    [
        (SMALL, STEADY[:7], "too few"),
        (SMALL, [(32_000, 0.5), (32_000, 1.2), (32_000, 2.5)] * 3, "not even within"),
        (SMALL, [(32_000, 0.3)] * 9, "less time than small ones"),
    ],
)
def test_a_cost_that_cannot_be_believed_is_measured_again_and_then_refused(small: Any, large: Any, words: str) -> None:
    assert words in (calibration.doubt(small, large) or "")
    again = Machine(small, large, SMALL, STEADY)
    assert costs_of(again)["lr1"]["fixed_s"] == pytest.approx(0.4)
    assert len(again.cells) == 4
    with pytest.raises(HeadgateError, match=words):
        costs_of(Machine(*[small, large] * 3))


def test_all_have_the_same_work_and_more_than_the_joins_state_of_it() -> None:
    cell = calibration.common_work(["lr1", "lr2"], 20_000)
    assert cell.rows is not None
    arriving = parse_traffic(cell.queries[0].rate, 1).mean_rate
    assert arriving > 20_000
    assert 90 <= cell.rows / 20_000 <= 120
    assert cell.rows / arriving > 60


def test_the_common_rate_is_that_of_the_last_to_finish() -> None:
    machine = Machine(serving(lr1=15_000, lr2=26_000))
    rates = calibration.sustained(cast(Application, machine), ["lr1", "lr2"], 20_000)
    assert rates == {"lr1": pytest.approx(15_000), "lr2": pytest.approx(26_000)}
    assert len(machine.cells) == 1


@pytest.mark.parametrize("true_rate", [60_000, 2_000])
def test_a_guess_that_was_far_off_is_tried_again(true_rate: float) -> None:
    machine = Machine(*[serving(true_rate, true_rate)] * 3)
    rates = calibration.sustained(cast(Application, machine), ["lr1", "lr2"], 20_000)
    assert min(rates.values()) == pytest.approx(true_rate, rel=1e-3)
    assert len(machine.cells) > 1


def test_a_query_that_did_not_finish_counts_with_what_it_has_done() -> None:
    queries: dict[str, dict[str, Any]] = {
        "lr1": {"rows": 3_000, "done_s": None},
        "lr2": {"rows": 9_000, "done_s": 90.0},
    }
    assert calibration.common_rate(Outcome("t", "t", 1.0, 300.0, queries), 9_000) == 10


def test_costs_give_the_first_guess_if_all_are_known() -> None:
    costs = {"lr1": {"per_row_s": 3e-5}, "lr2": {"per_row_s": 1e-5}}
    assert calibration.first_guess(["lr1", "lr2"], costs, 2) == pytest.approx(15_000)
    assert calibration.first_guess(["lr1", "lr3"], costs, 2) == 2 * calibration.GUESS_PER_CORE
