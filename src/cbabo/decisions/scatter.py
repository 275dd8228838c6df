"""Manufacturing scatter: what is predicted of a design whose variables are not met exactly.

Symbols and shapes, in units of the standardised outputs, as in `solver.continuous`; m samples
    x        d        the nominal design, unit cube
    x_i      m x d    designs as they are made: the same quasi-random deviations at every nominal design
    z, s     m x q    means and standard deviations of the outputs there

The probability of feasibility is the mean over the samples of the probability that the design obeys its limits there: it contains
the scatter and the surrogates' uncertainty, with their curvature and with what outputs have in common. A variable never leaves
its bounds: with normal scatter, what would be made beyond them is made there; an interval of tolerances ends there. A design of
which a formula has no value obeys nothing, and does not count in means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri

from cbabo.answering.answers import Estimate
from cbabo.domain.categorical import Categorical
from cbabo.domain.problem import Problem
from cbabo.domain.space import Integer
from cbabo.errors import InputError, shown
from cbabo.methods.method import Fitted
from cbabo.numerics.arrays import FloatArray, is_number
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child_seed
from cbabo.solver.continuous import Solver
from cbabo.surrogate.formulas import LARGEST
from cbabo.surrogate.limits import student_probability, student_quantile


@dataclass(frozen=True)
class ScatterTuning:
    """Numbers of the sampling."""

    samples: int = 512
    """Quasi-random deviations: probabilities near 0.98 are within 0.003 of those of many more on the shipped problems."""


TUNING = ScatterTuning()


@dataclass(frozen=True, eq=False)
class Scatter:
    """Deviations of the variables as they are made."""

    problem: Problem
    deviations: FloatArray
    """m x variables, natural units."""
    normal: Mapping[str, float]
    """Standard deviations of variables with normal scatter."""
    uniform: Mapping[str, float]
    """Half widths of variables with uniform scatter."""

    @classmethod
    def of(
        cls, problem: Problem, seed: int, scatter: Mapping[str, float] | None, tolerance: Mapping[str, float] | None
    ) -> Scatter:
        """Read standard deviations (normal) and tolerances (uniform) by variable."""
        normal, uniform = (_read(problem, *given) for given in (("scatter", scatter), ("tolerance", tolerance)))
        both = sorted(set(normal) & set(uniform))
        if both:
            raise InputError(f"predict: {both[0]!r} has a scatter and a tolerance; state one of the two")
        names = problem.space.names
        moving = [name for name in names if normal.get(name, 0.0) > 0.0 or uniform.get(name, 0.0) > 0.0]
        deviations = np.zeros((TUNING.samples if moving else 1, len(names)))
        if moving:
            u = sobol(len(moving), child_seed(seed, "scatter"), TUNING.samples).numpy().clip(1e-9, 1.0 - 1e-9)
            for column, name in enumerate(moving):
                at = names.index(name)
                if name in normal:
                    deviations[:, at] = normal[name] * ndtri(u[:, column])
                else:
                    deviations[:, at] = uniform[name] * (2.0 * u[:, column] - 1.0)
        return cls(problem, deviations, normal, uniform)

    def around(self, x: FloatArray) -> FloatArray:
        """Return the designs (m x d, unit cube) that are made of a nominal one (d)."""
        space = self.problem.space
        made, nominal = np.repeat(x[None], len(self.deviations), axis=0), space.natural(x[None])[0]
        for variable, at, value, by in zip(space.variables, space.columns, nominal, self.deviations.T, strict=True):
            if not isinstance(variable, Categorical) and np.abs(by).max() > 0.0:
                low, high = float(variable.low), float(variable.high)
                natural = np.clip(value + by, low, high)
                half = self.uniform.get(variable.name)
                if half is not None and not low <= value - half <= value + half <= high:
                    first, last = max(low, value - half), min(high, value + half)
                    natural = first + 0.5 * (by / half + 1.0) * (last - first)
                made[:, at] = np.clip(variable.to_unit(natural), 0.0, 1.0)
        return made


@dataclass(frozen=True, eq=False)
class Made:
    """The posterior at the designs that are made of a nominal one."""

    fitted: Fitted
    z: FloatArray
    """m x q."""
    s: FloatArray
    """m x q."""
    x: FloatArray
    """m x d, what is made."""

    @classmethod
    def of(cls, fitted: Fitted, scatter: Scatter, x: FloatArray) -> Made:
        """Predict what is made of a nominal design (d)."""
        predictor, made = fitted.posterior.predictor, scatter.around(x)
        with torch.no_grad():
            mean, std = predictor.mean_and_std(torch.from_numpy(made))
        return cls(fitted, ((mean - predictor.centre) / predictor.scale).numpy(), (std / predictor.scale).numpy(), made)

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """Where (m) all derived outputs have a value; all are counted where none has, because something must be shown."""
        formulas = self.fitted.posterior.formulas
        if formulas is None:
            return np.ones(len(self.z), dtype=np.bool_)
        found = (np.abs(self.z[:, formulas.derived]) < LARGEST).all(axis=1)
        return np.asarray(found if found.any() else ~found)

    def probability(self, bound: FloatArray) -> float:
        """Return the probability that what is made obeys bounds (r); a design of which a formula has no value does not."""
        solver = self.fitted.solver
        chance = solver.joint(np.repeat(bound[None], len(self.z), axis=0), self.z, self.s)
        return float(np.where(self.valid, chance, 0.0).mean())

    @property
    def objective(self) -> float:
        """The mean of the standardised objective where it has a value."""
        return float(self.z[self.valid, 0].mean())

    def away(self, x: FloatArray) -> FloatArray:
        """Return in which direction (d), and about how far, a nominal design (d) moves away from designs without a value."""
        return np.asarray(self.x[self.valid].mean(axis=0) - self.x.mean(axis=0))

    def estimates(self) -> dict[str, Estimate]:
        """Return means and standard deviations of all outputs, natural units, scatter and uncertainty together."""
        s, valid = self.fitted.posterior.predictor, torch.from_numpy(self.valid)
        mean, std = (torch.from_numpy(self.z) * s.scale + s.centre)[valid], (torch.from_numpy(self.s) * s.scale)[valid]
        natural, deviation = (part.numpy() for part in self.fitted.posterior.natural(mean, std))
        total = np.sqrt(natural.var(axis=0) + np.square(deviation).mean(axis=0))
        names = self.fitted.problem.outputs
        return {n: Estimate(float(a), float(b)) for n, a, b in zip(names, natural.mean(axis=0), total, strict=True)}

    def margins(self, solver: Solver, x: FloatArray, level: float) -> FloatArray:
        """Return what each requirement (r) must keep from its bound, at the nominal design (d), to be obeyed with this level."""
        y, s = solver.sign * self.z[self.valid][:, solver.output], self.s[self.valid][:, solver.output]
        nominal = solver.sign * solver.pointwise.mean_and_jacobian(x)[0][solver.output]
        return np.asarray(_quantile(y, s, level) - nominal)


def _quantile(y: FloatArray, s: FloatArray, level: float) -> FloatArray:
    """Return the level quantile (r) of the mixture of the distributions around y with deviations s (m x r each)."""
    reach = abs(student_quantile(level)) + 10.0
    low, high = (y - reach * s).min(axis=0), (y + reach * s).max(axis=0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = student_probability((middle - y) / s).mean(axis=0) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(high)


def _read(problem: Problem, what: str, given: Mapping[str, float] | None) -> dict[str, float]:
    """Read deviations by variable."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"predict: expected {what} as a mapping of variables to numbers, got {shown(given)}")
    variables = {v.name: v for v in problem.variables}
    for name, value in given.items():
        if name not in variables:
            raise InputError(f"predict: {what}: unknown variable {shown(name)}; expected one of {', '.join(variables)}")
        if isinstance(variables[name], Integer | Categorical):
            kind = "a whole number" if isinstance(variables[name], Integer) else "a label"
            raise InputError(f"predict: {what}: {name!r} is {kind} and has no scatter; leave it out")
        if not (is_number(value) and 0.0 <= value < np.inf):
            raise InputError(f"predict: {what}: {name} must be a number from 0 on, got {shown(value)}")
    return {str(name): float(value) for name, value in given.items()}
