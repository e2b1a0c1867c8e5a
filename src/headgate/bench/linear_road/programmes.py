"""What is measured: the full benchmark, and one that fits into ten minutes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headgate.bench.linear_road.scenarios import SWEEP, Window, find_scenario

BEST = "best-static"
"""Stands for the stock setting that the sweep found for a scenario."""

PEERS = ("sb-fifo", "sb-fair", "slo-edf")
"""The papers' own peers and ours."""

PAPERS = ("qspark-fair", "zstream-edf", "zstream-rdas", "slo-rdas")
"""The papers' systems, and ours with RDAS: for the figures."""

CELLS = ("equal-5-u", "equal-8-u", "equal-10-u")
"""zStream's cells: the three deadlines under random traffic."""

REPEATED_CELL = "equal-8-u"
"""The one in which everybody is measured in every repeat."""

SCALED = ("sb-fifo", "sb-fair", "zstream-edf", "slo-edf")
"""Who is measured with fewer cores: stock Spark, the later of the papers, and ours."""

CAPACITY = ("mixed-bursty", "mixed-u", *CELLS, "equal-5-bursty", "equal-8-bursty", "equal-10-bursty")

LOW_RATE, HIGH_RATE = 1_000.0, 10_000.0
"""zStream's low and high traffic, reports per second."""

NEAR_FULL, ONE_CORE = 0.7, 0.35
"""The same as loads of this machine instead of rates: what it can hardly bear, and what one of its cores can."""


@dataclass(frozen=True, slots=True)
class Part:
    """Cells of one kind: every contender at every load of every scenario."""

    name: str
    scenarios: tuple[str, ...]
    loads: tuple[float, ...]
    """Shares of what the machine can do, or reports per second (:mod:`.load`)."""
    contenders: tuple[str, ...]
    cores: tuple[int, ...] = ()
    """Other numbers of cores than all; the rate stays that of the load on all cores."""
    repeats: int | None = None
    """If fewer than the programme's: figures that no target depends on."""

    def has_turn(self, repeat: int) -> bool:
        return self.repeats is None or repeat < self.repeats


