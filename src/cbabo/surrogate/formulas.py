"""Derived outputs: what formulas say of the variables and of the posterior of other outputs.

Symbols and shapes, in units of the standardised outputs; d variables, p simulated outputs, m derived ones
    x      b x d        designs, unit cube
    z, s   b x p        means and standard deviations of the simulated outputs; J  b x p x d  derivatives of the means by x
    f      b x m        the derived outputs; A  b x m x d  their derivatives by x with z held; B  b x m x p  those by z

A formula of variables alone is exact: it has no surrogate and no deviation, and its derivatives are those of the formula. A
formula of simulated outputs is computed at their medians in natural units. Its standard deviation is found by moving one output
at a time by one deviation to either side, which includes the curvature of a quotient; outputs are taken as independent, as
everywhere. What a formula says of the variables enters exactly in both cases. Learning such an output from its measured values
instead would give away the exact part, and a quotient or a maximum of two smooth outputs is harder to learn than the two.

Exact outputs have a deviation of a millionth of their spread where something is divided by it: solvers end that close to a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from cbabo.domain.derivatives import derivatives, values
from cbabo.domain.expression import Expression
from cbabo.domain.problem import Problem
from cbabo.domain.relations import Scaling
from cbabo.numerics.arrays import FloatArray
from cbabo.surrogate.data import standardisation
from cbabo.surrogate.warp import TUNING as WARP
from cbabo.surrogate.warp import Warp

LEAST_STD = 1e-6
"""Least standard deviation of a derived output, standardised: that of a Gaussian process at its data."""
LARGEST = 1e6
"""A value that is not finite, as after a division by zero, counts as this much, on the side that is worse."""


@dataclass(frozen=True, eq=False)
class _Formula:
    """One formula, and where its inputs are."""

    expression: Expression
    variables: NDArray[np.int64]
    """Which variables they are, for those inputs that are variables."""
    of_variables: NDArray[np.int64]
    """Which inputs these are."""
    outputs: NDArray[np.int64]
    """Columns of z, for those that are outputs."""
    of_outputs: NDArray[np.int64]


class Formulas:
    """The derived outputs of a problem, standardised by their measured values."""

    def __init__(
        self, problem: Problem, warp: Warp | None, centre: FloatArray, scale: FloatArray, y: FloatArray
    ) -> None:
        """warp, centre, scale: of the simulated outputs (p); y: n x m, measured values of the derived ones."""
        self.problem = problem
        self.learned = np.array(problem.learned, dtype=np.int64)
        """p, where the simulated outputs are among the problem's."""
        self.derived = np.array([j for j, n in enumerate(problem.outputs) if n in problem.derived], dtype=np.int64)
        """m, the same of the derived ones."""
        names = [problem.outputs[j] for j in self.learned]
        space = problem.space.names
        self._scaling = Scaling.of(problem.space)
        self._formulas = [_placed(problem.formulas[problem.outputs[j]], space, names) for j in self.derived]
        self._warp, self._centre, self._scale = warp, centre, scale
        centre_d, scale_d = standardisation(torch.from_numpy(np.ascontiguousarray(y)))
        self.centre: FloatArray = centre_d.numpy()
        """m."""
        self.scale: FloatArray = scale_d.numpy()
        """m."""

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """Which of them (m) depend on variables alone."""
        return np.array([not len(f.outputs) for f in self._formulas], dtype=np.bool_)

    @cached_property
    def needed(self) -> NDArray[np.bool_]:
        """Which simulated outputs (m x p) each depends on."""
        found = np.zeros((len(self._formulas), len(self.learned)), dtype=np.bool_)
        for k, formula in enumerate(self._formulas):
            found[k, formula.outputs] = True
        return found

    @cached_property
    def worse(self) -> FloatArray:
        """The side (m) on which a derived output is worse: +1 if it is minimised or has an upper limit."""
        signs = {c: k.sign for k in reversed(self.problem.constraints) for c in k.output_names}
        signs[self.problem.objective.name] = self.problem.objective.sign
        return np.array([signs.get(self.problem.outputs[j], 1.0) for j in self.derived])

    def values(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """Return f."""
        v, y = self._scaling.natural(x), self.natural(z)[0]
        return self._standard(np.column_stack([values(f.expression, _inputs(f, v, y)) for f in self._formulas]))

    def values_and_slopes(self, x: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return f, A and B."""
        v, (y, rise, _) = self._scaling.natural(x), self.natural(z)
        first, _ = self._scaling.slopes(v)
        b, m = len(x), len(self._formulas)
        f, A, B = np.empty((b, m)), np.zeros((b, m, x.shape[1])), np.zeros((b, m, z.shape[1]))
        for k, formula in enumerate(self._formulas):
            f[:, k], g, _ = derivatives(formula.expression, _inputs(formula, v, y), 1)
            g = (g if np.isfinite(g).all() else np.nan_to_num(g, nan=0.0, posinf=0.0, neginf=0.0)) / self.scale[k]
            A[:, k, self._scaling.column[formula.variables]] = g[:, formula.of_variables] * first[:, formula.variables]
            B[:, k, formula.outputs] = g[:, formula.of_outputs] * rise[:, formula.outputs]
        return self._standard(f), A, B

    def std(self, x: FloatArray, z: FloatArray, s: FloatArray) -> FloatArray:
        """Return the standard deviations (b x m)."""
        v, y = self._scaling.natural(x), self.natural(z)[0]
        upper, lower = self.natural(z + s)[0], self.natural(z - s)[0]
        found = np.zeros((len(x), len(self._formulas)))
        for k, formula in enumerate(self._formulas):
            if self.exact[k]:
                continue
            at = _inputs(formula, v, y)
            for column, j in zip(formula.of_outputs, formula.outputs, strict=True):
                sides = []
                for moved in (upper, lower):
                    there = at.copy()
                    there[:, column] = moved[:, j]
                    sides.append(values(formula.expression, there))
                half = 0.5 * np.abs(sides[0] - sides[1]) / self.scale[k]
                # Where one side has no value, as the logarithm of a negative number, nothing is known.
                found[:, k] += np.square(np.clip(np.nan_to_num(half, nan=LARGEST), 0.0, LARGEST))
        return np.maximum(np.sqrt(found), LEAST_STD)

    def hessian(
        self, x: FloatArray, z: FloatArray, J: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return second derivatives (d x d) of the weighted sum of f at one design (x: d, z: p, J: p x d, weights: m).

        Returned with it are weights (p) with which the second derivatives of z have to be added.
        """
        v, (y, rise, bend) = self._scaling.natural(x[None]), self.natural(z[None])
        first, second = (part[0] for part in self._scaling.slopes(v))
        H, on_outputs = np.zeros((len(x), len(x))), np.zeros(len(z))
        for k, formula in enumerate(self._formulas):
            if weights[k] == 0.0:
                continue
            _, g, h = derivatives(formula.expression, _inputs(formula, v, y), 2)
            g, h = (np.nan_to_num(part[0], nan=0.0, posinf=0.0, neginf=0.0) for part in (g, h))
            share = weights[k] / self.scale[k]
            G = np.zeros((len(g), len(x)))
            G[formula.of_variables, self._scaling.column[formula.variables]] = first[formula.variables]
            G[formula.of_outputs] = rise[0, formula.outputs, None] * J[formula.outputs]
            H += share * (G.T @ h @ G)
            at = self._scaling.column[formula.variables]
            H[at, at] += share * g[formula.of_variables] * second[formula.variables]
            curved = g[formula.of_outputs] * bend[0, formula.outputs]
            H += share * (J[formula.outputs].T * curved) @ J[formula.outputs]
            on_outputs[formula.outputs] += share * g[formula.of_outputs] * rise[0, formula.outputs]
        return H, on_outputs

    def natural(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return simulated outputs in natural units, and their first and second derivatives by z (b x p each)."""
        learned = self._centre + self._scale * z
        if self._warp is None:
            return learned, np.broadcast_to(self._scale, z.shape), np.zeros_like(z)
        o, c, w = (part.numpy() for part in (self._warp.orientation, self._warp.centre, self._warp.width))
        curved = np.isfinite(w)
        width = np.where(curved, w, 1.0)
        t = np.clip((learned - c) / width, -WARP.max_argument, WARP.max_argument)
        y = o * np.where(curved, c + width * np.sinh(t), learned)
        rise = o * self._scale * np.where(curved, np.cosh(t), 1.0)
        return y, rise, o * np.square(self._scale) * np.where(curved, np.sinh(t) / width, 0.0)

    def _standard(self, f: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            f = (f - self.centre) / self.scale
        # A formula without a value there can be no answer.
        return np.where(np.isfinite(f), np.clip(f, -LARGEST, LARGEST), self.worse * LARGEST)


def _placed(expression: Expression, variables: tuple[str, ...], outputs: list[str]) -> _Formula:
    of_variables = [i for i, name in enumerate(expression.names) if name in variables]
    of_outputs = [i for i, name in enumerate(expression.names) if name not in variables]
    columns = [variables.index(expression.names[i]) for i in of_variables]
    places = [outputs.index(expression.names[i]) for i in of_outputs]
    return _Formula(
        expression, *(np.array(part, dtype=np.int64) for part in (columns, of_variables, places, of_outputs))
    )


def _inputs(formula: _Formula, v: FloatArray, y: FloatArray) -> FloatArray:
    found = np.empty((len(v), len(formula.expression.names)))
    found[:, formula.of_variables] = v[:, formula.variables]
    found[:, formula.of_outputs] = y[:, formula.outputs]
    return found
