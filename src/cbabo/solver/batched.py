"""The posterior at many designs at once: requirements, the failure probability and known relations as rows of a program.

Symbols and shapes, in units of the standardised outputs, as in `continuous`; b designs
    x       b x d        designs, unit cube
    z       b x q        means of the outputs, the objective first, of the failure probability where it is modelled, and the
                         values of known relations between variables
    J       b x q x d    their derivatives; s  b x q  standard deviations, of the outputs alone

Outputs with the plain kernel are evaluated together, apart from those with a rough, additive or stretched one, which costs more.
Standard deviations are expensive, and most requirements are far from their bounds at most designs: they can be asked of some
outputs at some designs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cbabo.numerics.arrays import FloatArray
from cbabo.solver.continuous import Solver
from cbabo.solver.known import RELATION_SLACK
from cbabo.surrogate import Surrogates
from cbabo.surrogate.formulas import Formulas
from cbabo.surrogate.kernel import SMOOTH


class BatchedPosterior:
    """The posterior of all outputs of a solver, or of some."""

    def __init__(self, solver: Solver, which: NDArray[np.int64] | None = None) -> None:
        """which: requirements (indices) to evaluate besides the objective; all unless given."""
        s, failure_model = solver.posterior.surrogates, solver.failure_model
        self.solver = solver
        self.requirements = np.arange(len(solver.output)) if which is None else which
        output = solver.output[self.requirements]
        q = len(solver.posterior.problem.outputs)
        self._derived = None if solver.posterior.formulas is None else _Derived.of(solver.posterior.formulas, q)
        self.outputs = np.arange(q) if which is None else np.unique(np.append(output, 0))
        if self._derived is not None:
            self.outputs = self._derived.with_inputs(self.outputs)
        self.columns, self.output, self.sign = (
            self.outputs,
            np.searchsorted(self.outputs, output),
            solver.sign[self.requirements],
        )
        # Surrogates are counted among themselves; without derived outputs every output has one.
        places = np.arange(len(self.outputs)) if self._derived is None else self._derived.learned_places(self.outputs)
        self._inner = self.outputs if self._derived is None else self._derived.inner[self.outputs[places]]
        self._places = places
        plain = _plain(s)[self._inner]
        groups = (np.flatnonzero(plain), np.flatnonzero(~plain))
        self._parts = [_Part(_only(s, self._inner[at]), places[at]) for at in groups if len(at)]
        self._all = self._parts
        if failure_model is not None:
            self._all = [*self._parts, _Part(failure_model.surrogates, np.array([len(self.outputs)]))]
            self.columns = np.append(self.outputs, q)
            self.output, self.sign = np.append(self.output, len(self.outputs)), np.append(self.sign, 1.0)
        self._known = None if solver.region is None else solver.region.relations
        rows = 0 if self._known is None else len(self._known.expressions)
        first, of_library = len(self.columns), q + (failure_model is not None)
        self.relations: NDArray[np.int64] = np.arange(first, first + rows)
        """The columns of known relations."""
        if rows:
            self.columns = np.append(self.columns, np.arange(of_library, of_library + rows))
            self.output, self.sign = np.append(self.output, self.relations), np.append(self.sign, np.ones(rows))

    def bound(self, theta: FloatArray) -> FloatArray:
        """Return the bounds (b x r) at theta (b x k)."""
        bound, failure_model = self.solver.bound(theta)[:, self.requirements], self.solver.failure_model
        if failure_model is not None:
            s = failure_model.surrogates
            bound = np.column_stack(
                [bound, np.full(len(bound), (failure_model.limit - float(s.centre[0])) / float(s.scale[0]))]
            )
        if len(self.relations):
            bound = np.column_stack([bound, np.full((len(bound), len(self.relations)), -RELATION_SLACK)])
        return bound

    def mean(self, x: FloatArray) -> FloatArray:
        """Return z."""
        at = torch.from_numpy(x)
        z = np.empty((len(x), len(self.columns)))
        for s, columns in self._all:
            z[:, columns] = ((s.mean(at) - s.centre) / s.scale).numpy()
        if self._known is not None:
            z[:, self.relations] = self._known.values(x)
        if self._derived is not None:
            self._derived.add_means(self.outputs, x, z)
        return z

    def mean_and_slope(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z and J."""
        at = torch.from_numpy(x)
        z, J = np.empty((len(x), len(self.columns))), np.empty((len(x), len(self.columns), x.shape[1]))
        for s, columns in self._all:
            mean, slope = s.mean_and_gradient(at)
            z[:, columns] = ((mean - s.centre) / s.scale).numpy()
            J[:, columns] = (slope / s.scale.unsqueeze(-1)).numpy()
        if self._known is not None:
            z[:, self.relations], J[:, self.relations] = self._known.values_and_slopes(x)
        if self._derived is not None:
            self._derived.add_slopes(self.outputs, x, z, J)
        return z, J

    def std(self, x: FloatArray) -> FloatArray:
        """Return s."""
        found = np.empty((len(x), len(self.outputs)))
        for s, columns in self._parts:
            found[:, columns] = _std(s, x)
        if self._derived is not None:
            self._derived.add_stds(self.outputs, x, self.mean(x), found, np.ones_like(found, dtype=np.bool_))
        return found

    def updated_std(self, std: FloatArray, x: FloatArray, where: NDArray[np.bool_]) -> FloatArray:
        """Return s, computed where asked for (b x q) and as given (b x q) elsewhere."""
        found = std.copy()
        asked = where
        if self._derived is not None:
            where = self._derived.with_asked_inputs(self.outputs, where)
        for s, columns in self._groups:
            rows = np.flatnonzero(where[:, columns].any(axis=1))
            if len(rows):
                at = np.ix_(rows, columns)
                found[at] = np.where(where[at], _std(s, x[rows]), std[at])
        if self._derived is not None:
            self._derived.add_stds(self.outputs, x, self.mean(x), found, asked)
        return found

    @cached_property
    def _groups(self) -> list[_Part]:
        """The surrogates of each group of outputs that share a kernel."""
        s = self.solver.posterior.surrogates
        group = s.hyperparameters.sharing.group.numpy()[self._inner]
        columns = [np.flatnonzero(group == g) for g in np.unique(group)]
        return [_Part(_only(s, self._inner[at]), self._places[at]) for at in columns]


