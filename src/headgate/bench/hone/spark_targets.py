"""What the testbed should show, and what it showed: ratios of runs of the same repeat, whose traffic was the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from headgate.bench.hone.programme import CONTENDERS, MAIN
from headgate.bench.hone.skew import EVEN, TITLES
from headgate.bench.report.target import Sample, Target, make_target

Results = dict[str, Any]
Run = dict[str, Any]

OURS = "lbf"
PEERS = ("proportional", "spark")
"""The same split twice: in Headgate's source, where nothing else differs, and in Spark's own."""

LEAST_REDUCTION = 0.5
NO_LOSS = 1.05
"""Within the noise of runs on a shared machine."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A run of ours and one of a peer with the same traffic."""

    ours: Run
    theirs: Run

    @property
    def ratio(self) -> float:
        """Of the slowest partition's p99."""
        return slowest_s(self.ours) / max(slowest_s(self.theirs), 1e-9)


def slowest_s(run: Run) -> float:
    return float(run["slowest"]["p99_s"])


def targets(results: Results) -> list[Target]:
    """For every kind of skew and both peers, over all rates; then without skew."""
    skewed = [
        _target(results, skew, peer, f"p99 of the slowest partition below that of {_of(peer)}: {TITLES[skew]}")
        for skew in TITLES
        for peer in PEERS
        if skew != EVEN
    ]
    even = [
        make_target(
            f"p99 of the slowest partition over that of {_of(peer)}: {TITLES[EVEN]}", NO_LOSS, False, "ratio",
            [Sample(pair.ours["repeat"], pair.ratio, _place(pair.ours)) for pair in main_pairs(results, EVEN, peer)],
            fmean, "the mean over all rates",
        )
        for peer in PEERS
    ]  # fmt: skip
    return skewed + even


def _target(results: Results, skew: str, peer: str, measure: str) -> Target:
    samples = [
        Sample(pair.ours["repeat"], 1 - pair.ratio, _place(pair.ours)) for pair in main_pairs(results, skew, peer)
    ]
    return make_target(measure, LEAST_REDUCTION, True, "share", samples, fmean, "the mean over all rates")


def _of(peer: str) -> str:
    return {"proportional": "a proportional split in the same source"}.get(peer, CONTENDERS[peer].title)


def _place(run: Run) -> str:
    return f"{run['workload']}, {run['skew']}, load {run['load']:g}, repeat {run['repeat'] + 1}"


def main_pairs(results: Results, skew: str, peer: str) -> list[Pair]:
    runs = [run for run in results["runs"] if run["workload"] == MAIN.name and run["skew"] == skew]
    return list(pairs(runs, peer))


def pairs(runs: Sequence[Run], peer: str) -> Iterator[Pair]:
    """Ours and the peer's runs of the same setting and repeat."""
    theirs = {_key(run): run for run in runs if run["contender"] == peer and run["rows"]}
    for run in runs:
        if run["contender"] == OURS and run["rows"] and _key(run) in theirs:
            yield Pair(run, theirs[_key(run)])


def _key(run: Run) -> tuple[Any, ...]:
    return run["workload"], run["skew"], run["load"], run["repeat"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ours against one peer in one setting, over repeats."""

    workload: str
    skew: str
    load: float
    peer: str
    ratios: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return median(self.ratios)


def comparisons(results: Results) -> list[Comparison]:
    """All settings and peers, in the order of the results."""
    found: dict[tuple[str, str, float, str], list[float]] = {}
    for peer in CONTENDERS:
        for pair in pairs(results["runs"], peer) if peer != OURS else ():
            run = pair.ours
            found.setdefault((run["workload"], run["skew"], run["load"], peer), []).append(pair.ratio)
    return [Comparison(*key, ratios=tuple(ratios)) for key, ratios in found.items()]


def losses(results: Results) -> list[Comparison]:
    """Where ours is worse than somebody else beyond the noise, the worst first."""
    lost = [each for each in comparisons(results) if each.ratio > NO_LOSS]
    return sorted(lost, key=lambda each: -each.ratio)
