"""Who gets the cores."""

from __future__ import annotations

import math

import pytest

from headgate.core.policies import Share, edf, edf_lbf, fair, fifo, find_policy, lbf, rdas
from headgate.errors import BadParameter
from tests.making import moment, query, running

SITUATION = moment(
    100.0,
    query("first", rows=None, running=running(opened_at_s=97, due_at_s=120)),
    query("urgent", rows=None, running=running(opened_at_s=98, due_at_s=101)),
    query("free", rows=None, running=running(opened_at_s=99, due_at_s=math.inf)),
    query("waits"),
    cores=6,
)


def test_fair_treats_all_alike() -> None:
    assert set(fair(SITUATION).values()) == {Share(0, 1)}


def test_fifo_serves_the_one_let_in_first() -> None:
    assert fifo(SITUATION)["first"].min_share == 6


def test_edf_serves_the_one_due_first() -> None:
    shares = edf(SITUATION)
    assert shares["urgent"].min_share == 6
    assert shares["first"].min_share == shares["free"].min_share == 0
    assert shares["first"].weight > shares["free"].weight


def test_edf_serves_what_can_be_in_time_before_what_is_late_already() -> None:
    late = query("late", rows=None, running=running(due_at_s=99))
    later = query("later", rows=None, running=running(due_at_s=98))
    in_time = query("in-time", rows=None, running=running(due_at_s=110))
    free = query("free", rows=None, running=running(due_at_s=math.inf))
    shares = edf(moment(100.0, late, later, free, in_time))
    order = sorted(shares, key=lambda name: -shares[name].weight)
    assert order == ["in-time", "later", "late", "free"]


def test_rdas_divides_the_cores_by_urgency() -> None:
    shares = rdas(SITUATION)
    assert shares["urgent"].min_share > shares["first"].min_share
    assert shares["urgent"].weight == 100
    assert sum(share.min_share for share in shares.values()) == 6


def test_rdas_divides_evenly_among_equals() -> None:
    equals = moment(100.0, *(query(n, rows=None, running=running(due_at_s=110)) for n in "abc"), cores=6)
    assert {share.min_share for share in rdas(equals).values()} == {2}


def test_what_does_not_run_gets_nothing() -> None:
    for policy in (fifo, edf, rdas):
        assert policy(SITUATION)["waits"] == Share()


def test_an_unknown_policy_is_refused_with_the_choices() -> None:
    with pytest.raises(BadParameter, match=r"policy='lottery'.*fifo, fair, edf, rdas"):
        find_policy("lottery")


BACKLOGS = moment(
    100.0,
    query("behind", rows=50_000, running=running(finish_at_s=102, due_at_s=140)),
    query("nearly-done", rows=10, running=running(finish_at_s=100.2, due_at_s=130)),
    query("in-danger", rows=10, running=running(finish_at_s=101, due_at_s=101.5)),
    cores=6,
)


def order_of(shares: dict[str, Share]) -> list[str]:
    return sorted(shares, key=lambda name: -shares[name].weight)


def test_lbf_serves_the_one_with_the_most_work_before_it() -> None:
    assert order_of(lbf(BACKLOGS)) == ["behind", "in-danger", "nearly-done"]


def test_edf_lbf_serves_what_is_in_danger_first() -> None:
    assert order_of(edf_lbf(BACKLOGS)) == ["in-danger", "behind", "nearly-done"]
    assert edf_lbf(BACKLOGS)["in-danger"].min_share == 6
