"""The command around the judge."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.bench import gauge
from headgate.bench.linear_road import judge
from headgate.cli.bench_linear_road import command_line, named_settings
from headgate.cli.main import main
from headgate.errors import BadParameter


class Interrupted:
    """A judge whose user, or system, has had enough at once."""

    by = signal.SIGINT

    def __init__(self, *_: object) -> None:
        pass

    def run(self) -> None:
        signal.raise_signal(self.by)


@pytest.fixture
def _own_signals() -> Iterator[None]:
    """The command says what a signal does in its process; here that is pytest's."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("_own_signals")
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_shows_what_it_has(by: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Interrupted, "by", by)
    monkeypatch.setattr(judge, "Judge", Interrupted)
    monkeypatch.setattr(gauge, "Gauge", contextlib.nullcontext)
    assert main(["bench", "linear-road", "--quick", "--out", str(tmp_path)]) == 130
    assert "0 of 14 targets met" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("out", ["--out /home/ann/results", "--out=/home/ann/results"])
def test_results_tell_how_they_were_measured_and_not_where_they_were_put(out: str) -> None:
    words = f"/home/ann/bin/headgate bench linear-road --quick {out} --seed 3".split()
    assert command_line(words) == "headgate bench linear-road --quick --seed 3"


@pytest.mark.parametrize(
    ("text", "mixed", "equal"),
    [
        ("trigger-0", "trigger-0", "trigger-0"),
        ("equal-8-u=static-0.25-fair-plain,trigger-0", "trigger-0", "static-0.25-fair-plain"),
        ("mixed-u=static-0.5-fair", "static-0.5-fair", None),
    ],
)
def test_a_static_setting_is_named_for_all_scenarios_or_for_one(text: str, mixed: str, equal: str | None) -> None:
    found = named_settings(text, ["mixed-u", "equal-8-u"])
    assert found == {name: setting for name, setting in (("mixed-u", mixed), ("equal-8-u", equal)) if setting}


@pytest.mark.parametrize("text", ["equal-9-u=trigger-0", "mixed-u=trigger-x", "mixed-u="])
def test_a_static_setting_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(BadParameter):
        named_settings(text, ["mixed-u"])


def test_a_choice_that_leaves_nothing_to_measure_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "linear-road", "--contenders", "trigger-0", "--parts", "capacity", "--out", str(tmp_path)]
    assert main([*words, "--plan"]) == 2
    assert "nothing is measured for all of them together" in capsys.readouterr().err
