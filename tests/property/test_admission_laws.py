"""Laws that hold for every snapshot, whatever the numbers."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.core.admission import RULES, latest, slo
from headgate.core.admission.timing import OVERRUN
from headgate.core.admission.turns import YIELD_S
from headgate.core.cost import CostModel
from headgate.core.policies import POLICIES
from headgate.core.snapshot import Promise, QueryView, Running, Snapshot, Waiting

NOW_S = 1_000.0

costs = st.builds(
    lambda fixed_s, per_row_s, stretch, n: CostModel(
        batches=n, weight=10.0, mean_rows=1e4, mean_s=fixed_s + per_row_s * 1e4, mean_rows_s=1e4, max_rows_s=2e4,
        fixed_s=fixed_s, per_row_s=per_row_s, stretch=stretch,
    ),
    st.floats(0.01, 5.0), st.floats(0.0, 1e-3), st.floats(0.0, 3.0), st.integers(0, 50),
)  # fmt: skip
promises = st.builds(Promise, st.none() | st.floats(0.05, 60.0), st.floats(0.5, 0.999))
waitings = st.builds(Waiting, st.floats(0.0, 1e7), st.floats(NOW_S - 120, NOW_S), st.floats(0.0, 1e5))
runnings = st.builds(
    Running,
    st.floats(NOW_S - 60, NOW_S),
    st.floats(1, 1e6),
    st.floats(NOW_S - 5, NOW_S + 60),
    st.floats(NOW_S - 60, NOW_S + 60),
    st.booleans(),
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    count = draw(st.integers(1, 6))
    views = tuple(
        QueryView(
            f"q{index}", draw(promises), draw(costs), draw(st.none() | waitings),
            draw(st.none() | runnings) if index else None, draw(st.booleans()), draw(st.booleans()),
            draw(st.just(math.inf) | st.floats(NOW_S - 60, NOW_S)), draw(st.sampled_from((0.0, YIELD_S))),
        )
        for index in range(count)
    )  # fmt: skip
    return Snapshot(NOW_S, draw(st.integers(1, 64)), views, draw(st.sampled_from(sorted(POLICIES))))


@given(snapshots(), st.sampled_from(sorted(RULES)))
def test_a_decision_is_a_function_of_its_snapshot(snapshot: Snapshot, rule: str) -> None:
    query = snapshot.queries[0]
    assert RULES[rule](snapshot, query) == RULES[rule](snapshot, query)


@given(snapshots(), st.sampled_from(sorted(RULES)))
def test_an_admitted_batch_is_never_empty(snapshot: Snapshot, rule: str) -> None:
    query = snapshot.queries[0]
    decision = RULES[rule](snapshot, query)
    if decision.open:
        assert query.waiting is not None
        assert query.waiting.rows > 0 or rule == "observe"
        assert decision.max_rows is None or decision.max_rows >= 1


@given(snapshots())
@settings(max_examples=300)
def test_never_held_past_the_latest_safe_start(snapshot: Snapshot) -> None:
    """A held batch could still start when it will be asked again, grown by then, and be in time at its quantile."""
    query = snapshot.queries[0]
    for rule in (slo, latest):
        decision = rule(snapshot, query)
        if decision.open or query.waiting is None or query.promise.deadline_s is None or query.waiting.rows <= 0:
            continue
        if decision.code == "turn":
            continue
        rows = query.waiting.rows_at(decision.until_s, NOW_S)
        finish_s = decision.until_s + query.cost.quantile_s(rows, 0.0, query.promise.slo)
        assert finish_s <= query.due_at_s + 1e-6


@given(snapshots())
@settings(max_examples=300)
def test_whoever_waits_for_its_turn_waits_for_somebody(snapshot: Snapshot) -> None:
    """Somebody runs until about then, or it is not due before, or somebody else starts now: no idle core for order's
    sake."""
    query, others = snapshot.queries[0], snapshot.queries[1:]
    decision = slo(snapshot, query)
    if decision.code != "turn":
        return
    if decision.first is None:
        last_s = max(running.finish_at_s for _, running in snapshot.at_work(query))
        assert decision.until_s <= max(NOW_S + OVERRUN * (last_s - NOW_S), NOW_S + YIELD_S, decision.latest_start_s)
        return
    (first,) = (other for other in others if other.name == decision.first)
    assert first.waiting is not None and first.asking
    assert decision.until_s == NOW_S + YIELD_S
    impatient = query._replace(let_go_s=YIELD_S)
    again = slo(replace(snapshot, queries=(impatient, *others)), impatient)
    assert again.first is None, "if nobody has started meanwhile it lets nobody go first"


@given(snapshots())
@settings(max_examples=500)
def test_somebody_is_first(snapshot: Snapshot) -> None:
    """Whoever lets somebody go first who lets somebody go first … comes to an end: never round in a circle."""
    names, seen = {query.name: query for query in snapshot.queries}, []
    name: str | None = snapshot.queries[0].name
    while name is not None:
        assert name not in seen
        seen.append(name)
        name = slo(snapshot, names[name]).first


@given(snapshots(), st.sampled_from(sorted(RULES)))
def test_never_held_for_ever(snapshot: Snapshot, rule: str) -> None:
    query = snapshot.queries[0]
    decision = RULES[rule](snapshot, query)
    if not decision.open and query.waiting is not None and query.waiting.rows > 0:
        assert math.isfinite(decision.until_s)
        assert decision.until_s > NOW_S


@given(snapshots(), st.floats(0.0, 60.0), st.sampled_from(sorted(RULES)))
@settings(max_examples=300)
def test_monotone_in_age(snapshot: Snapshot, older_s: float, rule: str) -> None:
    """What may start now may start if its oldest record were older still."""
    query = snapshot.queries[0]
    if query.waiting is None or not RULES[rule](snapshot, query).open:
        return
    aged = query._replace(waiting=query.waiting._replace(oldest_at_s=query.waiting.oldest_at_s - older_s))
    decision = RULES[rule](replace(snapshot, queries=(aged, *snapshot.queries[1:])), aged)
    if decision.first is not None and aged.due_at_s < NOW_S <= query.due_at_s:
        return  # late by now: those go first that can still be in time, or have waited for longer
    assert decision.open


@given(snapshots(), st.sampled_from(sorted(RULES)))
def test_every_decision_says_why(snapshot: Snapshot, rule: str) -> None:
    decision = RULES[rule](snapshot, snapshot.queries[0])
    assert decision.reason and decision.code
    assert "\n" not in decision.reason


@given(snapshots(), st.sampled_from(sorted(POLICIES)))
def test_a_policy_covers_every_query_and_stays_within_the_cores(snapshot: Snapshot, policy: str) -> None:
    shares = POLICIES[policy](snapshot)
    assert set(shares) == {query.name for query in snapshot.queries}
    assert all(share.weight >= 1 and 0 <= share.min_share <= snapshot.cores for share in shares.values())
    assert sum(share.min_share for share in shares.values()) <= snapshot.cores
