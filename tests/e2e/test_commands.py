"""The commands as people run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headgate.cli.live import PLAIN_EVERY_S

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
    times_s = []
    for _ in range(4):  # the first compiles what was never imported before
        begun_s = time.monotonic()
        done = headgate(argument)
        times_s.append(time.monotonic() - begun_s)
        assert done.returncode == 0 and "headgate" in done.stdout
    assert min(times_s) < 1.0


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
    linear_road = ["bench", "linear-road", "--plan", "--out", str(tmp_path / "bench")]
    for arguments in (
        ["run", "missing.py"],
        ["explain", "--records", str(tmp_path / "none.jsonl")],
        ["bench", "compare", str(tmp_path / "old"), str(tmp_path / "new")],
        [*linear_road, "--loads", "half"],
        [*linear_road, "--repeats", "0"],
        [*linear_road, "--scenarios", "mixed-nothing"],
        [*linear_road, "--scenarios", f"mixed-file:{tmp_path / 'none.txt'}"],
        [*linear_road, "--sweep", "fastest"],
    ):
        done = headgate(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("headgate: ") and done.stderr.count("\n") == 1


def test_the_demo_compares_and_draws(tmp_path: Path) -> None:
    phase = str(PLAIN_EVERY_S + 1)  # without a terminal it speaks that seldom: a shorter phase may pass unheard
    done = headgate(
        "demo", "--only", "headgate", "--warm-up", phase, "--seconds", phase, "--rate", "500",
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


PLAIN_SESSION = """
import logging, time
from pyspark.sql import SparkSession
from headgate import Headgate

logging.basicConfig(level=logging.WARNING)
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
with Headgate(spark, records="batches.jsonl") as hg:
    source = hg.readStream.format("headgate-trace").option("rate", "300").load()
    query = hg.start(source.writeStream.format("noop").queryName("plain"), deadline="3s")
    while len(query.batches) < 5:
        time.sleep(0.2)
    print("policy", hg.policy, "codes", sorted(query.summary.codes))
assert spark.range(3).count() == 3, "the user's session must outlive Headgate"
spark.stop()
"""


def test_a_session_that_the_user_made_is_enough(tmp_path: Path) -> None:
    """No FAIR, no settings of ours, and another Python first on PATH."""
    script = tmp_path / "plain.py"
    script.write_text(PLAIN_SESSION)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    environment["PATH"] = "/usr/bin:/bin"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=240, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "policy fifo" in done.stdout
    assert "policies that remain: fifo" in done.stderr
