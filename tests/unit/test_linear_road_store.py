"""Results on disk: nothing is added to a folder that was measured in another way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.bench.linear_road.lookup import commands
from headgate.bench.linear_road.store import FILE, Store, machine
from headgate.errors import BadParameter

SETTINGS = {"repeats": 2, "measure_s": 60.0, "settle_s": 15.0, "seed": 1, "parts": []}


def begun(folder: Path, **changes: Any) -> None:
    store = Store(folder, "headgate bench linear-road", SETTINGS)
    (folder / FILE).write_text(json.dumps(store.data | changes))


def test_a_folder_goes_on_with_more_of_the_same(tmp_path: Path) -> None:
    begun(tmp_path, machine=machine() | {"memory_gb": 1.0})  # which is never told twice to the last digit
    wider = Store(tmp_path, "", SETTINGS | {"repeats": 5, "source": "trace"})
    assert wider.data["settings"]["repeats"] == 5


def test_a_narrower_command_does_not_hide_what_was_measured_before(tmp_path: Path) -> None:
    begun(tmp_path, settings=SETTINGS | {"repeats": 3, "parts": ["mixed", "cells"]})
    found = Store(tmp_path, "", SETTINGS | {"repeats": 1, "parts": ["cells", "modules"]}).data["settings"]
    assert (found["repeats"], found["parts"]) == (3, ["mixed", "cells", "modules"])


def test_every_command_that_measured_is_told_once(tmp_path: Path) -> None:
    begun(tmp_path)
    for _ in range(2):
        Store(tmp_path, "headgate bench linear-road --parts cells", SETTINGS).save()
    assert commands(Store(tmp_path, "", SETTINGS).data) == [
        "headgate bench linear-road",
        "headgate bench linear-road --parts cells",
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"spark": "3.5.0"}, "spark 3.5.0"),
        ({"headgate": "0.0.1"}, "headgate 0.0.1"),
        ({"machine": machine() | {"cores": 96}}, "cores 96"),
        ({"machine": machine() | {"cpu": "an abacus"}}, "cpu an abacus"),
        ({"settings": SETTINGS | {"seed": 7}}, "seed 7 (now 1)"),
        ({"settings": SETTINGS | {"source": "kafka"}}, "source kafka (now trace)"),
    ],
)
def test_a_folder_that_was_begun_otherwise_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    begun(tmp_path, **change)
    with pytest.raises(BadParameter) as refused:
        Store(tmp_path, "", SETTINGS)
    assert refused.value.problem.startswith(f"it holds results with {told}")
    assert refused.value.problem.count("now") == 1  # nothing else is blamed
    assert "another folder" in str(refused.value) and "same settings, versions and machine" in str(refused.value)
