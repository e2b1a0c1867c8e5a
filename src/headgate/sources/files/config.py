"""What a user may say about a folder of files, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args
from zoneinfo import ZoneInfo

from headgate.core.durations import parse_duration
from headgate.errors import BadParameter

FileFormat = Literal["json", "csv", "parquet", "text"]
ArrivalStamp = Literal["modified", "seen"]

DEFAULT_POLL_INTERVAL_S = 0.2
"""Short against deadlines of seconds; the listing stretches it where a look is expensive."""


@dataclass(frozen=True, slots=True)
class FilesConfig:
    """The options of a files source; names as in Spark's own file source where it has them.

    `header`, `sep` and `time_zone` matter to text formats only. Credentials and endpoints are fsspec's business: its
    configuration files and FSSPEC_* environment variables apply in the driver and in the executors.
    """

    path: str
    file_format: FileFormat
    max_files_per_trigger: int | None = None
    arrival: ArrivalStamp = "modified"
    poll_interval_s: float = DEFAULT_POLL_INTERVAL_S
    header: bool = False
    sep: str = ","
    time_zone: str = "UTC"
    bad_records_path: str | None = None
    """Where records that cannot be read are set aside; without it they end the query."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> FilesConfig:
        """Read Spark's options, whose names have no case; options that are not a files source's are left alone."""
        given = {key.lower(): value for key, value in options.items()}
        return cls(
            path=_path(given),
            file_format=cast(FileFormat, _choice(given, "fileFormat", get_args(FileFormat), None)),
            max_files_per_trigger=_count(given, "maxFilesPerTrigger"),
            arrival=cast(ArrivalStamp, _choice(given, "arrival", get_args(ArrivalStamp), "modified")),
            poll_interval_s=parse_duration(given.get("pollinterval", DEFAULT_POLL_INTERVAL_S), "pollInterval"),
            bad_records_path=given.get("badrecordspath"),
            header=_choice(given, "header", ("true", "false"), "false") == "true",
            sep=_separator(given),
            time_zone=_time_zone(given),
        )


def _path(given: Mapping[str, str]) -> str:
    path = given.get("path", "")
    if not path.strip():
        raise BadParameter("path", path, "a files source needs a folder", 'write .load("/data/in") or a glob')
    return path


def _choice(given: Mapping[str, str], name: str, allowed: tuple[str, ...], default: str | None) -> str:
    value = given.get(name.lower(), default)
    if value is None or value.lower() not in allowed:
        raise BadParameter(name, value, "this is not one of the choices", f"write one of {', '.join(allowed)}")
    return value.lower()


def _count(given: Mapping[str, str], name: str) -> int | None:
    value = given.get(name.lower())
    if value is None:
        return None
    if not value.strip().isdecimal() or int(value) < 1:
        raise BadParameter(name, value, "this is not a number of files", "write a whole number from 1, or leave it out")
    return int(value)


def _separator(given: Mapping[str, str]) -> str:
    """The column separator; Spark knows it by two names and takes a tab as ``\\t``."""
    value = given.get("sep", given.get("delimiter", ",")).replace("\\t", "\t")
    if len(value) != 1 or value in '"\r\n' or not value.isascii():
        raise BadParameter("sep", value, "a separator is one ASCII character", 'write for example "," or ";" or "\\t"')
    return value


def _time_zone(given: Mapping[str, str]) -> str:
    name = given.get("timezone", "UTC")
    if name == "UTC":  # known even where no time zones are installed
        return name
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError) as error:
        raise BadParameter(
            "timeZone", name, "this time zone is not known", 'write for example "UTC" or "Europe/Berlin"'
        ) from error
