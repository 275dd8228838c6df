"""The recorded fingerprints of all methods, compared with short runs of the present code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from botorch.acquisition.multi_objective import logei

from cbabo import Settings, problems
from cbabo.bench import truth as truth_module
from cbabo.bench.cbabo_runs import CbaboRun
from cbabo.bench.methods import METHODS
from cbabo.bench.revisions import REVISIONS
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.threads import one_thread
from cbabo.problems import ShippedProblem

THRESHOLDS = 3
TOLERANCE = 1e-4
"""Relative difference of fingerprints: processors round differently, which optimisers with many steps amplify."""
SHORTER = {"default focused": 13}
"""Evaluations of families whose designs are chosen one after the other: every choice amplifies differences of rounding."""
PROBLEM = "gkxwc2_active"
"""Two variables and one binding limit."""
OTHER_PROBLEMS = {"default": (PROBLEM, "rc_beam_mixed"), "case study": ("car",)}
"""Families that run elsewhere: the default method has a solver of its own for mixed variables, the case study has its problem."""
QUICK = {
    "initial_evaluations": 10,
    "horizon": 2,  # Two iterations, so that both halves of the learning schedule take part.
    "inner_steps": 10,
    "hidden_width": 32,
    "library": 16,
    "recommend_candidates": 500,
}


def quick(settings: Settings) -> Settings:
    """Return settings for a short run; numbers that a method does not have are left out."""
    return settings.replace(**{name: value for name, value in QUICK.items() if name in type(settings).model_fields})


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten what every method does: one or two batches after the initial design, and three thresholds to answer."""
    read = truth_module._read

    def few(shipped: ShippedProblem) -> truth_module.Truth:
        known = read(shipped)
        rows = slice(None, THRESHOLDS)
        return replace(known, thresholds=known.thresholds[rows].copy(), f=known.f[rows], x=known.x[rows])

    monkeypatch.setattr(truth_module, "_read", few)
    monkeypatch.setattr(logei, "_load_attempted", True)  # BoTorch in Python: compiling its kernel takes a minute.
    for name, value in {
        "scoring.QUERIES": THRESHOLDS,
        "scoring.PAIRS": THRESHOLDS,
        "cbabo_runs.BUDGET": 20,
        "cbabo_runs.CHECKPOINTS": (15,),
        "cbabo_runs.TARGETS": (0.8,),
        "cbabo_runs.CASE_SETTINGS": quick(Settings.paper()),
        "botorch_reference.BUDGET": 35,
        "pareto_baseline.BUDGET": 35,
        "baselines.sequential.TOTAL": 6,
        "nonadaptive_baselines.DESIGNS": 40,
        "nonadaptive_baselines.QUERIES": THRESHOLDS,
    }.items():
        monkeypatch.setattr(f"cbabo.bench.{name}", value)


def fingerprint(method: str) -> tuple[float, float]:
    """Return weighted means over the designs (unit cube) that a method evaluates and answers, in their order."""
    compute = METHODS[method].compute
    if isinstance(compute, CbaboRun):
        compute = replace(compute, settings=quick(compute.settings))
    seen: list[FloatArray] = []
    for name in OTHER_PROBLEMS.get(method, (PROBLEM,)):
        shipped = problems.get(name)

        def note(X: FloatArray, shipped: ShippedProblem = shipped) -> tuple[FloatArray, FloatArray]:
            seen.append(shipped.problem.space.unit(X).ravel())
            return shipped.function(X)

        with one_thread():
            compute(replace(shipped, function=note), 0, 2)
    values = np.concatenate(seen)
    weights = np.cos(np.arange(len(values)))  # They make the result depend on the order of designs.
    return float(f"{values.mean():.6g}"), float(f"{weights @ values / len(values):.6g}")


@pytest.mark.parametrize("family", REVISIONS)
def test_results_change_only_with_their_revision(family: str, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if family in SHORTER:
        monkeypatch.setattr("cbabo.bench.cbabo_runs.BUDGET", SHORTER[family])
    found = fingerprint(family)
    assert found == pytest.approx(REVISIONS[family].fingerprint, rel=TOLERANCE), (
        f"the results of {family!r} have changed: raise its revision in cbabo.bench.revisions, record the fingerprint "
        f"{found} beside it, and renew the rows of its methods by: cbabo bench run benchmarks/campaigns/CAMPAIGN.yaml"
    )


def test_every_method_has_a_revision_and_every_family_a_method() -> None:
    assert {method.family for method in METHODS.values()} == set(REVISIONS)
    assert set(REVISIONS) <= set(METHODS)


def test_no_two_families_share_a_revision() -> None:
    codes = [revision.code for revision in REVISIONS.values()]
    assert len(set(codes)) == len(codes)
