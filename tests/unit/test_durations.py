"""Durations as people write them."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

from headgate.core.durations import format_duration, parse_duration
from headgate.errors import BadParameter


@pytest.mark.parametrize(
    "text,seconds",
    [("5s", 5), ("250ms", 0.25), ("1.5 min", 90), ("2 minutes", 120), ("1 hour", 3600), ("10 Seconds", 10),
     (".5s", 0.5), (5, 5), (0.25, 0.25), ("5", 5), (timedelta(seconds=3), 3)],
)  # fmt: skip
def test_understood(text: object, seconds: float) -> None:
    assert parse_duration(text, "deadline") == pytest.approx(seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad", ["soon", "", "5 parsecs", "-5s", "0s", 0, -1, float("nan"), float("inf"), True, None, "s5", "5s5"]
)
def test_refused_in_one_line_with_parameter_value_and_remedy(bad: object) -> None:
    with pytest.raises(BadParameter) as caught:
        parse_duration(bad, "deadline")  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.startswith(f"deadline={bad!r}: ") and '"5s"' in message and "\n" not in message
    assert isinstance(caught.value, ValueError)


def test_the_error_survives_pickling() -> None:
    error = BadParameter("deadline", "soon", "this is not a duration", "write 5s")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("seconds,text", [(0.38, "380 ms"), (1.5, "1.50 s"), (150, "2.5 min")])
def test_shown(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
