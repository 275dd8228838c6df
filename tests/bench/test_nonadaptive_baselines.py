from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from botorch.acquisition.multi_objective import logei
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.optimize import check_grad

from cbabo import Settings
from cbabo.bench import nonadaptive_baselines, pareto_baseline
from cbabo.bench.methods import measure
from cbabo.bench.nonadaptive_baselines import Means, Solver, fit_by_botorch, hypercube
from cbabo.bench.truth import truth
from cbabo.numerics.arrays import FloatArray
from cbabo.problems import get
from cbabo.surrogate import Surrogates

pytestmark = pytest.mark.filterwarnings("ignore")  # BoTorch's about its optimiser


@pytest.fixture(scope="module")
def surrogates() -> Surrogates:
    x, y = hypercube(get("three_truss"), 0)
    return fit_by_botorch(get("three_truss").problem.space.unit(x[:60]), y[:60])


def test_the_hypercube_is_one_and_belongs_to_the_seed() -> None:
    shipped = get("car")
    x, y = hypercube(shipped, 0)
    assert x.shape == (200, 11)
    assert y.shape == (200, 11)
    strata = np.sort((shipped.problem.space.unit(x) * 200).astype(int), axis=0)
    assert (strata == np.arange(200)[:, None]).all()
    assert not (hypercube(shipped, 1)[0] == x).any()


