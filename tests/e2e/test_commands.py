"""The commands as people run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

SCRIPT = """
import sys
from headgate import Headgate

hg = Headgate()
clicks = hg.gate(hg.spark.readStream.format("rate").option("rowsPerSecond", 100).load())
query = hg.start(clicks.writeStream.format("noop").queryName("clicks"), deadline="5s")
query.awaitTermination(float(sys.argv[1]))
query.stop()
"""


def headgate(*arguments: str, timeout: float = 240, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headgate", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=os.environ | environment)


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_simple_answers_come_in_a_blink(argument: str) -> None:
    headgate(argument)  # compiles what was never imported before
    begun_s = time.monotonic()
    done = headgate(argument)
    assert done.returncode == 0 and "headgate" in done.stdout
    assert time.monotonic() - begun_s < 1.0


def test_run_watches_a_script_and_explain_tells_why(tmp_path: Path) -> None:
    script = tmp_path / "clicks.py"
    script.write_text(SCRIPT)
    done = headgate("run", str(script), "25", HEADGATE_RUNS=str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr[-2000:]
    assert "clicks: 0.99 in 5 s" in done.stdout
    told = headgate("explain", "clicks", "--last", "2", HEADGATE_RUNS=str(tmp_path / "runs"))
    assert told.returncode == 0
    assert told.stdout.count("predicted") == 2 and "estimated latency" in told.stdout
    data = headgate("explain", "--json", "--last", "1", HEADGATE_RUNS=str(tmp_path / "runs"))
    assert json.loads(data.stdout)["query"] == "clicks"


def test_run_json_prints_the_sums(tmp_path: Path) -> None:
    script = tmp_path / "clicks.py"
    script.write_text(SCRIPT.replace("hg = Headgate()", "hg = Headgate(records='batches.jsonl')"))
    command = [sys.executable, "-m", "headgate", "run", "--json", str(script), "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    sums = json.loads(done.stdout[done.stdout.index("{") :])
    assert sums["clicks"]["batches"] > 0
    assert (tmp_path / "batches.jsonl").exists()


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    for arguments in (["run", "missing.py"], ["explain", "--records", str(tmp_path / "none.jsonl")]):
        done = headgate(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("headgate: ") and done.stderr.count("\n") == 1


def test_the_demo_compares_and_draws(tmp_path: Path) -> None:
    done = headgate(
        "demo", "--only", "headgate", "--warm-up", "8", "--seconds", "8", "--rate", "500",
        "--out", str(tmp_path / "demo"), HEADGATE_RUNS=str(tmp_path / "runs"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    for words in ("warming up, not counted", "measuring", "Promise against reality", "alerts", "lr2", "lr3"):
        assert words in done.stdout
    assert (tmp_path / "demo" / "latency.png").read_bytes().startswith(b"\x89PNG")
    (outcome,) = json.loads((tmp_path / "demo" / "outcomes.json").read_text())
    assert outcome["queries"]["alerts"]["batches"] > 0 and outcome["cpu_s"] > 0


def test_decisions_are_quick() -> None:
    """Far from the figure that the benchmark reports, so that a busy machine does not fail it."""
    rows = json.loads(headgate("bench", "decisions", "--json").stdout)
    assert {row["rule"] for row in rows} >= {"slo", "latest", "zstream", "qspark"}
    assert all(row["p50_ms"] < 5.0 for row in rows)
