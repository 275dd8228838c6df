"""What a problem says about its outputs, as tensors: which of them are simulated, their better sides, limits and groups.

A problem has q outputs, of which p are simulated, and d variables. Surrogates are fitted to the simulated outputs; derived ones
are computed from these (see `formulas`).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cbabo.domain.categorical import Categorical
from cbabo.domain.problem import Problem


def learned_columns(problem: Problem, t: Tensor) -> Tensor:
    """Return the columns of the simulated outputs of t (n x q)."""
    return t[:, torch.tensor(problem.learned)] if problem.derived else t


def learned_rows(problem: Problem, t: Tensor) -> Tensor:
    """Return the rows of the simulated outputs of t (q x ...)."""
    return t[torch.tensor(problem.learned)] if problem.derived else t


def exact_outputs(problem: Problem, exact: Tensor) -> Tensor:
    """Return which outputs (q) are exact where these simulated ones (p) are: derived ones if all that they depend on are."""
    if not problem.derived:
        return exact
    noisy = {problem.outputs[j] for j, is_exact in zip(problem.learned, exact.tolist(), strict=True) if not is_exact}
    of_formulas = {name for name, formula in problem.formulas.items() if noisy & set(formula.names)}
    return torch.tensor([name not in noisy | of_formulas for name in problem.outputs])


def groups(problem: Problem) -> Tensor:
    """Return for every simulated output (p) the first one that may share its kernel: parts of one output, equally limited."""
    limited: dict[str, list[str]] = {name: [] for name in problem.outputs}
    for constraint in problem.constraints:
        for name in constraint.output_names:
            limited[name].append(constraint.name)
    found = list(range(len(problem.outputs)))
    for parts in problem.parts.values():
        first: dict[tuple[str, ...], int] = {}
        for j in parts:
            found[j] = first.setdefault(tuple(limited[problem.outputs[j]]), j)
    return learned_rows(problem, torch.tensor(found))


def orientation(problem: Problem) -> Tensor:
    """Return for every output (q) the sign with which less is better."""
    signs = dict.fromkeys(problem.outputs, 0.0)
    for constraint in problem.constraints:
        for name in constraint.output_names:
            signs[name] = signs[name] or constraint.sign
    signs[problem.objective.name] = problem.objective.sign
    return torch.tensor([s or 1.0 for s in signs.values()], dtype=torch.float64)


def ranges(problem: Problem) -> Tensor:
    """Return where the limits of every output may lie (q x 2); nan where it has none."""
    ends = {name: [np.inf, -np.inf] for name in problem.outputs}
    for c in problem.constraints:
        for name in c.output_names:
            ends[name][0] = min(ends[name][0], c.strictest, c.most_relaxed)
            ends[name][1] = max(ends[name][1], c.strictest, c.most_relaxed)
    found = torch.tensor(list(ends.values()), dtype=torch.float64)
    return torch.where(found.isfinite().all(1, keepdim=True), found, torch.nan)


def ratio(problem: Problem) -> Tensor:
    """Return log(upper / lower bound) of every variable (d); 0 where bounds are not positive or its scale is logarithmic.

    A category has none either.
    """
    space, found = problem.space, torch.zeros(problem.space.dimension, dtype=torch.float64)
    for v, at in zip(space.variables, space.columns, strict=True):
        if not isinstance(v, Categorical) and v.low > 0 and not getattr(v, "log", False):
            found[at] = np.log(v.high / v.low)
    return found
