"""The session's defaults, without a session."""

from __future__ import annotations

import pytest

from headgate.engine import session


@pytest.mark.parametrize(
    ("master", "slots"),
    [("local", 1), ("local[3]", 3), ("local[6,2]", 6), ("local[*]", 4), ("local[*,2]", 4), ("spark://host:7077", None),
     ("yarn", None), ("local-cluster[2,1,1024]", None)],
)  # fmt: skip
def test_slots_of_a_master(monkeypatch: pytest.MonkeyPatch, master: str, slots: int | None) -> None:
    monkeypatch.setattr(session, "local_cores", lambda: 4)
    assert session.local_slots(master) == slots


def test_settings_for_one_machine_stay_on_it() -> None:
    everywhere = {setting.key for setting in session.defaults(local=False)}
    here = {setting.key for setting in session.defaults(local=True)}
    assert here - everywhere >= {"spark.driver.memory", "spark.default.parallelism"}
    assert everywhere <= here


def test_every_setting_says_why() -> None:
    keys = [setting.key for setting in session.DEFAULTS]
    assert len(keys) == len(set(keys))
    assert all(setting.reason for setting in session.DEFAULTS)
