from __future__ import annotations

import itertools
import math

import pytest

from cbabo.domain.audits import Audit, AuditedAnswer, binomial_interval, tail_probability


def row(i: int, found: bool | None, stress: float = 2.0, claimed: float = 0.98) -> AuditedAnswer:
    limits = {} if found is None else {"stress": found, "mass": True}
    by = {} if found is None else {"stress": -0.1 if found else 0.2, "mass": -1.0}
    claims = {"stress": claimed, "mass": 1.0}
    return AuditedAnswer(i, {"stress": stress}, {"x": float(i)}, claimed, claims, 0.9, found, limits, by, by)


def test_the_tail_is_that_of_a_sum_of_independent_events() -> None:
    claims = [0.9, 0.5, 0.7]
    for k in range(4):
        exact = sum(
            math.prod(p if happens else 1 - p for p, happens in zip(claims, events, strict=True))
            for events in itertools.product([True, False], repeat=3)
            if sum(events) <= k
        )
        assert tail_probability(claims, k) == pytest.approx(exact)


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    assert binomial_interval(17, 20) == pytest.approx((0.6211, 0.9679), abs=1e-4)
    assert binomial_interval(0, 20) == pytest.approx((0.0, 0.1684), abs=1e-4)


@pytest.mark.parametrize(("broken", "rejected"), [(0, False), (1, False), (2, False), (3, True)])
def test_a_claim_of_98_percent_is_rejected_from_three_of_twenty_on(broken: int, rejected: bool) -> None:
    audit = Audit(tuple(row(i, i >= broken) for i in range(20)), drawn=25)
    assert audit.rejected is rejected
    assert (audit.joint.found, audit.joint.count) == (20 - broken, 20)
    assert ("is rejected" in audit.sentence()) is rejected


def test_careful_claims_are_not_rejected() -> None:
    assert not Audit(tuple(row(i, True, claimed=0.5) for i in range(20)), 20).rejected


def test_failed_evaluations_count_for_success_only() -> None:
    audit = Audit((row(1, True), row(2, None), row(3, False)), drawn=3)
    assert (audit.joint.found, audit.joint.count) == (1, 2)
    assert (audit.success.found, audit.success.count, audit.success.claimed) == (2, 3, pytest.approx(0.9))
    assert {s.name: (s.found, s.count) for s in audit.limits} == {"stress": (1, 2), "mass": (2, 2)}
    frame = audit.errors_frame()
    assert frame[["evaluation", "breaks", "by"]].values.tolist() == [[3, "stress", 0.2]]


def test_a_table_without_errors_has_the_columns_of_one_with_errors() -> None:
    none = Audit((row(1, True),), drawn=1).errors_frame()
    assert len(none) == 0
    assert list(none) == list(Audit((row(1, False),), drawn=1).errors_frame())


def test_it_says_where_it_errs_and_reads_itself_back() -> None:
    audit = Audit(tuple(row(i, i > 3, stress=float(i)) for i in range(1, 11)), drawn=12, verified=1, unreachable=1)
    assert audit.where == ("all 3 broken answers have a limit stress <= 5.5",)
    again = Audit.from_dict(audit.to_dict(), 4, "2026-01-01")
    assert (again.rows, again.drawn, again.number, again.made) == (audit.rows, 12, 4, "2026-01-01")
    assert list(audit.to_frame()["name"]) == ["all limits", "stress", "mass", "simulator returns"]


def test_an_audit_in_which_everything_failed_claims_nothing() -> None:
    audit = Audit((row(1, None),), drawn=1)
    assert not audit.rejected
    assert audit.to_frame()["count"].tolist() == [0, 1]