@dataclass(frozen=True, slots=True)
class Programme:
    """Parts with cells, searches for SLO capacity, and throughput at saturation."""

    parts: tuple[Part, ...] = ()
    capacity: tuple[str, ...] = ()
    """Scenarios whose SLO capacity is searched for."""
    capacity_once: tuple[str, ...] = ()
    """Those of them that are searched in the first repeat only: a search takes several minutes."""
    capacity_contenders: tuple[str, ...] = (BEST, "slo-edf")
    saturation: tuple[str, ...] = ()
    repeats: int = 3
    measure_s: float = 60.0
    """Whole periods of the bursts, or one window would have more of them than another."""
    settle_s: float = 35.0
    """Until LR1's state is full: it keeps 30 s of reports, and no vehicle reports twice before."""
    drive_in_s: float = 720.0
    """A fresh JVM runs the queries without a pause until it has compiled them, but no longer: its first minutes are not
    the system."""
    warm_up_s: float = 30.0
    """At least so long a contender's application runs before it is measured, then until batch times stop falling."""
    seed: int = 1
    """Of the first repeat's traffic; every further repeat has the next, the same for all contenders."""
    costs: bool = True
    """Whether each query is measured alone: for the clairvoyant limit, and for the report."""
    sweep: tuple[str, ...] = SWEEP
    """Stock settings among which the best static one is found."""

    def only_parts(self, names: tuple[str, ...]) -> Programme:
        """Without the parts that are not named."""
        return replace(
            self,
            parts=tuple(part for part in self.parts if part.name in names),
            capacity=self.capacity if "capacity" in names else (),
            saturation=self.saturation if "saturation" in names else (),
        )

    def only_contenders(self, names: tuple[str, ...]) -> Programme:
        """Everywhere these alone; :data:`BEST` stands for the best static setting.

        Single static settings take part in searches for capacity only if they are named.
        """
        kept = [
            replace(part, contenders=tuple(name for name in part.contenders if name in names)) for part in self.parts
        ]
        return replace(
            self,
            parts=tuple(part for part in kept if part.contenders),
            capacity_contenders=tuple(
                name for name in names if name in self.capacity_contenders or name.startswith("static-")
            ),
            saturation=tuple(name for name in self.saturation if name in names),
        )

    def only_scenarios(self, names: tuple[str, ...]) -> Programme:
        """Every part in these scenarios alone, where it has them or the same promises under other traffic."""
        kept = [replace(part, scenarios=self._chosen(names, part.scenarios)) for part in self.parts]
        return replace(
            self,
            parts=tuple(part for part in kept if part.scenarios),
            capacity=self._chosen(names, self.capacity),
        )

    def _chosen(self, names: tuple[str, ...], among: tuple[str, ...]) -> tuple[str, ...]:
        """Those `among` that are named; one that nothing here uses, such as constant traffic, stands in for its kin."""
        promises = [find_scenario(name).deadlines_s for name in among]
        unused = [name for name in names if name not in self.scenarios]
        strangers = [name for name in unused if find_scenario(name).deadlines_s in promises]
        return tuple(dict.fromkeys([*(name for name in among if name in names), *strangers]))

    def window(self, repeat: int) -> Window:
        """What is measured of the traffic of this repeat, which is the same for all contenders."""
        return Window(self.settle_s, self.settle_s + self.measure_s, self.seed + repeat)

    def searched_in(self, repeat: int) -> list[str]:
        """The scenarios whose capacity is searched for in this repeat."""
        return [name for name in self.capacity if repeat == 0 or name not in self.capacity_once]

    @property
    def empty(self) -> bool:
        """Whether nothing is left to measure."""
        searched = self.capacity and self.capacity_contenders
        return not (self.parts or searched or self.saturation)

    @property
    def scenarios(self) -> list[str]:
        """Every scenario that is measured, once; throughput at saturation is measured with the mixed queries."""
        saturated = ["mixed-u"] if self.saturation else []
        return list(dict.fromkeys([*(n for part in self.parts for n in part.scenarios), *self.capacity, *saturated]))

    @property
    def query_sets(self) -> dict[str, list[str]]:
        """The sets of queries that run together, each with a capacity of its own."""
        scenarios = [find_scenario(name) for name in self.scenarios]
        return {scenario.query_set: list(scenario.deadlines_s) for scenario in scenarios}

    @property
    def needs_sweep(self) -> list[str]:
        """Scenarios in which the best static setting takes part."""
        used = [name for part in self.parts if BEST in part.contenders for name in part.scenarios]
        return list(dict.fromkeys(used + [name for name in self.capacity if BEST in self.capacity_contenders]))


def full(cores: int) -> Programme:
    """Everything: hours. It is written down after every run and goes on where it was interrupted."""
    return Programme(
        parts=(
            Part("mixed", ("mixed-bursty",), (0.5,), ("trigger-0", BEST, "slo-edf")),
            Part("mixed", ("mixed-bursty", "mixed-u"), (0.7, 0.8), ("slo-edf",)),
            Part("cells", CELLS, (LOW_RATE, HIGH_RATE), PEERS),
            Part("cells", CELLS, (LOW_RATE, HIGH_RATE), PAPERS, repeats=1),
            Part("cells", (REPEATED_CELL,), (NEAR_FULL,), (*PEERS, *PAPERS)),
            Part("modules", (REPEATED_CELL,), (NEAR_FULL,), ("admission-only", "scheduling-only")),
            Part("scaling", ("equal-10-u",), (ONE_CORE,), SCALED, tuple(sorted({1, cores})), repeats=1),
        ),
        capacity=CAPACITY,
        capacity_once=tuple(name for name in CAPACITY if name not in ("mixed-bursty", "mixed-u", REPEATED_CELL)),
        saturation=("trigger-0", "slo-edf"),
    )


def quick() -> Programme:
    """Two contenders, mixed deadlines under bursts, once: enough to see that something got much worse."""
    return Programme(
        parts=(Part("mixed", ("mixed-bursty",), (0.5,), ("trigger-0", "slo-edf")),),
        repeats=1,
        drive_in_s=90.0,
        costs=False,
    )
