"""The simulator of Hone's evaluation against the model's definition, and the optimum against trying everything."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

from headgate.bench.hone.optimum import least_max_backlog, proven_ratio
from headgate.bench.hone.report import targets, write_report
from headgate.bench.hone.simulator import SCHEDULERS, arrivals, jains_index, simulate
from headgate.bench.hone.study import reduction, study

few = st_np.arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=st.integers(0, 3))


def one_by_one(arriving: np.ndarray, name: str) -> tuple[int, int]:
    """The definition, slot by slot with lists: the largest backlog and the time waited."""
    backlog, largest, waited = [0] * arriving.shape[1], 0, 0
    for slot, came in enumerate(arriving.tolist()):
        backlog = [b + a for b, a in zip(backlog, came, strict=True)]
        turn = slot % len(backlog)
        order = [(turn + k) % len(backlog) for k in range(len(backlog))]
        served = {
            "lbf": max(range(len(backlog)), key=lambda i: (backlog[i], -i)),
            "rrb": turn,
            "rr-skipping": next((i for i in order if backlog[i]), turn),
        }[name]
        backlog[served] = max(backlog[served] - 1, 0)
        largest, waited = max(largest, *backlog), waited + sum(backlog)
    return largest, waited


@given(few, st.sampled_from(["lbf", "rrb", "rr-skipping"]))
def test_many_seeds_at_once_are_the_definition(arriving: np.ndarray, name: str) -> None:
    found = simulate(np.stack([arriving, arriving[::-1]], axis=1), SCHEDULERS[name])
    for seed, each in enumerate((arriving, arriving[::-1])):
        largest, waited = one_by_one(each, name)
        assert found.max_backlog[seed] == largest
        assert found.delay_s[seed] * max(each.sum(), 1) == pytest.approx(waited * 1e-4)


@settings(max_examples=60)
@given(few)
def test_the_optimum_is_what_trying_everything_gives(arriving: np.ndarray) -> None:
    slots, queues = arriving.shape
    best = min(
        max(
            int(level)
            for backlog in [np.zeros(queues, int)]
            for slot, served in enumerate(order)
            for level in [_step(backlog, arriving[slot], served)]
        )
        for order in itertools.product(range(queues), repeat=slots)
    )
    assert least_max_backlog(arriving) == best


def _step(backlog: np.ndarray, came: np.ndarray, served: int) -> int:
    backlog += came
    backlog[served] = max(backlog[served] - 1, 0)
    return int(backlog.max())


@given(few)
def test_lbf_stays_within_its_proven_ratio(arriving: np.ndarray) -> None:
    found = simulate(arriving[:, None, :], SCHEDULERS["lbf"]).max_backlog[0]
    assert found <= proven_ratio(arriving.shape[1]) * max(least_max_backlog(arriving), 1)


def test_a_proportional_draw_never_serves_an_empty_queue() -> None:
    chance = np.random.default_rng(3)
    backlogs = np.array([[0, 5, 0, 1], [2, 0, 0, 0]])
    for _ in range(200):
        served = SCHEDULERS["proportional"](backlogs, 0, chance)
        assert backlogs[[0, 1], served].min() > 0


def test_jains_index() -> None:
    found = jains_index(np.array([[3, 3, 3], [9, 0, 0], [0, 0, 0]]))
    assert found == pytest.approx([1.0, 1 / 3, 1.0])


def test_reductions() -> None:
    assert reduction([1, 4, 0], [4, 2, 0]).tolist() == [0.75, -1.0, 0.0]


def test_arrivals_have_their_rate() -> None:
    assert arrivals(10, 2_000, 4, seed=1).mean() == pytest.approx(0.2, rel=0.02)


def test_the_study_fills_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate.bench.hone import study as studying

    monkeypatch.setattr(studying, "RATES", (500, 1_000))
    monkeypatch.setattr(studying, "QUEUES", (10,))
    results = study(2, lambda _: None)
    page = write_report(results, tmp_path / "report.html").read_text()
    assert page.count("<svg") >= 6 and "offline optimum" in page
    assert [row.found is not None for row in targets(results)] == [True, True, True]
