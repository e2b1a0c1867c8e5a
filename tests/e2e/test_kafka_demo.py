"""The demo with a real broker in front."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kafka_jars import jars_or_skip

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]


def test_the_demo_runs_through_kafka(tmp_path: Path) -> None:
    jars_or_skip()
    command = [
        sys.executable, "-m", "headgate", "demo", "--source", "kafka", "--only", "headgate",
        "--warm-up", "8", "--seconds", "8", "--rate", "500", "--out", str(tmp_path / "demo"),
    ]  # fmt: skip
    environment = os.environ | {"HEADGATE_RUNS": str(tmp_path / "runs")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    (outcome,) = json.loads((tmp_path / "demo" / "outcomes.json").read_text())
    alerts = outcome["queries"]["alerts"]
    assert 1_000 < alerts["rows"] < 20_000  # a cold start may leave some of the warm-up to be counted
    assert not alerts["estimated"]
