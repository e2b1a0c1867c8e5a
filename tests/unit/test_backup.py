"""What users say about backups, checked."""

from __future__ import annotations

import pytest

from headgate.errors import BadParameter
from headgate.state.backup import Backup
from headgate.state.keys import Line, parse_key


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            ({"places": []}, "backups need places"),
            ({"places": "/a/folder"}, "backups need places"),
            ({"places": ["/a"], "keep": 0}, "keep at least 1"),
            ({"places": ["/a"], "raw": 0}, "raw=0"),
            ({"places": ["/a"], "every": "soon"}, "every='soon'"),
            ({"places": ["/a"], "topology": ""}, "topology=''"),
        ],
    )
    def test_bad_ones_are_named(self, settings: dict[str, object], problem: str) -> None:
        with pytest.raises(BadParameter, match=problem):
            Backup(**settings)  # type: ignore[arg-type]

    def test_the_key_is_not_shown(self) -> None:
        assert "very secret" not in repr(Backup(["/a"], key="very secret"))
        with pytest.raises(BadParameter) as raised:
            Backup(["/a"], key="short").keys  # noqa: B018
        assert "short'" not in str(raised.value)

    def test_names_survive_as_keys(self) -> None:
        line = Line("..", "a/b c.d", "ü")
        found = parse_key(f"{line.prefix}/00000000000000000001-00000001-ab/manifest")
        assert found is not None and found.line == line
        assert ".." not in line.prefix
