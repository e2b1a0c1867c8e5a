"""What the papers report, as data, with the comparison of our own runs that speaks about it.

zStream: Lee, Jeong, Park, Jung and Park, Cluster Computing 2022. Q-Spark: Lee, Jeong, Kim and Park, ACSOS-C 2021.
Their machines, rates and Spark differ from ours, so only ratios are held beside each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headgate.bench.linear_road.lookup import OURS

Topic = Literal["tail", "average", "violations", "scaling", "modules"]


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a paper, and which of our runs speak about it."""

    topic: Topic
    source: str
    says: str
    metric: str
    """A query's figure in the results, or `rows_per_busy_s`."""
    rule: str
    """The contender that carries out the paper's rule; empty if none does."""
    against: str = ""
    """The contender it is compared with, or another comparison: `deadline`; `cores`, the most against the fewest;
    `lowest`, against every stock contender that was measured in the same cell."""
    scenario: str = "equal-*-u"
    traffic: Literal["low", "high", "any"] = "any"
    queries: tuple[str, ...] = ("lr1", "lr2", "lr3")
    part: str = "cells"
    ours: str = OURS


_LR1 = ("lr1",)

CLAIMS = (
    Claim(
        "tail", "zStream, Sec. 6.2, Fig. 7", "LR1, 5 s, low traffic: median 5.5 s with DB-EDF, 7.3 s with SB-FIFO",
        "batch_max_p50_s", "zstream-edf", "sb-fifo", "equal-5-u", "low", _LR1,
    ),
    Claim(
        "tail", "zStream, Sec. 6.2, Figs. 7–8", "the median stays close to the deadline (1 ×)",
        "batch_max_p50_s", "zstream-edf", "deadline",
    ),
    Claim(
        "tail", "zStream, Sec. 6.2, Fig. 9", "LR1 and LR2, 10 s, low traffic: p95 up to −26 % with DB-EDF",
        "batch_max_p95_s", "zstream-edf", "sb-fifo", "equal-10-u", "low", ("lr1", "lr2"),
    ),
    Claim(
        "tail", "zStream, Sec. 6.2, Fig. 9", "LR1 and LR2, 10 s, low traffic: p99 up to −27 % with DB-EDF",
        "batch_max_p99_s", "zstream-edf", "sb-fifo", "equal-10-u", "low", ("lr1", "lr2"),
    ),
    Claim(
        "tail", "zStream, Sec. 6.2, Fig. 10", "LR2 and LR3, 5 s, high traffic: only a slight difference in p95",
        "batch_max_p95_s", "zstream-edf", "sb-fifo", "equal-5-u", "high", ("lr2", "lr3"),
    ),
    Claim(
        "tail", "zStream, Sec. 6.2, Fig. 12", "LR1, 10 s, high traffic: p95 up to −34 % with DB-EDF",
        "batch_max_p95_s", "zstream-edf", "sb-fifo", "equal-10-u", "high", _LR1,
    ),
    Claim(
        "tail", "zStream, Sec. 6.2, Fig. 12", "LR1, 10 s, high traffic: p95 up to −16 % with DB-RDAS",
        "batch_max_p95_s", "zstream-rdas", "sb-fair", "equal-10-u", "high", _LR1,
    ),
    Claim(
        "tail", "Q-Spark, Sec. V-C, Fig. 4", "10 s, FAIR: maximum latency up to −73 % against trigger 0 or 5 s",
        "max_s", "qspark-fair", "trigger-0", "equal-10-u",
    ),
    Claim(
        "average", "zStream, Sec. 6.3, Fig. 14", "LR1, 10 s, high traffic: average latency up to −48 % with DB-EDF",
        "mean_s", "zstream-edf", "sb-fifo", "equal-10-u", "high", _LR1,
    ),
    Claim(
        "average", "zStream, Sec. 6.3, Fig. 14", "LR1, 10 s, high traffic: average latency up to −32 % with DB-RDAS",
        "mean_s", "zstream-rdas", "sb-fair", "equal-10-u", "high", _LR1,
    ),
    Claim(
        "average", "zStream, Sec. 6.3, Figs. 13–14", "average throughput is slightly higher",
        "rows_per_s", "zstream-edf", "sb-fifo",
    ),
    Claim(
        "average", "Q-Spark, Sec. V-C, Fig. 3", "throughput while a batch runs: trigger 0 is lowest, Q-Spark higher",
        "rows_per_busy_s", "qspark-fair", "trigger-0",
    ),
    Claim(
        "violations", "Q-Spark, Sec. V-D, Fig. 5", "lowest violation rate of all systems, whatever the workload",
        "violation_rate", "qspark-fair", "lowest",
    ),
    Claim(
        "scaling", "zStream, Sec. 6.4, Fig. 15", "stock FIFO does not gain from more workers (p95, LR1, 10 s)",
        "batch_max_p95_s", "sb-fifo", "cores", "*", queries=_LR1, part="scaling",
    ),
    Claim(
        "scaling", "zStream, Sec. 6.4, Fig. 15", "stock FAIR even gets slower with more workers (p95, LR1, 10 s)",
        "batch_max_p95_s", "sb-fair", "cores", "*", queries=_LR1, part="scaling",
    ),
    Claim(
        "scaling", "zStream, Sec. 6.4, Fig. 15", "zStream's p95 falls with more workers (LR1, 10 s)",
        "batch_max_p95_s", "zstream-edf", "cores", "*", queries=_LR1, part="scaling",
    ),
    Claim(
        "modules", "zStream, Sec. 6.5, Fig. 16", "admission control brings most of the gain (average latency of LR1)",
        "mean_s", "", "sb-fifo", "*", queries=_LR1, part="modules", ours="admission-only",
    ),
    Claim(
        "modules", "zStream, Sec. 6.5, Fig. 16", "scheduling brings up to −8 % on top of admission (LR1, 10 s)",
        "mean_s", "", "admission-only", "*", queries=_LR1, part="modules",
    ),
)  # fmt: skip
