from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cbabo import Settings
from cbabo.answering.refine import refine
from cbabo.bench import cbabo_runs, scoring
from cbabo.bench import truth as truth_module
from cbabo.bench.baselines import BASELINES
from cbabo.bench.methods import METHODS, Measures, Method, measure, rows_of
from cbabo.bench.truth import truth
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.query import Query
from cbabo.errors import InputError
from cbabo.model import Model
from cbabo.problems import ShippedProblem, get
from cbabo.study.study import Study

QUICK = Settings.paper().replace(inner_steps=2, hidden_width=8, initial_evaluations=10, candidates=50)
ROWS = 25
LISTS = ("direct", "refined", "random start", "evaluated")


@pytest.fixture(scope="class")
def short() -> pytest.MonkeyPatch:
    """A run of 30 evaluations with two earlier looks, which answers the first rows of thresholds."""
    patch = pytest.MonkeyPatch()
    read = truth_module._read

    def few(shipped: ShippedProblem) -> truth_module.Truth:
        known = read(shipped)
        rows = slice(None, ROWS)
        return replace(known, thresholds=known.thresholds[rows].copy(), f=known.f[rows], x=known.x[rows])

    patch.setattr(truth_module, "_read", few)
    patch.setattr(cbabo_runs, "BUDGET", 30)
    patch.setattr(cbabo_runs, "CHECKPOINTS", (15, 20))
    patch.setattr(scoring, "QUERIES", 50)
    patch.setattr(scoring, "PAIRS", 50)
    yield patch  # type: ignore[misc]
    patch.undo()


@pytest.fixture(scope="class")
def measures(short: pytest.MonkeyPatch) -> Measures:
    return cbabo_runs.CbaboRun(QUICK)(get("gkxwc2"), 3, 100)