@dataclass(frozen=True, eq=False)
class _Derived:
    """Derived outputs beside the simulated ones, for some outputs (ascending indices) at a time."""

    formulas: Formulas
    inner: NDArray[np.int64]
    """q, the number of a simulated output among these; -1 of a derived one."""

    @classmethod
    def of(cls, formulas: Formulas, q: int) -> _Derived:
        inner = np.full(q, -1)
        inner[formulas.learned] = np.arange(len(formulas.learned))
        return cls(formulas, inner)

    def with_inputs(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add the simulated outputs that derived ones depend on."""
        needed = self.formulas.needed[np.isin(self.formulas.derived, outputs)].any(0)
        return np.union1d(outputs, self.formulas.learned[needed])

    def learned_places(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where simulated outputs are among them."""
        return np.flatnonzero(self.inner[outputs] >= 0)

    def with_asked_inputs(self, outputs: NDArray[np.int64], where: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return where (b x outputs) deviations have to be computed so that those of derived outputs can be."""
        found = where.copy()
        places, ours = self.learned_places(outputs), np.isin(self.formulas.derived, outputs)
        asked = where[:, np.searchsorted(outputs, self.formulas.derived[ours])]
        found[:, places] |= (
            asked[:, :, None] & self.formulas.needed[ours][None][:, :, self.inner[outputs[places]]]
        ).any(1)
        return found

    def add_means(self, outputs: NDArray[np.int64], x: FloatArray, z: FloatArray) -> None:
        """Write the derived columns of z (b x outputs, and more)."""
        ours, at = self._ours(outputs)
        z[:, at] = self.formulas.values(x, self._simulated(outputs, z))[:, ours]

    def add_slopes(self, outputs: NDArray[np.int64], x: FloatArray, z: FloatArray, J: FloatArray) -> None:
        """Write the derived columns of z and J."""
        ours, at = self._ours(outputs)
        f, A, B = self.formulas.values_and_slopes(x, self._simulated(outputs, z))
        z[:, at] = f[:, ours]
        places = self.learned_places(outputs)
        J[:, at] = A[:, ours] + B[:, ours][:, :, self.inner[outputs[places]]] @ J[:, places]

    def add_stds(
        self, outputs: NDArray[np.int64], x: FloatArray, z: FloatArray, s: FloatArray, where: NDArray[np.bool_]
    ) -> None:
        """Write the derived columns of s (b x outputs) where they are asked for."""
        ours, at = self._ours(outputs)
        found = self.formulas.std(x, self._simulated(outputs, z), self._simulated(outputs, s))[:, ours]
        s[:, at] = np.where(where[:, at], found, s[:, at])

    def _ours(self, outputs: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which derived outputs are among them, and where."""
        ours = np.isin(self.formulas.derived, outputs)
        return ours, np.searchsorted(outputs, self.formulas.derived[ours])

    def _simulated(self, outputs: NDArray[np.int64], columns: FloatArray) -> FloatArray:
        """Return what is known of all simulated outputs (b x p), zero for those that are not among them."""
        places = self.learned_places(outputs)
        found = np.zeros((len(columns), len(self.formulas.learned)))
        found[:, self.inner[outputs[places]]] = columns[:, places]
        return found


class _Part(NamedTuple):
    """Surrogates that are evaluated together, and the columns of their outputs."""

    surrogates: Surrogates
    columns: NDArray[np.int64]


def _std(s: Surrogates, x: FloatArray) -> FloatArray:
    with torch.no_grad():
        return np.asarray((s.mean_and_std(torch.from_numpy(x))[1] / s.scale).numpy())


def _plain(s: Surrogates) -> NDArray[np.bool_]:
    """Tell which outputs have the plain kernel: smooth, in variables that are not stretched."""
    h = s.hyperparameters
    plain = torch.ones(len(h.noise), dtype=torch.bool)
    if h.family is not None:
        plain &= h.family == SMOOTH
    if h.stretch is not None:
        plain &= (h.stretch == 0).all(-1)
    return np.asarray(plain.numpy())


def _only(s: Surrogates, outputs: NDArray[np.int64]) -> Surrogates:
    """Return the surrogates of these outputs (ascending) alone, with no kernel but the plain one if all of them have it."""
    h = s.hyperparameters
    at = _slice(outputs)
    parts = {f.name: getattr(h, f.name) for f in fields(h)}
    kept: dict[str, Any] = {name: part[at] for name, part in parts.items() if isinstance(part, torch.Tensor)}
    if _plain(s)[outputs].all():
        kept |= {"family": None, "stretch": None}
    mine = replace(h, **kept)
    groups = h.sharing.group[torch.from_numpy(outputs)][mine.sharing.first].numpy()
    noise = None if s.relative_noise is None else s.relative_noise[at]
    factor = s.factor[_slice(groups)]
    return Surrogates(s.x, s.y[:, at], mine, s.centre[at], s.scale[at], noise, factor, s.weights[at])


def _slice(indices: NDArray[np.int64]) -> slice | torch.Tensor:
    """Return ascending indices as a slice where they have no gaps: it copies nothing."""
    first, last = int(indices[0]), int(indices[-1]) + 1
    return slice(first, last) if last - first == len(indices) else torch.from_numpy(indices)
