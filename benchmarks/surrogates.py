"""How good the fits are: our maximum-a-posteriori objective per evaluation against BoTorch's fit_gpytorch_mll.

python benchmarks/surrogates.py            five problems, 30, 100 and 200 evaluations, every output
python benchmarks/surrogates.py --smoke    two problems, 30 evaluations
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.stats import qmc
from torch import Tensor

from cbabo import problems
from cbabo.surrogate import Surrogates, fit
from cbabo.surrogate.likelihood import Objective, Priors

PROBLEMS = ("g01", "car", "pressure_vessel", "three_truss", "ackley6")
MARGIN = 1e-3


def main() -> None:
    """Fit the same Latin hypercubes both ways and print the differences, above zero where ours is better."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a small comparison only")
    smoke = parser.parse_args().smoke
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    worst = np.inf
    for name in PROBLEMS[3:] if smoke else PROBLEMS:
        for n in (30,) if smoke else (30, 100, 200):
            x, y = data(name, n)
            began = time.perf_counter()
            ours = objective(fit(x, y))
            middle = time.perf_counter()
            theirs = torch.tensor([botorch(x, y[:, j : j + 1]) for j in range(y.shape[1])])
            end = time.perf_counter()
            difference = ours - theirs
            worst = min(worst, float(difference.min()))
            print(
                f"{name:16s} n = {n:3d}: {y.shape[1]:2d} outputs, ours less BoTorch's {difference.min():+.5f} to "
                f"{difference.max():+.5f}; {middle - began:.2f} s against {end - middle:.1f} s",
                flush=True,
            )
    print(f"worst difference {worst:+.5f} (limit {-MARGIN})")


def data(name: str, n: int) -> tuple[Tensor, Tensor]:
    """Return a Latin hypercube x (n x d, unit cube) and the problem's outputs y (n x q)."""
    shipped = problems.get(name)
    x = qmc.LatinHypercube(shipped.problem.space.dimension, rng=0).random(n)
    f, c = shipped.evaluate_many(shipped.problem.space.natural(x))
    return torch.from_numpy(x), torch.from_numpy(np.column_stack([f, c]))


def objective(surrogates: Surrogates) -> Tensor:
    """Return our objective per evaluation (q): log marginal likelihood and log priors, divided by n."""
    h = surrogates.hyperparameters
    z = ((surrogates.y - surrogates.centre) / surrogates.scale).T.contiguous()
    u = torch.cat([h.lengthscales, h.noise.unsqueeze(-1)], dim=-1).log()
    measured = Objective(surrogates.x, z, Priors.botorch(surrogates.x.shape[1]))
    return -measured.value_and_gradient(u, torch.arange(len(u)))[0]


def botorch(x: Tensor, y: Tensor) -> float:
    """Return BoTorch's objective per evaluation for one output (n x 1), fitted its own way."""
    model = SingleTaskGP(x, y)
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll)
    mll.train()
    with torch.no_grad():
        return float(mll(model(*model.train_inputs), model.train_targets))


if __name__ == "__main__":
    main()
