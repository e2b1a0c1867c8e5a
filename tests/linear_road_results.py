"""Made-up results of the Linear Road benchmark in its real format, with knobs for what a test is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Results = dict[str, Any]

EQUAL = {f"equal-{seconds}-{traffic}": float(seconds) for seconds in (5, 8, 10) for traffic in ("u", "bursty")}
MIXED = {"alerts": 1.5, "lr2": 6.0, "lr3": 20.0, "lr1": 20.0}
SLOWNESS = {
    "slo-edf": 0.40, "slo-rdas": 0.45, "admission-only": 0.50, "scheduling-only": 1.05, "zstream-edf": 0.85,
    "zstream-rdas": 0.95, "qspark-fair": 0.92, "trigger-0": 0.42, "sb-fifo": 1.25, "sb-fair": 1.15,
    "static-0.5-fair": 0.70, "static-0.25-fair": 0.55,
}  # fmt: skip
"""The p95 of the maximum per batch, as a share of the deadline, at load 0.5."""
CPU_S = {"trigger-0": 60.0, "slo-edf": 31.0}
CAPACITY = {"slo-edf": 0.84, "static-0.5-fair": 0.5, "trigger-0": 0.48, "sb-fair": 0.2, "zstream-edf": 0.4}
SHARES = [index / 8 for index in range(1, 9)]
PAPERS = ("slo-edf", "zstream-edf", "zstream-rdas", "trigger-0", "sb-fifo", "sb-fair")


def deadlines(scenario: str) -> dict[str, float]:
    return dict.fromkeys(("lr1", "lr2", "lr3"), EQUAL[scenario]) if scenario in EQUAL else MIXED


def query(deadline_s: float, slowness: float, violation_rate: float, **changes: Any) -> dict[str, Any]:
    """One query of a run whose latencies are spread evenly up to about `slowness` deadlines; CDFs have few points."""
    longest_s = deadline_s * slowness
    found = {
        "deadline_s": deadline_s, "slo": 0.99, "batches": 20, "rows": 480_000, "rows_in_window": 500_000,
        "violations": round(480_000 * violation_rate), "violation_rate": violation_rate,
        "keeps_promise": violation_rate <= 0.01, "p50_s": longest_s * 0.5, "p95_s": longest_s * 0.9,
        "p99_s": longest_s, "max_s": longest_s * 1.1, "mean_s": longest_s * 0.5, "rows_per_s": 8_000.0, "busy_s": 31.0,
        "held_s": 20.0, "cdf": [[longest_s * (0.05 + 0.95 * share), share] for share in SHARES],
        "batch_max_cdf": [[longest_s * (0.5 + 0.5 * share**2), share] for share in SHARES],
        "batch_max_p95_s": longest_s, "batch_max_mean_s": longest_s * 0.7, "codes": {"early": 5, "due": 7},
    }  # fmt: skip
    return found | changes


def nothing_finished(deadline_s: float) -> dict[str, Any]:
    """A query that never got through, as the recorder tells about it."""
    latencies = ("p50_s", "p95_s", "p99_s", "max_s", "mean_s", "batch_max_p95_s", "batch_max_mean_s")
    found = query(
        deadline_s, 1.0, 0.0, rows=0, rows_in_window=0, batches=0, cdf=[], batch_max_cdf=[], violations=0, busy_s=0.0
    )
    return found | dict.fromkeys(latencies)


def run(part: str, scenario: str, contender: str, load: float = 0.5, repeat: int = 0, **changes: Any) -> dict[str, Any]:
    """One run; repeats differ by a per cent or two, higher loads are slower."""
    wobble = 1.0 + 0.02 * (repeat - 1)
    slowness = SLOWNESS[contender] * wobble * (1.0 + max(0.0, load - 0.5))
    late = min(1.0, max(0.0, slowness - 0.95) * 0.8) if contender != "slo-edf" else 0.002 * load * wobble
    queries = {name: query(deadline_s, slowness, late) for name, deadline_s in deadlines(scenario).items()}
    cpu_s = CPU_S.get(contender, 40.0) * (0.6 + 0.8 * load) * wobble
    made = {
        "part": part, "scenario": scenario, "contender": contender, "load": load, "rate": 24_000 * load,
        "repeat": repeat, "cores": 2, "measured_s": 60.0, "cpu_s": cpu_s, "rows": round(3_000_000 * load),
        "aborted": False, "queries": queries,
    }  # fmt: skip
    return made | changes


def capacity(scenario: str, contender: str, load: float, repeat: int = 0) -> dict[str, Any]:
    probes = [{"load": load, "kept": True, "worst_query": "lr1", "worst_violation_rate": 0.002}]
    return {
        "scenario": scenario, "contender": contender, "repeat": repeat, "load": load, "rate": 24_000 * load,
        "probes": probes,
    }  # fmt: skip


def results(**parts: Any) -> Results:
    """Results with the frame filled in and nothing measured but what is given."""
    kinds = {name: "headgate" if name.startswith(("slo", "adm", "sched")) else "stock" for name in SLOWNESS}
    frame: Results = {
        "format": 1, "headgate": "0.2.0", "spark": "4.3.0",
        "machine": {"cores": 2, "cpu": "A <CPU> & more", "memory_gb": 23.4, "python": "3.11.2", "system": "Linux"},
        "command": "headgate bench linear-road", "began": "2026-11-15T23:30:00+00:00", "took_s": 5_400.0,
        "settings": {"repeats": 3, "measure_s": 60.0, "settle_s": 15.0, "seed": 1, "parts": ["cells"]},
        "calibration": {
            "rate": 24_000.0, "query_sets": {"lr1+lr2+lr3": 24_000.0, "alerts+lr1+lr2+lr3": 23_000.0},
            "queries": {
                name: {"rows_per_s": 60_000.0, "spread": [58_000.0, 61_000.0], "fixed_s": 0.31, "per_row_s": 1.6e-5}
                for name in MIXED
            },
        },
        "best_static": dict.fromkeys((*EQUAL, "mixed-u", "mixed-bursty"), "static-0.5-fair"),
        "contenders": {name: {"title": f"the {name}", "kind": kind} for name, kind in kinds.items()},
        "scenarios": {
            name: {
                "title": name, "traffic": "U" if name.endswith("-u") else "bursty", "deadlines": deadlines(name)
            }
            for name in (*EQUAL, "mixed-u", "mixed-bursty")
        },
        "runs": [], "capacity": [], "saturation": [], "limit": [],
    }  # fmt: skip
    return frame | parts


def runs(
    part: str, scenarios: Iterable[str], contenders: Iterable[str], loads: Iterable[float], repeats: int = 3
) -> list[dict[str, Any]]:
    contenders, loads = list(contenders), list(loads)
    return [
        run(part, scenario, contender, load, repeat)
        for scenario in scenarios
        for load in loads
        for repeat in range(repeats)
        for contender in contenders
    ]


def full(
    repeats: int = 3, change: Callable[[dict[str, Any]], None] | None = None, deadlines_s: Iterable[int] = (5, 8, 10)
) -> Results:
    """Everything the benchmark can measure, after `change` has been at every run; without it every target is met."""
    mixed = ("slo-edf", "zstream-edf", "qspark-fair", "trigger-0", "static-0.5-fair")
    modules = ("sb-fifo", "scheduling-only", "admission-only", "slo-edf")
    equal = [f"equal-{seconds}-u" for seconds in deadlines_s]
    made = [
        *runs("cells", equal, (*PAPERS, "qspark-fair"), (0.5, 0.8), repeats),
        *runs("modules", equal[-1:], modules, (0.5,), repeats),
        *runs("mixed", ["mixed-u", "mixed-bursty"], mixed, (0.5, 0.7, 0.8), repeats),
        *(
            each | {"cores": cores}
            for cores in (1, 2)
            for each in runs("scaling", equal[-1:], ("slo-edf", "zstream-edf", "sb-fifo"), (0.5,), repeats)
        ),
    ]
    for each in made if change else []:
        assert change is not None
        change(each)
    return results(runs=made, capacity=_capacities(repeats), saturation=_saturation(repeats), limit=_limits())


def _capacities(repeats: int) -> list[dict[str, Any]]:
    return [
        capacity(scenario, contender, load * (1 + 0.03 * repeat), repeat)
        for scenario in ("mixed-bursty", "mixed-u", "equal-8-u", "equal-8-bursty")
        for contender, load in CAPACITY.items()
        for repeat in range(repeats)
    ]


def _saturation(repeats: int) -> list[dict[str, Any]]:
    return [
        {"contender": name, "repeat": repeat, "rows_per_s": rows + 500.0 * repeat, "queries": {"lr1": rows / 3}}
        for name, rows in (("slo-edf", 81_000.0), ("trigger-0", 80_000.0))
        for repeat in range(repeats)
    ]


def _limits() -> list[dict[str, Any]]:
    return [
        {"scenario": scenario, "load": load, "violation_rates": dict.fromkeys(deadlines(scenario), load / 1000)}
        for scenario in ("mixed-u", "mixed-bursty", "equal-8-u")
        for load in (0.5, 0.7, 0.8)
    ]
