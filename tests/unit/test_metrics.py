"""What is measured stays exact, bounded and readable."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from headgate.cli import explain
from headgate.cli.live import plain, table
from headgate.core.admission import find_rule
from headgate.core.arrivals import Arrivals
from headgate.core.batch import BatchRecord
from headgate.core.cost import CostModel
from headgate.core.dispatcher import Dispatcher
from headgate.core.policies import edf
from headgate.core.query_state import GateConfig
from headgate.core.snapshot import Promise
from headgate.engine import model_store
from headgate.engine.progress import parse_progress
from headgate.errors import BadParameter
from headgate.metrics import recorder as recorder_module
from headgate.metrics.recorder import KEPT_BATCHES, KEPT_SUMMARIES, Recorder
from headgate.metrics.status import status_of
from tests.making import model

ARRIVALS = Arrivals.of([(100.0, 0.01, 100)])


def record(
    query: str = "q", batch_id: int = 0, finished_at_s: float = 103.0, deadline_s: float | None = 2.5
) -> BatchRecord:
    return BatchRecord(
        query=query,
        batch_id=batch_id,
        deadline_s=deadline_s,
        slo=0.99,
        rows=100,
        oldest_at_s=100.0,
        asked_at_s=100.1,
        opened_at_s=102.0,
        finished_at_s=finished_at_s,
        code="due",
        reason="its latest safe start",
        held_s={"buffer": 1.9},
        predicted_s=0.8,
        duration_s=1.0,
        overlap=0.5,
        latency=ARRIVALS.latency(finished_at_s, deadline_s),
        estimated=False,
        left_rows=0,
        spark_ms={"triggerExecution": 2900},
    )


def test_sums_are_those_of_the_records() -> None:
    recorder = Recorder(None)
    for batch_id in range(3):
        recorder.add(record(batch_id=batch_id, finished_at_s=103.0 + batch_id), ARRIVALS)
    summary = recorder.summaries()["q"]
    assert (summary.batches, summary.rows, summary.datasets) == (3, 300, 300)
    # Latencies 2.01..3.0 s, then a second more each time, against 2.5 s.
    assert summary.violations == 50 + 100 + 100
    assert summary.violation_rate == pytest.approx(250 / 300)
    assert not summary.keeps_promise
    assert summary.rows_per_s == pytest.approx(100.0)
    assert summary.model_error == pytest.approx(0.2)
    assert summary.quantile_s(1.0) == pytest.approx(5.0, rel=0.02)
    assert summary.to_json()["codes"] == {"due": 3}


def test_memory_is_bounded() -> None:
    recorder = Recorder(None)
    for batch_id in range(KEPT_BATCHES + 50):
        recorder.add(record(f"q{batch_id % (KEPT_SUMMARIES + 20)}", batch_id), ARRIVALS)
    assert len(recorder.batches()) == KEPT_BATCHES
    assert len(recorder.summaries()) <= KEPT_SUMMARIES
    assert all(len(summary.recent) <= 50 for summary in recorder.summaries().values())


def test_a_reset_forgets_the_warm_up_but_the_file_does_not(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "batches.jsonl")
    recorder.add(record(), ARRIVALS)
    recorder.reset()
    assert recorder.batches() == [] and recorder.summaries() == {}
    assert len((tmp_path / "batches.jsonl").read_text().splitlines()) == 1


def test_a_line_is_a_flat_row(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "new" / "batches.jsonl")
    recorder.add(record(), ARRIVALS)
    recorder.close()
    (row,) = map(json.loads, (tmp_path / "new" / "batches.jsonl").read_text().splitlines())
    assert row["held_buffer_s"] == 1.9 and row["latency_violations"] == 50 and row["spark_triggerExecution_ms"] == 2900
    assert not any(isinstance(value, dict | list) for value in row.values())


def test_the_file_is_rotated_before_it_fills_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "MAX_FILE_BYTES", 2_000)
    recorder = Recorder(tmp_path / "batches.jsonl")
    for batch_id in range(20):
        recorder.add(record(batch_id=batch_id), ARRIVALS)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 6_000
    assert (tmp_path / "batches.jsonl.1").exists()


def test_a_full_disk_costs_the_record_not_the_query(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(tmp_path / "batches.jsonl")
    assert recorder._file is not None
    recorder._file.close()
    recorder._file = open("/dev/full", "w", buffering=1)  # noqa: SIM115
    recorder.add(record(), ARRIVALS)
    recorder.add(record(), ARRIVALS)
    assert recorder.summaries()["q"].batches == 2
    assert "no longer recorded" in caplog.text


def test_explain_tells_a_batch_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder(tmp_path / "batches.jsonl")
    recorder.add(record(), ARRIVALS)
    recorder.close()
    text = explain.describe(explain.read(tmp_path / "batches.jsonl")[0])
    assert "[due] its latest safe start" in text
    assert "held 1.90 s (buffer 1.90 s); took 1.00 s, predicted 800 ms (+20%)" in text
    assert "50 of 100 late" in text


def test_explain_reads_a_file_that_is_being_written(tmp_path: Path) -> None:
    (tmp_path / "batches.jsonl").write_text(json.dumps(record().to_json()) + '\n{"query": "q", "rows"')
    assert len(explain.read(tmp_path / "batches.jsonl")) == 1


@pytest.mark.parametrize("deadline_s", [2.5, None])
def test_the_live_table_shows_every_query(deadline_s: float | None) -> None:
    dispatcher = Dispatcher(2, edf, "edf")
    dispatcher.add(GateConfig("q", Promise(deadline_s), find_rule("slo")), model())
    recorder = Recorder(None)
    recorder.add(record(deadline_s=deadline_s), ARRIVALS)
    statuses = status_of(dispatcher, recorder.summaries())
    console = Console(width=140, record=True)
    console.print(table(statuses))
    shown = console.export_text()
    assert "nothing waits" in shown and ("0.99 in 2.5 s" if deadline_s else "in the slack") in shown
    assert "q: " in plain(statuses)
    assert json.dumps(statuses[0].to_json())


def test_an_estimated_latency_is_marked() -> None:
    dispatcher = Dispatcher(2, edf, "edf")
    dispatcher.add(GateConfig("q", Promise(5.0), find_rule("slo")), model())
    recorder = Recorder(None)
    recorder.add(replace(record(), estimated=True), ARRIVALS)
    assert "~" in plain(status_of(dispatcher, recorder.summaries()))


def test_progress_is_read_from_sparks_json() -> None:
    event = {
        "name": "q", "timestamp": "2026-11-15T20:15:45.123Z", "batchId": 7, "numInputRows": 42,
        "durationMs": {"triggerExecution": 500, "addBatch": 300},
    }  # fmt: skip
    progress = parse_progress(event)
    assert progress is not None
    assert progress.finished_at_s - progress.started_at_s == pytest.approx(0.5)
    assert (progress.batch_id, progress.rows, progress.spark_ms["addBatch"]) == (7, 42, 300)
    assert parse_progress({**event, "name": None}) is None
    assert parse_progress({**event, "durationMs": {}}) is None


def test_models_are_saved_whole_and_read_back(tmp_path: Path) -> None:
    folder = model_store.state_dir(f"file:{tmp_path}/check%20point")
    assert folder == f"{tmp_path}/check point/headgate"
    model_store.save(folder, model())
    assert model_store.load(folder) == model()
    assert [path.name for path in Path(folder).iterdir()] == ["model.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"batches": 3}', "null"])
def test_a_corrupt_model_is_told_and_replaced(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "model.json").write_text(text)
    assert model_store.load(str(tmp_path)) == CostModel()
    assert "learning anew" in caplog.text


def test_a_checkpoint_elsewhere_has_no_local_folder() -> None:
    assert model_store.state_dir("s3a://bucket/checkpoint") is None
    assert model_store.load(None) == CostModel()
    model_store.save(None, model())


def test_explain_without_runs_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_RUNS", str(tmp_path))
    with pytest.raises(BadParameter, match="headgate demo"):
        explain.newest_run()
