"""The options of a files source: Spark's names, and a remedy for what it does not have."""

from __future__ import annotations

import pytest

from headgate.errors import BadParameter
from headgate.sources.files.config import FilesConfig
from headgate.sources.files.refused import HARMLESS, REFUSED


class TestConfig:
    def test_reads_names_in_any_case_and_leaves_others_alone(self):
        config = FilesConfig.parse(
            {
                "PATH": "/in",
                "fileformat": "CSV",
                "maxFilesPerTrigger": "7",
                "POLLINTERVAL": "1s",
                "delimiter": "\\t",
                "Header": "True",
                "timeZone": "Europe/Berlin",
                "deadline": "5s",
            }
        )
        assert config == FilesConfig("/in", "csv", 7, "modified", 1.0, True, "\t", "Europe/Berlin")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("path", " "),
            ("fileFormat", "orc"),
            ("fileFormat", None),
            ("maxFilesPerTrigger", "0"),
            ("maxFilesPerTrigger", "many"),
            ("arrival", "created"),
            ("pollInterval", "soon"),
            ("header", "yes"),
            ("sep", "||"),
            ("sep", ""),
            ("sep", '"'),
            ("quote", "''"),
            ("escape", "\n"),
            ("enforceSchema", "perhaps"),
            ("pathGlobFilter", "day=1/*"),
            ("maxBytesPerTrigger", "1g"),
            ("timeZone", "Mars/Olympus"),
        ],
    )
    def test_names_what_is_wrong(self, name, value):
        options = {"path": "/in", "fileFormat": "csv", name: value}
        with pytest.raises(BadParameter) as caught:
            FilesConfig.parse({key: each for key, each in options.items() if each is not None})
        assert caught.value.parameter == name

    @pytest.mark.parametrize("name", REFUSED)
    def test_refuses_what_it_would_ignore(self, name):
        with pytest.raises(BadParameter) as caught:
            FilesConfig.parse({"path": "/in", "fileFormat": "csv", name.lower(): "something"})
        assert (caught.value.parameter, caught.value.remedy) == (name, REFUSED[name])

    @pytest.mark.parametrize(("name", "value"), HARMLESS.items())
    def test_takes_what_it_does_anyway(self, name, value):
        plain = {"path": "/in", "fileFormat": "csv"}
        assert FilesConfig.parse({**plain, name: value.upper()}) == FilesConfig.parse(plain)

    def test_a_mode_that_hides_bad_records_has_a_remedy(self):
        for mode in ("PERMISSIVE", "DROPMALFORMED"):
            with pytest.raises(BadParameter, match=f"mode='{mode}'.*badRecordsPath"):
                FilesConfig.parse({"path": "/in", "fileFormat": "csv", "mode": mode})

    def test_two_limits_at_once_are_refused_as_in_spark(self):
        limits = {"maxFilesPerTrigger": "1", "maxBytesPerTrigger": "1"}
        with pytest.raises(BadParameter, match=r"maxBytesPerTrigger=1: .*leave one out"):
            FilesConfig.parse({"path": "/in", "fileFormat": "csv", **limits})

    @pytest.mark.parametrize(
        ("spark", "ours"),
        [
            ("GMT", "UTC"),
            ("Z", "UTC"),
            ("Etc/UTC", "UTC"),
            ("+02:00", "+02:00"),
            ("GMT+2", "+02:00"),
            ("UTC-09:30", "-09:30"),
            ("Europe/Berlin", "Europe/Berlin"),
        ],
    )
    def test_takes_time_zones_as_sessions_have_them(self, spark, ours):
        assert FilesConfig.parse({"path": "/in", "fileFormat": "csv", "timeZone": spark}).time_zone == ours
