"""The command around the judge."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

import pytest

from headgate.bench import gauge
from headgate.bench.linear_road import judge
from headgate.cli import bench_linear_road as command


class Interrupted:
    """A judge whose user has had enough at once."""

    def __init__(self, *_: object) -> None:
        pass

    def run(self) -> None:
        raise KeyboardInterrupt


def test_an_interrupted_run_shows_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "Judge", Interrupted)
    monkeypatch.setattr(gauge, "Gauge", contextlib.nullcontext)
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    with pytest.raises(KeyboardInterrupt):
        command.run(parser.parse_args(["--quick", "--out", str(tmp_path)]))
    assert "0 of 14 targets met" in (tmp_path / "report.html").read_text()
