"""What a user says about the backups of a query, and what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headgate.core.durations import Duration, parse_duration
from headgate.errors import BadParameter
from headgate.state.catalog import Catalog
from headgate.state.code import Code
from headgate.state.keys import Line
from headgate.state.manifest import Manifest
from headgate.state.packing import Prepare, Progress, nothing
from headgate.state.places import Places
from headgate.state.restoring import restore
from headgate.state.saving import Saver
from headgate.state.stores.opening import open_places
from headgate.state.tags import Keys


@dataclass(frozen=True)
class Backup:
    """Keep a query's state in `raw` + `check` blocks at these places, any `raw` of which bring it back.

    :param places: folders, ``http://host:port`` of headgate state servers, or URLs that fsspec knows; ``label=URL``
        says which of them fail together.
    :param every: how often at most; only when something was committed since.
    :param keep: how many backups are kept.
    :param key: a secret: blocks that were not written with it are refused. Peers need it. Or `key_file`, its file.
    :param topology: a name above those of the queries, for several applications that share places.
    :param instance: which of several queries of one name.
    """

    places: Sequence[str]
    raw: int = 7
    check: int = 3
    every: Duration = "30s"
    keep: int = 3
    key: str | None = field(default=None, repr=False)
    key_file: str | None = None
    topology: str = "default"
    instance: str = "0"

    def __post_init__(self) -> None:
        if isinstance(self.places, str) or not self.places or not all(isinstance(at, str) for at in self.places):
            raise BadParameter("places", self.places, "backups need places", 'write for example ["/mnt/a", "/mnt/b"]')
        if isinstance(self.keep, bool) or not isinstance(self.keep, int) or self.keep < 1:
            raise BadParameter("keep", self.keep, "is no number of backups", "keep at least 1")
        for name in ("topology", "instance"):
            if not getattr(self, name):
                raise BadParameter(name, getattr(self, name), "is empty", "give it a name")
        self.code  # noqa: B018 (checks both numbers)
        parse_duration(self.every, "every")

    @property
    def code(self) -> Code:
        return Code(self.raw, self.check)

    @property
    def every_s(self) -> float:
        return parse_duration(self.every, "every")

    @property
    def keys(self) -> Keys:
        return Keys(self.key if self.key_file is None else read_key(self.key_file))

    def line(self, query: str) -> Line:
        return Line(self.topology, query, self.instance)

    def open(self) -> Places:
        return Places(open_places(self.places, self.keys))

    def saver(self, query: str, prepare: Prepare = nothing) -> Saver:
        """Become the writer of a query's backups; whoever was it before is shut out."""
        return Saver(self.open(), self.line(query), self.code, self.keys, self.keep, prepare=prepare)

    def catalog(self, query: str) -> Catalog:
        return Catalog(self.open(), self.line(query), self.keys)

    def restore(self, query: str, into: str, batch: int | None = None, tell: Progress = lambda count: None) -> Manifest:
        """The newest backup, or that of a batch, into a folder that does not exist yet: the query's new checkpoint."""
        catalog = self.catalog(query)
        manifest = catalog.choose(batch)
        restore(catalog, manifest, into, tell)
        return manifest


def read_key(path: str) -> str:
    try:
        return Path(path).expanduser().read_text().strip()
    except OSError as error:
        raise BadParameter(
            "key_file", path, f"cannot be read ({error.strerror})", "name a file with one line"
        ) from error
