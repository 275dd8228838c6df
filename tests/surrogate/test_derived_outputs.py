"""Derived outputs: exact where they are formulas of variables, propagated from posteriors where they are of outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
import torch

from cbabo import Constraint, Integer, Model, Objective, Problem, Real, Settings, Study
from cbabo.domain.query import Query
from cbabo.errors import InputError
from cbabo.solver.batched import BatchedPosterior
from cbabo.solver.categorical import solver_for
from cbabo.surrogate.composed import Composed
from cbabo.surrogate.posterior import Posterior

DERIVED = {
    "mass": "7.85e-6*width*height*length",
    "safety": "yield_stress/stress",
    "slenderness": "height/width",
    "cost": "mass*max(1, deflection)",
}


def simulate(point: Mapping[str, float]) -> dict[str, float]:
    w, h, length = point["width"], point["height"], point["length"]
    return {
        "stress": 30000 * length / (w * h * h) * (1 + 0.1 * np.sin(w / 3)),
        "yield_stress": 250 + 10 * np.cos(h / 20),
        "deflection": 20000 * length**3 / (210e3 * w * h**3),
    }


def _problem(**changes: object) -> Problem:
    stated: dict[str, object] = {
        "name": "beam",
        "variables": [Real("width", 10, 60), Real("height", 20, 120), Real("length", 400, 800, log=True)],
        "objective": Objective("mass"),
        "constraints": [
            Constraint("safety", ">=", low=1.2, high=3.0),
            Constraint("deflection", low=0.5, high=5.0),
            Constraint("slenderness", limit=4.0),
        ],
        "derived": DERIVED,
    }
    return Problem(**{**stated, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def study() -> Study:
    found = Study.create(_problem(), "sqlite://", settings=Settings.default().replace(library=12))
    found.run(simulate, budget=26, in_process=True)
    return found


@pytest.fixture(scope="module")
def model(study: Study) -> Model:
    return study.model()


@pytest.fixture(scope="module")
def posterior(model: Model) -> Posterior:
    return model.posterior


def test_the_simulator_need_not_return_what_is_derived(study: Study) -> None:
    problem = study.problem
    assert problem.outputs == ("mass", "safety", "deflection", "slenderness", "cost", "yield_stress", "stress")
    assert tuple(problem.simulated) == ("deflection", "yield_stress", "stress")
    assert [problem.outputs[j] for j in problem.exact] == ["mass", "slenderness"]
    row = study.evaluations[0]
    assert row.outputs["mass"] == 7.85e-6 * row.point["width"] * row.point["height"] * row.point["length"]
    assert row.outputs["safety"] == pytest.approx(row.outputs["yield_stress"] / row.outputs["stress"])
    assert "mass" in study.evaluations.to_frame().columns


def test_no_process_is_fitted_to_what_is_derived(posterior: Posterior) -> None:
    assert posterior.surrogates.y.shape[1] == 3
    assert posterior.z.shape[1] == 7
    assert isinstance(posterior.predictor, Composed)


def test_exact_outputs_are_exact_everywhere(model: Model) -> None:
    table = pd.DataFrame({"safety": np.linspace(1.0, 3.5, 6), "deflection": np.linspace(6.0, 1.0, 6)})
    for fast in (False, True):
        for answer in (model.predict_many(table, fast=fast).answer(i) for i in range(6)):
            p = answer.point
            assert answer.objective.mean == pytest.approx(7.85e-6 * p["width"] * p["height"] * p["length"], rel=1e-9)
            assert answer.objective.std == answer.outputs["slenderness"].std == 0.0
            assert answer.outputs["slenderness"].mean == pytest.approx(p["height"] / p["width"], rel=1e-9)
            if answer.probability_feasible > 0.5:
                assert p["height"] / p["width"] <= 4.0 + 1e-8
            if answer.status == "predicted":
                assert answer.outputs["safety"].std > 0.0


def test_answers_are_the_true_optima(model: Model) -> None:
    for safety, deflection in ((1.5, 4.0), (2.5, 2.0)):
        answer = model.predict({"safety": safety, "deflection": deflection})
        w, h = np.linspace(10, 60, 400)[:, None], np.linspace(20, 120, 800)[None]
        out = simulate({"width": w, "height": h, "length": 400.0})  # type: ignore[dict-item]
        ok = (out["yield_stress"] / out["stress"] >= safety) & (out["deflection"] <= deflection) & (h / w <= 4)
        true = float(np.where(ok, 7.85e-6 * w * h * 400, np.inf).min())
        assert answer.objective.mean == pytest.approx(true, rel=0.02)
        measured = simulate(answer.point)
        assert measured["yield_stress"] / measured["stress"] >= 0.99 * safety


def test_derivatives_are_those_of_finite_differences(posterior: Posterior) -> None:
    x = np.array([0.3, 0.6, 0.4])
    pointwise, step = posterior.pointwise, 1e-5
    _, J = pointwise.mean_and_jacobian(x)
    weights = np.array([1.0, -0.5, 0.3, 2.0, 0.7, 0.1, -0.2])
    H = pointwise.hessian(x, weights)
    for i in range(3):
        ahead, behind = (pointwise.mean_and_jacobian(x + side * step * np.eye(3)[i]) for side in (1, -1))
        assert (ahead[0] - behind[0]) / (2 * step) == pytest.approx(J[:, i], rel=1e-4, abs=1e-6)
        assert weights @ (ahead[1] - behind[1]) / (2 * step) == pytest.approx(H[i], rel=1e-3, abs=1e-3)


def test_many_designs_are_predicted_as_single_ones(posterior: Posterior) -> None:
    x = np.random.default_rng(0).random((5, 3))
    batched, some = BatchedPosterior(solver_for(posterior)), BatchedPosterior(solver_for(posterior), np.array([0]))
    z, J = batched.mean_and_slope(x)
    s = batched.std(x)
    predictor = posterior.predictor
    mean, std = predictor.mean_and_std(torch.from_numpy(x))
    assert np.allclose((mean - predictor.centre) / predictor.scale, z)
    assert np.allclose(std / predictor.scale, s, rtol=1e-6)
    for i, row in enumerate(x):
        alone, slope = posterior.pointwise.mean_and_jacobian(row)
        assert np.allclose(alone, z[i], atol=1e-8)
        assert np.allclose(slope, J[i], atol=1e-6)
        assert np.allclose(posterior.pointwise.std(row), s[i], rtol=1e-5)
    # Safety is limited: mass, what safety depends on, and nothing else.
    assert [posterior.problem.outputs[j] for j in some.outputs] == ["mass", "safety", "yield_stress", "stress"]
    assert np.allclose(some.mean(x), z[:, some.outputs])
    asked = np.zeros((5, 4), dtype=np.bool_)
    asked[:, 1] = True
    assert np.allclose(some.updated_std(np.ones((5, 4)), x, asked)[:, 1], s[:, 1])


def test_gradients_of_acquisition_functions_are_right(posterior: Posterior) -> None:
    x = torch.tensor([[0.3, 0.6, 0.4], [0.7, 0.2, 0.9]], dtype=torch.float64)
    prediction = posterior.predictor.predict(x)
    weight = torch.linspace(-1.0, 1.0, 14, dtype=torch.float64).view(2, 7)
    weight[:, 4] = 0.0  # The maximum in cost has a kink.
    found = prediction.vjp(weight, torch.zeros_like(weight))
    step = 1e-6
    for i in range(3):
        move = step * torch.eye(3, dtype=torch.float64)[i]
        ahead, behind = (posterior.predictor.mean(x + side * move) for side in (1, -1))
        assert (weight * (ahead - behind) / (2 * step)).sum(1) == pytest.approx(found[:, i], rel=1e-3)


def test_deviations_of_formulas_of_outputs_are_those_of_samples(posterior: Posterior) -> None:
    x = torch.tensor([[0.9, 0.1, 0.9], [0.5, 0.5, 0.5]], dtype=torch.float64)
    learned = list(posterior.problem.learned)
    mean, std = posterior.surrogates.mean_and_std(x)
    draws = mean + std * torch.from_numpy(np.random.default_rng(0).standard_normal((20000, 2, 3)))
    assert posterior.warp is not None
    y = posterior.warp.inverse(draws)
    names = [posterior.problem.outputs[j] for j in learned]
    safety = y[..., names.index("yield_stress")] / y[..., names.index("stress")]
    low, high = torch.quantile(safety, torch.tensor([0.1587, 0.8413], dtype=torch.float64), dim=0)
    _, stated = posterior.natural(*posterior.predictor.mean_and_std(x))
    assert stated[:, 1] == pytest.approx(0.5 * (high - low), rel=0.1)


def test_an_exact_limit_is_obeyed_or_not(posterior: Posterior) -> None:
    limits = posterior.limits
    assert limits.exact is not None
    assert limits.exact.tolist() == [False, False, True]
    slack = torch.tensor([[9e9, 9e9, -1e-4], [9e9, 9e9, -1.0]], dtype=torch.float64)
    assert limits.log_probability_of_slack(slack).exp().tolist() == pytest.approx([1.0, 0.0])


def test_a_model_file_keeps_them(model: Model, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("models") / "beam.cbabo"
    model.save(path)
    assert Model.load(path).predict({"safety": 2.0}) == model.predict({"safety": 2.0})


def test_refinement_verifies_a_derived_limit(study: Study) -> None:
    answer = study.refine({"safety": 2.0, "deflection": 3.0}, simulate, evaluations=2, in_process=True)
    assert answer.status == "verified"
    assert answer.outputs["safety"].mean >= 2.0


def test_a_formula_of_an_output_with_parts_has_parts() -> None:
    problem = _problem(
        derived={"safety": "250/stress", "mass": "width*height"},
        constraints=[Constraint("safety", ">=", low=1.0, high=4.0)],
        objective="mass",
    )
    study = Study.create(problem, "sqlite://", settings=Settings.default().replace(library=4))
    study.run(lambda p: {"stress": [9e4 / p["width"] / p["height"], 5e4 / p["height"]]}, budget=14, in_process=True)
    table = study.evaluations
    assert table.problem.outputs == ("mass", "safety[0]", "safety[1]", "stress[0]", "stress[1]")
    answer = study.model().predict({"safety": 2.0})
    assert answer.outputs["safety[1]"].mean == pytest.approx(250 / (5e4 / answer.point["height"]), rel=0.05)
    governing = min(answer.outputs[f"safety[{i}]"].mean for i in range(2))
    assert answer.outputs["safety"].mean == governing


def test_a_value_that_is_not_finite_is_a_failure_of_its_row() -> None:
    problem = _problem(derived={"safety": "log(stress - 30)", "mass": "width*height", "slenderness": "height/width"})
    study = Study.create(problem, "sqlite://", settings=Settings.default().replace(library=4))
    study.run(simulate, budget=16, in_process=True)
    failed = study.evaluations.failed
    assert len(failed) > 0
    assert "the formula of 'safety' has no finite value here" in (failed[0].failure or "")
    assert len(study.evaluations.complete) + len(failed) == 16


def test_designs_where_a_formula_of_variables_is_not_finite_are_not_proposed() -> None:
    problem = _problem(
        variables=[Real("width", 0, 60), Real("height", 20, 120), Integer("length", 400, 402)],
        derived={"slenderness": "log(height/width - 0.8)", "mass": "width*height", "safety": "250/stress"},
        constraints=[Constraint("safety", ">=", low=0.0, high=4.0), Constraint("slenderness", limit=3.0)],
    )
    study = Study.create(problem, "sqlite://", settings=Settings.default().replace(library=4))
    study.run(lambda p: {"stress": 9e4 / (p["width"] + 1) / p["height"]}, budget=20, in_process=True)
    assert len(study.evaluations.complete) == 20
    assert all(row.point["width"] > 0 and row.point["height"] > 0.8 * row.point["width"] for row in study.evaluations)


def test_noise_of_an_output_makes_its_formulas_noisy() -> None:
    random = np.random.default_rng(0)
    problem = _problem()
    study = Study.create(problem, "sqlite://", settings=Settings.default().replace(library=4))

    def noisy_simulator(point: Mapping[str, float]) -> dict[str, float]:
        found = simulate(point)
        return {**found, "stress": found["stress"] * (1 + 0.02 * random.normal())}

    study.run(noisy_simulator, budget=18, in_process=True)
    posterior = study.model().posterior
    assert posterior.exact is not None
    noisy = {n for n, e in zip(problem.outputs, posterior.exact.tolist(), strict=True) if not e}
    assert noisy == {"stress", "safety"}
    chance = posterior.measured_probability(Query.of(problem.box, {"safety": 2.0, "deflection": 5.0}))
    assert ((chance > 0.001) & (chance < 0.999)).any()


@pytest.mark.parametrize(
    ("derived", "message"),
    [
        ({"mass": "width*widht"}, "did you mean width"),
        ({"mass": "cost*2", "cost": "mass/2"}, "'mass' uses 'cost' uses 'mass', which is a circle"),
        ({"mass": "mass + 1"}, "is a circle"),
        ({"width": "2*height"}, "'width' is a variable already"),
        ({"mass": "width +"}, "derived: mass: 'width .' ends where"),
        ({"mass": ["width"]}, "must be text"),
        (["mass"], "expected formulas by name"),
        ({"id": "width*2"}, "reserved"),
        ({"mass": "width", "safety": "height", "deflection": "length", "slenderness": "1"}, "must be simulated"),
    ],
)
def test_wrong_formulas_are_refused(derived: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _problem(derived=derived)


def test_formulas_survive_files_and_the_digest_tells_them_apart() -> None:
    problem = _problem(relations=["height <= 3*width"])
    assert Problem.from_dict(problem.to_dict()) == problem
    assert problem.digest != _problem().digest
    assert "derived" not in Problem("p", [Real("a", 0, 1)], "f", ["g <= [0..1]"]).to_dict()
