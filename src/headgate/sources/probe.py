"""Looking at Spark's own sources from outside: what waits in them, so that a gate before them knows when to open.

A probe only watches. Spark's source decides itself what it reads, which is everything that is there when the gate lets
go; so what has arrived since then is what waits. Before the first opening nobody knows where the query stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol, get_args

from headgate.core.arrivals import Arrivals
from headgate.sources.feed import Feed, Offset, Pending, Taken

OPTION = "headgate.probe-secret"
"""What to watch, as JSON. It may hold credentials: Spark hides the values of options whose names say so."""


PATIENCE_MS = 1_000
"""A gate must not keep a query waiting because its probe does not get an answer."""


class Probe(Protocol):
    """What has arrived since the last opening."""

    def pending(self, now_s: float) -> Pending | None:
        """None as long as that is not known."""

    def opened(self, now_s: float) -> Taken | None:
        """Spark is going to read all that is there now."""


class FeedProbe:
    """A native source that is only asked, never read."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._position: Offset | None = None

    def pending(self, now_s: float) -> Pending | None:
        return None if self._position is None else self._feed.pending(self._position, now_s)

    def opened(self, now_s: float) -> Taken | None:
        if self._position is None:
            self._position = self._feed.initial(now_s)
            return None
        taken = self._feed.take(self._position, None, now_s)
        self._position = taken.end
        self._feed.forget(taken.end)
        return taken


class FolderProbe:
    """New files in a folder, remembered by their paths."""

    def __init__(self, path: str, file_format: str) -> None:
        from fsspec.core import url_to_fs

        from headgate.sources.files.listing import listing_of
        from headgate.sources.files.rows import RowEstimator

        self._listing = listing_of(path)
        self._estimator = RowEstimator(url_to_fs(path)[0], _known_format(file_format))
        self._known: set[str] | None = None
        self._waiting: list[tuple[float, int]] = []
        self._looked_at_s = 0.0

    def pending(self, now_s: float) -> Pending | None:
        if self._known is None:
            return None
        self._look(now_s)
        if not self._waiting:
            return Pending(0, None)
        return Pending(sum(rows for _, rows in self._waiting), min(at_s for at_s, _ in self._waiting))

    def opened(self, now_s: float) -> Taken | None:
        if self._known is None:
            self._known, self._looked_at_s = {file.path for file in self._listing.new_files(frozenset(), now_s)}, now_s
            return None
        self._look(now_s)
        taken, self._waiting = self._waiting, []
        return Taken({}, sum(rows for _, rows in taken), Arrivals.of((at_s, 0.0, 1) for at_s, _ in taken))

    def _look(self, now_s: float) -> None:
        from headgate.sources.files.config import DEFAULT_POLL_INTERVAL_S
        from headgate.sources.files.feed import LISTING_SHARE, arrived_s
        from headgate.sources.files.segments import FileEntry

        assert self._known is not None
        if 0 <= now_s - self._looked_at_s < max(DEFAULT_POLL_INTERVAL_S, self._listing.cost_s / LISTING_SHARE):
            return
        found = self._listing.new_files(self._known, now_s)
        entries = [FileEntry(0, file.path, file.size_bytes, file.modified_s, now_s) for file in found]
        stamps = [arrived_s(file.modified_s, self._looked_at_s, now_s) for file in found]
        self._waiting += zip(stamps, self._estimator.rows_of(entries), strict=True)
        self._known.update(file.path for file in found)
        self._looked_at_s = now_s


def _known_format(name: str) -> Any:
    """Formats that are not known (ORC, XML ...) are sampled as text: their rows are only a guess, as said."""
    from headgate.sources.files.config import FileFormat

    return name if name in get_args(FileFormat) else "text"


def probe_of(options: Mapping[str, str]) -> Probe | None:
    """The probe that a gate was given, if any."""
    text = options.get(OPTION)
    if text is None:
        return None
    wanted = json.loads(text)
    if wanted["kind"] == "kafka":
        return _kafka(wanted["options"])
    return FolderProbe(wanted["path"], wanted["format"])


def _kafka(options: Mapping[str, str]) -> Probe:
    from headgate.sources.kafka.broker import Broker
    from headgate.sources.kafka.config import KafkaConfig
    from headgate.sources.kafka.feed import KafkaFeed
    from headgate.sources.kafka.memory import ForgetfulMemory

    only = {
        name: value for name, value in options.items() if name.lower().startswith(("kafka.", "subscribe", "assign"))
    }
    mild = {"failOnDataLoss": "false", "startingOffsets": "latest", "kafkaConsumer.pollTimeoutMs": str(PATIENCE_MS)}
    config = KafkaConfig.parse({**only, **mild})
    return FeedProbe(KafkaFeed(config, Broker(config), ForgetfulMemory()))
