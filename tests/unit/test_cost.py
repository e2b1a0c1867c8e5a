"""The cost model learns a line, its spread and the price of company, and is not fooled."""

from __future__ import annotations

import json
import math
import random
import statistics

import pytest

from headgate.core.cost import READY_AFTER, CostModel
from headgate.errors import StateError
from tests.making import model


def trained(
    batches: int = 60, fixed_s: float = 0.3, per_row_s: float = 2e-5, noise: float = 0.05, seed: int = 1
) -> CostModel:
    random_ = random.Random(seed)
    model = CostModel()
    for _ in range(batches):
        rows = random_.randint(1_000, 50_000)
        model = model.observe(rows, (fixed_s + per_row_s * rows) * math.exp(random_.gauss(0, noise)), 0.0)
    return model


def test_before_the_first_batch_it_is_cautious_and_finite() -> None:
    model = CostModel()
    assert not model.ready
    assert 0.1 < model.expected_s(1_000) < 5
    assert model.quantile_s(1_000, 0.0, 0.99) > model.expected_s(1_000)


def test_it_learns_the_line() -> None:
    model = trained()
    assert model.expected_s(1_000) == pytest.approx(0.32, rel=0.15)
    assert model.expected_s(50_000) == pytest.approx(1.3, rel=0.1)


def test_it_covers_the_quantile_it_is_asked_for() -> None:
    model = trained(noise=0.15)
    random_ = random.Random(7)
    trials = [
        (rows := random_.randint(1_000, 50_000), (0.3 + 2e-5 * rows) * math.exp(random_.gauss(0, 0.15)))
        for _ in range(2_000)
    ]
    covered = sum(real <= model.quantile_s(rows, 0.0, 0.99) for rows, real in trials) / len(trials)
    assert covered >= 0.97


def test_equal_batches_do_not_make_it_absurd() -> None:
    model = CostModel()
    for _ in range(30):
        model = model.observe(1_000, 0.5, 0.0)
    assert model.expected_s(1_000) == pytest.approx(0.5, rel=0.02)
    assert model.fixed_s > 0
    assert 0.5 < model.expected_s(10_000) < 5.5


def test_one_outlier_hardly_moves_it() -> None:
    before = trained()
    after = before.observe(10_000, 60.0, 0.0)
    assert after.expected_s(10_000) < 1.25 * before.expected_s(10_000)


def test_a_lasting_change_is_learned() -> None:
    model = trained()
    for _ in range(40):
        model = model.observe(10_000, 2.5, 0.0)
    assert model.expected_s(10_000) == pytest.approx(2.5, rel=0.1)


def test_warm_up_is_forgotten() -> None:
    model = CostModel()
    for seconds in (8.0, 3.0, 1.5, 0.9, 0.6, *[0.4] * 40):
        model = model.observe(1_000, seconds, 0.0)
    assert model.expected_s(1_000) == pytest.approx(0.4, rel=0.15)


def test_what_a_cold_machine_did_to_rare_batches_is_soon_unlearned() -> None:
    """Warm-up makes fixed and per-row costs fall alike: sixteen batches must do, whatever their sizes were."""
    ratios = []
    for seed in range(30):
        random_ = random.Random(seed)
        model = CostModel()
        for index in range(16):
            rows, cold = int(150_000 * math.exp(random_.gauss(0, 0.45))), 1 + 3 * math.exp(-index / 4)
            model = model.observe(rows, (0.3 + 2e-6 * rows) * cold * math.exp(random_.gauss(0, 0.1)), 0.0)
        ratios.append(model.fixed_s / 0.3)
    assert statistics.median(ratios) < 1.3, "without following the level it is 1.5"


def test_the_level_is_followed_as_fast_up_as_down() -> None:
    for factor in (0.6, 1.6):
        model = trained(noise=0.1)
        for rows in (20_000, 5_000, 40_000, 10_000, 30_000):
            model = model.observe(rows, factor * (0.3 + 2e-5 * rows), 0.0)
        assert model.expected_s(20_000) == pytest.approx(factor * 0.7, rel=0.15)


