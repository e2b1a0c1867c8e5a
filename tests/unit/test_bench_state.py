"""The benchmark of backups, small: what comes back is what was saved, and the report shows all of it."""

from __future__ import annotations

import time
from pathlib import Path

from headgate.bench.state.copies import at_size, together
from headgate.bench.state.programme import Programme
from headgate.bench.state.report import targets, write_report
from headgate.bench.state.study import study
from headgate.bench.state.throttled import ThrottledStore
from headgate.state.stores.memory import MemoryStore

SMALL = Programme(sizes_mb=(1, 2), instances=(1, 2), instance_mb=1, bandwidth_mb_s=400.0, repeats=2)
SPARK = {
    "groups": [
        {"batch_s": {"with": [1.0, 1.1], "without": [1.0]}, "ratio": 1.02, "backups": 3, "coded_mb": 5.0, "took_s": 0.2}
    ],
    "every": "30s", "pace_s": 1.0, "state_mb": 230.0, "files": 40, "restore_s": 1.5, "went_on": True,
}  # fmt: skip


def test_a_place_passes_no_more_than_its_bandwidth() -> None:
    store = ThrottledStore(MemoryStore(), bytes_per_s=1e6)
    began_s = time.monotonic()
    store.put("k", [bytes(20_000)] * 2)
    assert len(store.get("k")) == 40_000
    assert time.monotonic() - began_s >= 0.075
    assert store.find() == {"k": 40_000}


def test_both_ways_are_measured_and_checked() -> None:
    said: list[str] = []
    found = at_size(SMALL, 1, said.append)
    assert all(len(found[name]) == 2 for name in ("save_s", "copy_s", "restore_s", "copy_back_s"))
    several = together(SMALL, 2, said.append)
    assert len(several["restore_s"]) == len(several["copy_back_s"]) == 2
    assert len(said) == 2


def test_the_study_fills_its_report(tmp_path: Path) -> None:
    results = study(SMALL, lambda text: None)
    assert [row.verdict for row in targets(results)][-1] == "not measured"
    both = results | {"join": SPARK, "aggregate": SPARK}
    assert [row.found is not None for row in targets(both)] == [True] * 5
    page = write_report(both, tmp_path / "report.html").read_text()
    for words in ("Figs 20, 21", "Fig. 22", "Figs 23, 24, 25", "the query went on with the next batch"):
        assert words in page
    assert "went on" in write_report({"join": SPARK}, tmp_path / "spark.html").read_text()
