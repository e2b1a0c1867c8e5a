"""What the testbed measures: contenders, workloads, settings, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headgate.bench.hone.skew import BURSTS, CATCH_UP, EVEN, HOT
from headgate.bench.linear_road.order import turns

SHUFFLE, PARTIAL_KEY = "shuffle", "partial-key"

LOADS = (0.85, 0.95, 1.05)
"""Input rates as shares of what the batch room can take: the paper's lie within 6 % of their middle one; below, nothing
waits that would not fit into the next batch, and all rules are the same."""

TAIL_S = 20.0
"""The traffic goes on for so long after the measured time: records that still wait then have company as before."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to choose what goes into a batch that has not room for all."""

    name: str
    title: str
    kind: str
    compose: str | None
    """Of Headgate's Kafka source; None is Spark's own source, which splits in proportion to the backlogs."""


CONTENDERS = {
    each.name: each
    for each in (
        Contender("lbf", "largest backlog first", "headgate", "lbf"),
        Contender("oldest", "oldest first", "headgate", "oldest"),
        Contender("proportional", "proportional", "paper", "proportional"),
        Contender("round-robin", "round robin", "paper", "round-robin"),
        Contender("spark", "Spark’s own source", "stock", None),
    )
}


@dataclass(frozen=True, slots=True)
class Workload:
    """WordCount with a way of grouping, over sentences of 1 to `max_words` words."""

    grouping: str
    max_words: int

    @property
    def name(self) -> str:
        return f"{self.grouping}-{self.max_words}"


MAIN = Workload(SHUFFLE, 30)
VARIED = (Workload(PARTIAL_KEY, 30), Workload(SHUFFLE, 20), Workload(SHUFFLE, 10))


@dataclass(frozen=True, slots=True)
class Setting:
    """All contenders meet here."""

    workload: Workload
    skew: str
    load: float

    @property
    def title(self) -> str:
        return f"{self.workload.name}, {self.skew}, load {self.load:g}"


@dataclass(frozen=True, slots=True)
class Programme:
    """Every setting with every contender, `repeats` times."""

    skews: tuple[str, ...] = (EVEN, CATCH_UP, BURSTS, HOT)
    loads: tuple[float, ...] = LOADS
    varied: tuple[Workload, ...] = VARIED
    contenders: tuple[str, ...] = tuple(CONTENDERS)
    repeats: int = 3
    measure_s: float = 40.0
    """Two of the periods in which every partition has its burst, and longer than any rule needs for a minute's worth
    of one partition at the loads here, but for round robin."""
    settle_s: float = 10.0
    seed: int = 1

    def settings(self) -> list[Setting]:
        """The rates with each kind of skew; then other groupings and lengths where one partition catches up."""
        main = [Setting(MAIN, skew, load) for skew in self.skews for load in self.loads]
        if CATCH_UP not in self.skews:
            return main
        return main + [Setting(workload, CATCH_UP, middle(self.loads)) for workload in self.varied]

    def runs(self) -> Iterator[tuple[int, Setting, Contender]]:
        """Repeat by repeat; contenders take turns, and who begins changes every time."""
        for repeat in range(self.repeats):
            for number, setting in enumerate(self.settings()):
                for name in turns([self.contenders], repeat + number):
                    yield repeat, setting, CONTENDERS[name]


QUICK = Programme((EVEN, CATCH_UP), (0.95,), (), ("lbf", "proportional", "spark"), repeats=1)


def middle(loads: Sequence[float]) -> float:
    return sorted(loads)[len(loads) // 2]