class TestMap:
    def test_every_row_has_its_answers(self, measures: Measures) -> None:
        assert measures["row"] == list(range(ROWS))
        names = [f"{stage} {what}" for stage in LISTS for what in ("objective", "feasible")]
        names += [f"direct {what}@{budget}" for what in ("objective", "feasible") for budget in (15, 20)]
        for name in [*names, "direct probability"]:
            assert np.shape(measures[name]) == (ROWS,), name
        assert all(set(measures[f"{stage} feasible"]) <= {0.0, 1.0} for stage in LISTS)  # type: ignore[arg-type]
        for name in ("run seconds", "predict seconds", "refine seconds"):
            assert float(measures[name]) > 0.0  # type: ignore[arg-type]
        for name in ("direct share", "monotonic true", "monotonic mean"):
            assert 0.0 <= float(measures[name]) <= 1.0  # type: ignore[arg-type]

    def test_the_answers_are_those_of_an_undisturbed_study(self, measures: Measures) -> None:
        shipped, rows = get("gkxwc2"), truth("gkxwc2").thresholds
        study = Study.create(shipped.problem, "sqlite://", seed=3, settings=QUICK)
        study.run(shipped.evaluate, budget=30, in_process=True)
        f, _ = shipped.evaluate_many(study.model().predict_many(rows).points)
        assert measures["direct objective"] == f.tolist()
        answer = study.refine(shipped.problem.box.named(rows[0]), shipped.evaluate, in_process=True)
        assert np.asarray(measures["refined objective"])[0] == answer.objective.mean

    def test_refinement_never_loses_what_the_prediction_had(self, measures: Measures) -> None:
        direct = np.where(measures["direct feasible"], measures["direct objective"], np.inf)
        refined = np.where(measures["refined feasible"], measures["refined objective"], np.inf)
        assert (refined <= direct).all()

    def test_ablations_do_without_refinement(self, short: pytest.MonkeyPatch) -> None:
        found = cbabo_runs.CbaboRun(QUICK, full=False)(get("gkxwc2"), 3, 100)
        assert not [name for name in found if name.startswith(("refined", "random", "evaluated")) or "@" in name]
        assert "monotonic true" in found

    def test_a_solver_also_answers_by_the_network_fast_and_with_other_probabilities(
        self, short: pytest.MonkeyPatch
    ) -> None:
        shipped, rows = get("gkxwc2_active"), truth("gkxwc2_active").thresholds
        study = Study.create(
            shipped.problem, "sqlite://", seed=3, settings=Settings.default().replace(library=24, hidden_width=16)
        )
        study.run(shipped.evaluate, budget=30, in_process=True)
        model = study.model()
        found = cbabo_runs.score_other_answers(shipped, model)
        f, _ = shipped.evaluate_many(model.predict_many(rows, method="pcm").points)
        assert found["network objective"] == f.tolist()
        f, _ = shipped.evaluate_many(model.predict_many(rows, fast=True).points)
        assert found["fast objective"] == f.tolist()
        stated = [np.asarray(found[f"stated at {target}"]) for target in cbabo_runs.TARGETS]
        assert all(len(found[f"true at {t}"]) == len(s) for t, s in zip(cbabo_runs.TARGETS, stated, strict=True))  # type: ignore[arg-type]
        assert 0 < len(stated[0]) <= ROWS
        assert all((s >= t - 0.02).mean() > 0.9 for t, s in zip(cbabo_runs.TARGETS, stated, strict=True))

    def test_a_random_start_is_where_refinement_begins(self) -> None:
        shipped = get("gkxwc2")
        model = _model(shipped)
        tried: list[dict[str, float]] = []

        def note(point: dict[str, float]) -> Evaluation:
            tried.append(point)
            return Evaluation(0, "complete", "refine", point, shipped.evaluate(point))

        start = {"x1": 5.5, "x2": 0.5}
        refine(model, Query.of(shipped.problem.box, {"c1": 0.5}), note, 2, start)  # type: ignore[arg-type]
        assert tried[0] == start
        away = np.abs(shipped.problem.space.unit(shipped.problem.space.array(tried)) @ [[1, 0], [0, 1]])
        assert (np.abs(away[1] - away[0]) <= QUICK.refine_radius + 1e-12).all()

    def test_a_failed_refinement_counts_as_infeasible(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shipped = get("gkxwc2")
        model = _model(shipped)
        monkeypatch.setattr(
            cbabo_runs, "_measured", lambda shipped, point: Evaluation(0, "failed", "refine", point, {}, "broken")
        )
        found = cbabo_runs.score_refined(shipped, model, truth("gkxwc2").thresholds[:2], [None, None])
        assert found == ([np.inf] * 2, [0.0] * 2, [np.inf] * 2)


class TestRegistry:
    def test_what_the_tables_need_is_there(self) -> None:
        assert set(METHODS) >= {"paper", "default", "all random", "no monotonic", "plain", "case study", *BASELINES}
        assert set(METHODS) >= {"lhs plain", "lhs strong", "constant strictest", "constant relaxed", "qLogNEHVI"}
        assert set(METHODS) >= {f"{what} {v}" for what in ("beta", "alpha") for v in (0.01, 1.0)} | {"inner 200"}

    def test_only_baselines_and_a_focus_depend_on_n(self) -> None:
        assert {name for name, method in METHODS.items() if method.per_threshold} == {*BASELINES, "default focused"}

    def test_units_share_no_rows_while_there_are_enough(self) -> None:
        assert rows_of(2, 10) == list(range(20, 30))
        assert rows_of(3, 50) == list(range(50, 100))
        assert rows_of(0, 100) == list(range(100))

    def test_a_unit_is_computed_by_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def compute(shipped: ShippedProblem, seed: int, n: int) -> Measures:
            return {"value": len(shipped.problem.outputs) + 10.0 * seed + 100.0 * n}

        monkeypatch.setitem(METHODS, "made up", Method(compute, "paper"))
        assert measure("car", "made up", 2, 3) == {"value": 331.0}

    def test_a_baseline_answers_its_own_rows(self) -> None:
        found = measure("gkxwc2", "CMA-ES", 1, 50)
        assert found["row"] == list(range(50, 100))
        assert np.shape(found["best objective"]) == np.shape(found["best feasible"]) == (50,)

    def test_analyses_change_one_setting(self) -> None:
        assert METHODS["inner 200"].compute.settings.training_steps == 34 * 200  # type: ignore[attr-defined]
        assert METHODS["alpha 0.5"].compute.settings == Settings.paper().replace(alpha=0.5)  # type: ignore[attr-defined]

    def test_too_many_constraints_for_a_front_get_one_sentence(self) -> None:
        with pytest.raises(InputError, match="at most 2 constraints"):
            measure("car", "qLogNEHVI", 0, 100)


def _model(shipped: ShippedProblem) -> Model:
    study = Study.create(shipped.problem, "sqlite://", seed=0, settings=QUICK)
    study.run(shipped.evaluate, budget=20, in_process=True)
    return study.model()