def test_the_posterior_is_botorchs() -> None:
    shipped = get("gkxwc2")
    x, y = hypercube(shipped, 0)
    x, y = shipped.problem.space.unit(x[:50]), y[:50]
    mine = fit_by_botorch(x, y)
    queries = torch.from_numpy(np.random.default_rng(0).random((100, 2)))
    for j in range(y.shape[1]):
        gp = SingleTaskGP(torch.from_numpy(x), torch.from_numpy(y[:, j : j + 1]), outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
        theirs = gp.posterior(queries)
        mean, std = mine.mean_and_std(queries)
        np.testing.assert_allclose(mean[:, j], theirs.mean.detach()[:, 0], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(std[:, j], theirs.variance.detach()[:, 0].sqrt(), rtol=1e-3, atol=1e-5)


def test_means_and_derivatives_are_the_surrogates(surrogates: Surrogates) -> None:
    means = Means(surrogates)
    designs = np.random.default_rng(1).random((5, 2))
    for u in designs:
        z = means(u)[0] * surrogates.scale.numpy() + surrogates.centre.numpy()
        np.testing.assert_allclose(z, surrogates.mean(torch.from_numpy(u[None]))[0], rtol=1e-9, atol=1e-9)
        for j in range(4):
            assert check_grad(lambda v, j=j: means(v)[0][j], lambda v, j=j: means(v)[1][j], u) < 1e-4


class TestSolver:
    def test_it_finds_the_best_of_a_fine_grid(self, surrogates: Surrogates) -> None:
        solver = Solver(Means(surrogates), np.random.default_rng(2).random((64, 2)))
        ticks = np.linspace(0.0, 1.0, 101)
        grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
        mean = surrogates.mean(torch.from_numpy(grid)).numpy()
        for limits in truth("three_truss").thresholds[:5]:
            best = mean[(mean[:, 1:] <= limits).all(axis=1), 0].min()
            found = surrogates.mean(torch.from_numpy(solver.solve(limits)[None])).numpy()[0]
            assert (found[1:] <= limits + 1e-5 * surrogates.scale[1:].numpy()).all()
            assert found[0] <= best + 1e-6 * abs(best)

    def test_limits_out_of_reach_are_exceeded_as_little_as_can_be(self, surrogates: Surrogates) -> None:
        solver = Solver(Means(surrogates), np.random.default_rng(2).random((64, 2)))
        u = solver.solve(np.full(3, -1e3))
        assert ((u >= 0.0) & (u <= 1.0)).all()


class TestMeasures:
    def test_the_plain_one_answers_all_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(nonadaptive_baselines, "DESIGNS", 40)
        monkeypatch.setattr("cbabo.bench.scoring.QUERIES", 20)
        found = measure("gkxwc2", "lhs plain", 0, 100)
        assert np.mean(found["direct feasible"]) > 0.7
        assert "direct probability" not in found
        assert float(found["run seconds"]) > 0.0  # type: ignore[arg-type]

    def test_the_strong_one_imports_the_same_designs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(nonadaptive_baselines, "DESIGNS", 20)
        monkeypatch.setattr("cbabo.bench.scoring.QUERIES", 20)
        monkeypatch.setattr("cbabo.bench.cbabo_runs.SOLVED_PAIRS", 10)
        monkeypatch.setattr(Settings, "default", lambda: Settings(library=16, hidden_width=8))
        found = measure("gkxwc2", "lhs strong", 0, 100)
        assert np.shape(found["direct probability"]) == (100,)
        assert float(found["direct share"]) > 0.0  # type: ignore[arg-type]

    def test_constants_know_the_ends_of_the_box(self) -> None:
        strict, relaxed = (measure("car_active", f"constant {end}", 0, 100) for end in ("strictest", "relaxed"))
        assert strict["direct share"] == 1.0
        assert strict["direct objective"] == pytest.approx([truth("car_active").strictest.f] * 100)
        assert relaxed["direct share"] == 0.0
        assert max(relaxed["direct objective"]) <= truth("car_active").f.min() + 1e-9  # type: ignore[arg-type]

    def test_where_the_relaxed_end_is_unbounded_its_constant_is_infeasible(self) -> None:
        found = measure("keane18", "constant relaxed", 0, 100)
        assert found["direct share"] == 0.0


class TestFront:
    @pytest.fixture(autouse=True)
    def _without_compiling(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let BoTorch use its implementation in Python, because compiling the other takes a minute."""
        monkeypatch.setattr(logei, "_load_attempted", True)

    def test_a_short_run_looks_answers_up_in_what_it_evaluated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pareto_baseline, "BUDGET", 40)
        seen: list[FloatArray] = []
        evaluated = pareto_baseline._evaluated

        def noted(shipped: object, x: FloatArray) -> FloatArray:
            seen.append(evaluated(shipped, x))  # type: ignore[arg-type]
            return seen[-1]

        monkeypatch.setattr(pareto_baseline, "_evaluated", noted)
        found = measure("gkxwc2_active", "qLogNEHVI", 0, 100)
        y = np.vstack(seen)
        assert y.shape == (40, 2)
        assert set(found["best objective"]) <= set(y[:, 0])  # type: ignore[arg-type]
        initial, _, _ = pareto_baseline.score_best_evaluated(
            get("gkxwc2_active"), y[:30], truth("gkxwc2_active").thresholds
        )
        assert np.mean(found["best objective"]) < np.mean(initial) - 0.1

    def test_what_a_killed_compilation_leaves_behind_stops_nobody(self, tmp_path: Path) -> None:
        """BoTorch's kernel is compiled by each process that finds none, and marked by a file that torch waits for."""
        folder = tmp_path / pareto_baseline._compiled_in().name / "logei_fused_ext"
        folder.mkdir(parents=True)
        (folder / "lock").touch()
        code = """
import numpy as np
from cbabo.bench import pareto_baseline
from cbabo.problems import get
shipped = get("gkxwc2")
x = shipped.problem.space.snap(np.random.default_rng(0).random((6, 2)))
print(pareto_baseline.propose(shipped.problem, x, pareto_baseline._evaluated(shipped, x), None, 5)[0].shape)
"""
        environment = os.environ | {
            "TMPDIR": str(tmp_path),
            "CXX": "false",
        }  # It looks for what is compiled, then gives up.
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=True
        )
        assert done.stdout.strip() == "(5, 2)"

    def test_proposals_are_legal_and_repeatable(self) -> None:
        shipped = get("rc_beam_mixed")
        space = shipped.problem.space
        x = space.snap(np.random.default_rng(0).random((12, 3)))
        y = pareto_baseline._evaluated(shipped, x)
        first, warm = pareto_baseline.propose(shipped.problem, x, y, None, 5)
        again, _ = pareto_baseline.propose(shipped.problem, x, y, None, 5)
        np.testing.assert_array_equal(first, again)
        np.testing.assert_allclose(space.snap(first), first, atol=1e-12)
        assert warm.lengthscales.shape == (3, 3)
