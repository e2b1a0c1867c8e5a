"""What a user may say about a folder of files, checked once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args
from zoneinfo import ZoneInfo

from headgate.core.durations import parse_duration
from headgate.errors import BadParameter
from headgate.sources.files.refused import HARMLESS, REFUSED
from headgate.sources.options import choice, flag, positive_int, refuse, text_of

FileFormat = Literal["json", "csv", "parquet", "text"]
ArrivalStamp = Literal["modified", "seen"]

DEFAULT_POLL_INTERVAL_S = 0.2
"""Short against deadlines of seconds; the listing stretches it where a look is expensive."""

_UTC_NAMES = ("UTC", "GMT", "UT", "Z", "Etc/UTC", "Etc/GMT")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(0?\d|1[0-8])(?::?([0-5]\d))?")


@dataclass(frozen=True, slots=True)
class FilesConfig:
    """The options of a files source; names as in Spark's own file source where it has them.

    What is said about CSV and `time_zone` matters to text formats only. Credentials and endpoints are fsspec's
    business: its configuration files and FSSPEC_* environment variables apply in the driver and in the executors.
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
    enforce_schema: bool = True
    """Columns of CSV go by position whatever a header calls them; without it their names must be the schema's."""
    quote: str = '"'
    escape: str = "\\"
    null_value: str = ""
    path_glob_filter: str | None = None
    max_bytes_per_trigger: int | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> FilesConfig:
        """Read Spark's options, whose names have no case; what is no option of Spark's file sources is left alone."""
        refuse(options, REFUSED, HARMLESS)
        poll_interval = text_of(options, "pollInterval")
        config = cls(
            path=_path(options),
            file_format=cast(FileFormat, choice(options, "fileFormat", get_args(FileFormat), required=True)),
            max_files_per_trigger=positive_int(options, "maxFilesPerTrigger"),
            arrival=cast(ArrivalStamp, choice(options, "arrival", get_args(ArrivalStamp))),
            poll_interval_s=parse_duration(
                DEFAULT_POLL_INTERVAL_S if poll_interval is None else poll_interval, "pollInterval"
            ),
            header=flag(options, "header", False),
            sep=_separator(options),
            time_zone=_time_zone(options),
            bad_records_path=text_of(options, "badRecordsPath"),
            enforce_schema=flag(options, "enforceSchema", True),
            quote=_character(options, "quote", '"'),
            escape=_character(options, "escape", "\\"),
            null_value=text_of(options, "nullValue") or "",
            path_glob_filter=_name_glob(options),
            max_bytes_per_trigger=positive_int(options, "maxBytesPerTrigger"),
        )
        config._check_together()
        return config

    def _check_together(self) -> None:
        if self.sep in (self.quote, self.escape):
            raise BadParameter("sep", self.sep, "it is the quote or escape character too", "write another one")
        if self.max_bytes_per_trigger and self.max_files_per_trigger:
            raise BadParameter(
                "maxBytesPerTrigger", self.max_bytes_per_trigger, "maxFilesPerTrigger is given too", "leave one out"
            )


def _path(options: Mapping[str, str]) -> str:
    path = text_of(options, "path") or ""
    if not path.strip():
        raise BadParameter("path", path, "a files source needs a folder", 'write .load("/data/in") or a glob')
    return path


def _separator(options: Mapping[str, str]) -> str:
    """The column separator; Spark knows it by two names and takes a tab as ``\\t``."""
    given = (text_of(options, name) for name in ("sep", "delimiter"))
    value = next((text for text in given if text is not None), ",").replace("\\t", "\t")
    if len(value) != 1 or value in "\r\n" or not value.isascii():
        raise BadParameter("sep", value, "a separator is one ASCII character", 'write for example "," or ";" or "\\t"')
    return value


def _character(options: Mapping[str, str], name: str, default: str) -> str:
    """One character, or none at all, which Spark also takes as the character zero."""
    value = text_of(options, name)
    if value is None:
        return default
    if len(value) > 1 or value in ("\r", "\n") or not value.isascii():
        raise BadParameter(
            name, value, "this is not one ASCII character", f'write for example "{default}", or "" for none'
        )
    return value.strip("\0")


def _name_glob(options: Mapping[str, str]) -> str | None:
    value = text_of(options, "pathGlobFilter")
    if value is not None and (not value or "/" in value or "\\" in value):
        raise BadParameter(
            "pathGlobFilter", value, "this is no pattern of file names", 'write for example "*.{csv,txt}"'
        )
    return value


def _time_zone(options: Mapping[str, str]) -> str:
    """As Spark names them: a region, or an offset such as +02:00, with or without GMT or UTC before it."""
    name = text_of(options, "timeZone") or "UTC"
    if name in _UTC_NAMES:  # known even where no time zones are installed
        return "UTC"
    if offset := _OFFSET.fullmatch(name):
        return f"{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}"
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError) as error:
        raise BadParameter(
            "timeZone", name, "this time zone is not known", 'write for example "UTC" or "Europe/Berlin"'
        ) from error
