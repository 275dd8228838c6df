"""Answers where outputs are noisy: measured designs count by their posterior, and what is stated holds without the noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cbabo import Model, Settings, Study, problems
from cbabo.bench.truth import truth
from cbabo.domain.query import Query
from cbabo.numerics.tolerances import PROBABILITY_SLACK

SETTINGS = Settings.default().replace(library=24)
NAME = "gkxwc2_active_noise5"
"""Two variables, one limit, and noise of 5 % of its range on both outputs."""


def study_of(name: str, seed: int, budget: int, settings: Settings | None = None) -> Study:
    shipped = problems.get(name)
    study = Study.create(shipped.problem, "sqlite://", seed=seed, settings=settings or SETTINGS)
    study.run(shipped.evaluator(seed), budget=budget, in_process=True)
    return study


@pytest.fixture(scope="module")
def study() -> Study:
    return study_of(NAME, 2, 60)


@pytest.fixture(scope="module")
def model(study: Study) -> Model:
    return study.model()


def test_one_design_is_measured_twice(study: Study) -> None:
    points = [tuple(e.point.values()) for e in study.evaluations]
    assert len(points) - len(set(points)) == 1
    calm = study_of("gkxwc2_active", 0, 20, SETTINGS.replace(noise="none"))
    points = [tuple(e.point.values()) for e in calm.evaluations]
    assert len(points) == len(set(points))


def test_imported_runs_without_a_repeat_are_followed_by_one() -> None:
    shipped = problems.get(NAME)
    rows = study_of(NAME, 0, 20, SETTINGS.replace(noise="none")).evaluations
    study = Study.create(shipped.problem, "sqlite://", seed=1, settings=SETTINGS)
    study.add(rows.to_frame())
    study.run(shipped.evaluator(1), budget=5, in_process=True)
    points = [tuple(e.point.values()) for e in study.evaluations]
    assert len(points) - len(set(points)) == 1
    assert not study.model().posterior.all_exact


def test_answers_obey_the_limits_without_noise(model: Model) -> None:
    shipped, known = problems.get(NAME), truth(NAME)
    for fast in (False, True):
        found = model.predict_many(known.thresholds, fast=fast)
        f, c = shipped.evaluate_many(found.points)
        feasible = shipped.problem.box.feasible(np.column_stack([f, c]), known.thresholds)
        assert feasible.mean() >= 0.97
        assert np.median(f - known.f) / known.span < 0.15


def test_a_measured_design_is_verified_only_by_its_posterior(model: Model) -> None:
    """Raw measurements that obey a limit by luck are not answers."""
    query = Query.of(model.problem.box, truth(NAME).thresholds)
    found = model.predict_many(query.thresholds)
    assert found.measured  # Some answers are measured designs.
    for i in found.measured:
        assert found.probability_feasible[i] >= 0.98 - PROBABILITY_SLACK
        assert found.status(i) == "verified"
        assert found.moments[1][i].min() > 0.0
    lucky = query.box.obeyed(model.posterior.measured.y, query.thresholds)
    chance = model.posterior.measured_probability(query)
    assert (chance[lucky] < 0.9).any()


def test_answers_state_the_noise_and_the_number_of_measurements(model: Model) -> None:
    answer = model.predict()
    stated = problems.get(NAME).noise
    assert stated is not None
    for name, true in zip(model.problem.outputs, stated.deviations, strict=True):
        assert 0.5 * true < answer.noise[name] < 2.0 * true
    found = model.predict_many(truth(NAME).thresholds)
    counts = {i: found.answer(i).measurements for i in range(len(found))}
    assert all((count > 0) == (i in found.measured) for i, count in counts.items())


def test_deterministic_outputs_have_no_noise() -> None:
    answer = study_of("gkxwc2_active", 0, 20).model().predict()
    assert answer.noise == {}


def test_noise_on_some_outputs_leaves_the_others_exact() -> None:
    posterior = study_of("car_active_partly5", 0, 35).model().posterior
    stated = problems.get("car_active_partly5").noise
    assert stated is not None
    assert posterior.exact is not None
    assert posterior.exact.tolist() == [deviation == 0.0 for deviation in stated.deviations]


def test_limits_on_single_realisations_ask_for_wider_margins(study: Study) -> None:
    shipped = problems.get(NAME)
    other = Study.create(shipped.problem, "sqlite://", settings=SETTINGS.replace(feasible_as="realisation"), seed=0)
    other.add(study.evaluations.to_frame())
    thresholds = truth(NAME).thresholds[:20]
    noise_free, realisation = (s.model().predict_many(thresholds) for s in (study, other))
    slack = [thresholds[:, 0] - shipped.evaluate_many(found.points)[1][:, 0] for found in (noise_free, realisation)]
    assert np.median(slack[1]) > np.median(slack[0])


def test_smooth_takes_repeatable_scatter_as_noise() -> None:
    """Scatter of a mesh: two measurements of a design agree, and no measured value is taken as exact."""
    shipped = problems.get("gkxwc2_active")

    def meshed(point: dict[str, float]) -> dict[str, float]:
        outputs = shipped.evaluate(point)
        scatter = np.sin(1e4 * point["x1"]) * np.cos(1e4 * point["x2"])
        return {name: value + 0.05 * scatter for name, value in outputs.items()}

    models = []
    for noise in ("detect", "smooth"):
        study = Study.create(shipped.problem, "sqlite://", settings=SETTINGS.replace(noise=noise))
        study.run(meshed, budget=25, in_process=True)
        models.append(study.model())
    assert models[0].posterior.all_exact
    assert models[1].posterior.exact is not None
    assert not models[1].posterior.exact.any()


def test_a_refinement_measures_again_and_is_not_worse(study: Study) -> None:
    shipped, known = problems.get(NAME), truth(NAME)
    model, direct, refined = study.model(), [], []
    evaluator = shipped.evaluator(77)
    for row in known.thresholds[:4]:
        limits = shipped.problem.box.named(row)
        direct.append(model.predict(limits).point)
        copy = Study.create(shipped.problem, "sqlite://", seed=0, settings=SETTINGS)
        copy.add(study.evaluations.to_frame())
        answer = copy.refine(limits, evaluator, evaluations=2, in_process=True)
        assert answer.status in ("verified", "predicted", "measured")
        assert answer.status != "verified" or answer.probability_feasible >= 0.98 - PROBABILITY_SLACK
        refined.append(answer.point)
    losses = []
    for points in (direct, refined):
        f, c = shipped.evaluate_many(shipped.problem.space.array(points))
        feasible = shipped.problem.box.feasible(np.column_stack([f, c]), known.thresholds[:4])
        losses.append(np.where(feasible, (f - known.f[:4]) / known.span, 1.0).mean())
    assert losses[1] <= losses[0] + 0.02


def test_doubt_is_said(study: Study) -> None:
    """After one noisy measurement close to a limit, nothing is verified, and why is said."""
    shipped = problems.get(NAME)
    model = study.model()
    strict = truth(NAME).strictest
    limit = {"c1": shipped.problem.constraints[0].strictest}
    copy = Study.create(shipped.problem, "sqlite://", seed=0, settings=SETTINGS)
    copy.add(study.evaluations.to_frame())
    close = dict(zip(shipped.problem.space.names, strict.x, strict=True))
    answer = copy.refine(limit, shipped.evaluator(5), evaluations=1, start=close, in_process=True)
    if answer.point == close:
        assert answer.status == "measured"
        assert any("the measured design" in text for text in answer.warnings)
    else:  # Another measured design obeys the limit with the probability asked for.
        assert answer.probability_feasible >= 0.98 - PROBABILITY_SLACK
    assert model.problem.name == shipped.problem.name


def test_a_saved_model_of_noisy_outputs_answers_alike(model: Model, tmp_path) -> None:
    model.save(tmp_path / "noisy.cbabo")
    again = Model.load(tmp_path / "noisy.cbabo")
    thresholds = truth(NAME).thresholds[:10]
    ours, theirs = (m.predict_many(thresholds) for m in (model, again))
    np.testing.assert_array_equal(ours.points, theirs.points)
    np.testing.assert_array_equal(ours.probability_feasible, theirs.probability_feasible)
    assert replace(model.predict()) == replace(again.predict())