def test_company_is_learned_apart_from_the_line() -> None:
    random_ = random.Random(3)
    model = CostModel()
    for _ in range(120):
        rows, overlap = random_.randint(1_000, 30_000), random_.choice([0.0, 0.0, 1.0, 2.0])
        model = model.observe(
            rows, (0.2 + 1e-5 * rows) * (1 + 0.9 * overlap) * math.exp(random_.gauss(0, 0.05)), overlap
        )
    assert model.stretch == pytest.approx(0.9, rel=0.25)
    assert model.expected_s(10_000) == pytest.approx(0.3, rel=0.15)
    assert model.expected_s(10_000, 1.0) == pytest.approx(0.57, rel=0.15)


def test_what_a_cold_machine_took_is_not_put_down_to_company() -> None:
    model = CostModel()
    for seconds in (8.0, 3.0, 1.5):
        model = model.observe(1_000, seconds, 2.0)
    for _ in range(12):
        model = model.observe(1_000, 0.4, 0.0)
    assert model.stretch < 1.0


def test_the_spread_is_that_of_the_situation() -> None:
    random_ = random.Random(4)
    model = CostModel()
    for index in range(120):
        overlap = float(index % 2)
        noise = 0.4 if overlap else 0.03
        model = model.observe(5_000, 0.5 * (1 + 0.7 * overlap) * math.exp(random_.gauss(0, noise)), overlap)
    assert model.factor(1.0, 0.99) > 1.6
    assert model.factor(0.0, 0.99) < 1.4


@pytest.mark.parametrize("rows,seconds", [(0, 1.0), (-5, 1.0), (10, 0.0), (10, -1.0), (10, math.nan), (10, math.inf)])
def test_nonsense_teaches_nothing(rows: int, seconds: float) -> None:
    assert CostModel().observe(rows, seconds, 0.0) == CostModel()


def test_rows_within_is_the_inverse_of_the_quantile() -> None:
    model = trained()
    rows = model.rows_within(1.0, 0.0, 0.99)
    assert model.quantile_s(rows, 0.0, 0.99) <= 1.0 < model.quantile_s(rows + 2, 0.0, 0.99)
    assert model.rows_within(0.0, 0.0, 0.99) == 0


def test_what_is_left_of_a_batch_reckons_with_its_usual_company() -> None:
    lonely, sociable = model(company=False), model()
    assert lonely.left_s(10_000, 0.0, 0.0) == pytest.approx(lonely.expected_s(10_000))
    usual_s = sociable.expected_s(10_000, sociable.usual_overlap)
    assert sociable.usual_overlap > 0.5 and sociable.left_s(10_000, 0.0, 0.0) == pytest.approx(usual_s)
    # so far it had company as usual: what is left is the rest of that; without any it would be further
    assert sociable.left_s(10_000, 0.3 * usual_s, sociable.usual_overlap) == pytest.approx(0.7 * usual_s)
    assert sociable.left_s(10_000, 0.3 * usual_s, 0.0) < 0.6 * usual_s
    assert sociable.left_s(10_000, 9.0, 0.0) == 0.0


def test_it_survives_being_saved() -> None:
    model = trained()
    assert CostModel.from_json(json.loads(json.dumps(model.to_json()))) == model


@pytest.mark.parametrize(
    "spoil", [{"fixed_s": "fast"}, {"per_row_s": float("nan")}, {"weight": -1.0}, {"alone": 3}, {"batches": None}]
)
def test_a_spoilt_save_is_refused(spoil: dict[str, object]) -> None:
    with pytest.raises(StateError):
        CostModel.from_json(trained().to_json() | spoil)


def test_it_is_ready_after_a_few_batches() -> None:
    assert not trained(READY_AFTER - 1).ready
    assert trained(READY_AFTER).ready


def test_a_model_that_has_gone_wrong_is_learned_anew() -> None:
    assert CostModel(batches=9, weight=3.0, mean_s=math.nan).observe(100, 0.5, 0.0).batches == 1
