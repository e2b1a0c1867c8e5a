"""Whatever batches do, the cost model stays usable and can be saved."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from headgate.core.cost import CostModel

durations_s = st.just(0.0) | st.floats(1e-6, 1e5)  # clocks tell no less than a microsecond
batches = st.tuples(st.integers(-1, 10**9), durations_s, st.floats(0, 1e3))


@given(st.lists(batches, max_size=40))
def test_it_stays_finite_positive_and_savable(observed: list[tuple[int, float, float]]) -> None:
    model = CostModel()
    for rows, seconds, overlap in observed:
        model = model.observe(rows, seconds, overlap)
        assert all(map(math.isfinite, (model.fixed_s, model.per_row_s, model.stretch, model.mean_s, model.cov)))
        assert model.fixed_s > 0 and model.per_row_s >= 0 and model.stretch >= 0
        assert CostModel.from_json(json.loads(json.dumps(model.to_json()))) == model
