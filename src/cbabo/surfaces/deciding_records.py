"""Decisions, audits, committed and robust designs in plain values: the JSON that the command line and the web server share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from cbabo.domain.audits import Audit, Share
from cbabo.study.ledger import Decision
from cbabo.surfaces.records import answer_record, table_rows

if TYPE_CHECKING:
    from cbabo.decisions.common_design import CommonDesign
    from cbabo.decisions.tolerancing import Tolerances


def decision_record(decision: Decision) -> dict[str, Any]:
    """State a decision or a proposal."""
    return {
        "number": decision.number,
        "kind": decision.kind,
        "made": decision.made.isoformat(timespec="seconds"),
        "by": decision.by,
        "note": decision.note,
        "limits": dict(decision.thresholds),
        "intents": dict(decision.intents),
        "design": dict(decision.point),
        "objective": decision.objective.mean,
        "objective_std": decision.objective.std,
        "probability_feasible": decision.probability_feasible,
        "status": decision.status,
        "measured_objective": decision.measured.get(decision.objective_name),
        "evaluation": decision.evaluation,
        "evaluations": decision.evaluations,
        "data": decision.data,
        "warnings": [{"warning": text} for text in decision.warnings],
    }


def audit_record(audit: Audit) -> dict[str, Any]:
    """State an audit."""
    return {
        "number": audit.number,
        "made": audit.made,
        "rejected": audit.rejected,
        "conclusion": audit.sentence(),
        "drawn": audit.drawn,
        "verified": audit.verified,
        "unreachable": audit.unreachable,
        "shares": [_share(share) for share in (audit.joint, *audit.limits, audit.success)],
        "errors": table_rows(audit.errors_frame()),
        "where": [{"where": text} for text in audit.where],
    }


def freeze_record(frame: pd.DataFrame) -> dict[str, Any]:
    """State what fixing each variable costs."""
    return {"variables": table_rows(frame)}


def common_record(found: CommonDesign) -> dict[str, Any]:
    """State one design for many thresholds."""
    return {
        "cost": found.cost,
        "cost_std": found.std,
        "worst": found.worst,
        "answer": answer_record(found.answer),
        "rows": table_rows(found.to_frame()),
    }


def tolerances_record(found: Tolerances) -> dict[str, Any]:
    """State a box of tolerances."""
    return {
        "probability_feasible": found.answer.probability_feasible,
        "cost": found.cost,
        "variables": table_rows(found.to_frame()),
        "answer": answer_record(found.answer),
    }


def _share(share: Share) -> dict[str, Any]:
    return {
        "of": share.name,
        "claimed": share.claimed,
        "found": share.found,
        "count": share.count,
        "low": share.low,
        "high": share.high,
        "rejected": share.rejected,
    }
