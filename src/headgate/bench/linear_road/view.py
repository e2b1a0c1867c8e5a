"""The results as pictures and tables see them: a style for every contender, and runs in groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.bench.linear_road import lookup
from headgate.bench.linear_road.lookup import Results, Run
from headgate.bench.report.charts import legend
from headgate.bench.report.colours import Style, styles
from headgate.bench.report.page import Html


@dataclass(frozen=True, slots=True)
class View:
    """The results with a style for every contender, the same in all pictures."""

    results: Results
    styles: dict[str, Style]

    @classmethod
    def of(cls, results: Results) -> View:
        named = {run["contender"] for run in lookup.runs_of(results)}
        listed = {entry["contender"] for key in ("capacity", "saturation") for entry in results.get(key) or []}
        names = lookup.contenders(results, named | listed | set(results.get("contenders") or {}))
        return cls(results, styles({name: lookup.kind_of(results, name) for name in names}))

    def title(self, contender: str) -> str:
        return lookup.title_of(self.results, contender)

    def legend(self, contenders: Iterable[str]) -> Html:
        return legend([(self.title(name), self.styles[name]) for name in lookup.contenders(self.results, contenders)])


def by_contender(runs: Iterable[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run["contender"], []).append(run)
    return found


def queries_of(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(query for run in runs for query in run["queries"]))


def group_by(runs: Iterable[Run], *keys: str) -> list[list[Run]]:
    """Runs that agree in `keys`, in the order of their first one."""
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(tuple(run[key] for key in keys), []).append(run)
    return list(groups.values())
