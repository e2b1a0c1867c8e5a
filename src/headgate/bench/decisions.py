"""How long a decision takes: every rule, with many queries in every state. Needs no Spark."""

from __future__ import annotations

import random
import time
from dataclasses import asdict, dataclass

from headgate.core.admission import RULES
from headgate.core.clock import Instant
from headgate.core.cost import CostModel
from headgate.core.dispatcher import Dispatcher
from headgate.core.policies import POLICIES
from headgate.core.query_state import GateConfig, GateReport
from headgate.core.snapshot import Promise


@dataclass(frozen=True, slots=True)
class DecisionTimes:
    """Milliseconds from a gate's question to its answer."""

    rule: str
    queries: int
    decisions: int
    p50_ms: float
    p99_ms: float
    max_ms: float


def measure(rule: str, queries: int, decisions: int, seed: int = 1) -> DecisionTimes:
    """Ask a dispatcher with `queries` queries, of which some run, some wait and some have nothing."""
    random_ = random.Random(seed)
    dispatcher = _crowd(rule, queries, random_)
    took_ms = []
    now_s = 1_000.0
    for _ in range(decisions):
        now_s += 0.01
        name = f"q{random_.randrange(queries)}"
        report = GateReport(random_.randrange(0, 50_000), now_s - random_.uniform(0, 5), now_s)
        begun_s = time.perf_counter()
        dispatcher.asked(name, 0, report, Instant(now_s, now_s))
        took_ms.append((time.perf_counter() - begun_s) * 1e3)
    took_ms.sort()
    return DecisionTimes(
        rule, queries, decisions, took_ms[len(took_ms) // 2], took_ms[int(len(took_ms) * 0.99)], took_ms[-1]
    )


def _crowd(rule: str, queries: int, random_: random.Random) -> Dispatcher:
    dispatcher = Dispatcher(8, POLICIES["edf"], "edf")
    for index in range(queries):
        cost = CostModel()
        for _ in range(20):
            rows = random_.randint(100, 50_000)
            cost = cost.observe(rows, 0.2 + rows * 1e-5, random_.choice([0.0, 1.0]))
        promise = Promise(random_.choice([1.0, 5.0, 20.0, None]))
        dispatcher.add(GateConfig(f"q{index}", promise, RULES[rule], rule), cost)
    return dispatcher


def all_rules(queries: int = 50, decisions: int = 5_000) -> list[dict[str, object]]:
    return [asdict(measure(rule, queries, decisions)) for rule in RULES]
