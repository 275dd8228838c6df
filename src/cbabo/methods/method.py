"""What a method is, and what a method made of a problem's evaluations.

A method proposes evaluations, answers thresholds, refines one answer and ranks thresholds for a recommendation. There are two:
`paper` and `default`. Each has settings of its own and knows nothing of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.focus import Focus
from cbabo.domain.problem import Problem
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.errors import ModelError
from cbabo.methods.learner import Learner
from cbabo.methods.settings import DefaultSettings, MethodSettings
from cbabo.network.pcm import PCM
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.seeding import child_seed
from cbabo.numerics.threads import one_thread
from cbabo.solver.building import build_library
from cbabo.solver.categorical import solver_for
from cbabo.solver.continuous import Solver
from cbabo.solver.library import FastMap, Library
from cbabo.surrogate import Surrogates
from cbabo.surrogate.posterior import FitState, Posterior

Measure = Callable[[Point], Evaluation]
"""Evaluates a design, stores the outcome, and returns it; failed or complete."""


@dataclass(frozen=True, eq=False)
class Designs:
    """The designs that answer a query."""

    x: Tensor
    """n x d, unit cube, legal."""
    measured: Mapping[int, int]
    """Which of them are measured designs, and the row of each among the posterior's evaluations."""
    aim: float | None
    """The probability of feasibility that was aimed at; None where the method aims at none."""
    fast: bool = False
    """Whether they are fast answers, of which full ones may differ."""
    closest: Mapping[int, FloatArray] = field(default_factory=dict)
    """The nearest thresholds (k, normalised) that can be met, by the number of an answer whose own cannot be met."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """How good thresholds are: what a recommendation compares."""

    objective: FloatArray
    """c, to be minimised, in the unit that the method's weights refer to."""
    feasible: NDArray[np.bool_]
    """c, whether the answers are predicted to obey their own limits."""


@dataclass(frozen=True, eq=False)
class Refinement:
    """What a refinement ended with."""

    fitted: Fitted
    """What was known before, conditioned on what was measured."""
    designs: Designs | None
    """The answer; None where nothing was measured."""
    made: Sequence[Evaluation]
    """Evaluations spent on this answer, in earlier calls too."""
    notes: Sequence[str] = ()


class Method(Protocol):
    """One way to spend evaluations and to answer thresholds."""

    @property
    def settings(self) -> MethodSettings:
        """Its settings."""
        ...

    def fit(self, evaluations: Evaluations, state: FitState) -> Posterior:
        """Fit the surrogates to the measured designs, starting from the last fit."""
        ...

    def propose(
        self,
        evaluations: Evaluations,
        pending: Evaluations,
        learner: Learner,
        seed: int,
        size: int,
        focus: Focus | None,
    ) -> tuple[Tensor, Learner]:
        """Return a batch of designs (size x d, unit cube, legal) and the state after it."""
        ...

    def answer(self, fitted: Fitted, query: Query, probability: float | None, fast: bool) -> Designs:
        """Return the designs for thresholds; probability: of feasibility to aim at, as the settings say where it is None."""
        ...

    def refine(
        self,
        fitted: Fitted,
        query: Query,
        measure: Measure,
        evaluations: int,
        start: Point | None,
        made: Sequence[Evaluation],
    ) -> Refinement:
        """Spend at most so many evaluations on one answer; made: those that earlier calls spent on it."""
        ...

    def rank(self, fitted: Fitted, theta: FloatArray) -> Ranking:
        """Rank normalised thresholds (c x k) for a recommendation."""
        ...

    def nearest_reachable(self, fitted: Fitted, base: FloatArray, theta: FloatArray) -> FloatArray | None:
        """Return thresholds (k) near the base (k), or met by answers at theta (c x k), that can be met; None if none can."""
        ...

    def train_network(self, fitted: Fitted) -> PCM:
        """Train the network from thresholds to designs, where the run itself did not."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """A problem's evaluations, the surrogates fitted to them, and the method that answers."""

    problem: Problem
    method: Method
    seed: int
    evaluations: Evaluations
    """What it was fitted to, failed evaluations included."""
    posterior: Posterior
    """The surrogates of the measured designs."""
    network: PCM | None = None
    """The network as the run trained it; None where it did not."""
    library: Library | None = None
    """Solved thresholds for fast answers; None: solved when first asked for."""
    notes: tuple[str, ...] = ()
    """Warnings that every answer carries which is not verified, as after an audit that rejects the stated probabilities."""

    def __repr__(self) -> str:
        """Say in one line what it is a model of."""
        measured, failed = len(self.evaluations.complete), len(self.evaluations.failed)
        return (
            f"{type(self).__name__}({self.problem.name!r}, {self.settings.method} method, {measured} measured, "
            f"{failed} failed, {len(self.problem.variables)} variables, {len(self.problem.box.names)} movable limits)"
        )

    @property
    def settings(self) -> MethodSettings:
        """The settings of its method."""
        return self.method.settings

    def conditioned(self, made: Sequence[Evaluation]) -> Fitted:
        """Return the same after some further evaluations, with the same hyperparameters."""
        if not made:
            return self
        evaluations = Evaluations(self.problem, (*self.evaluations, *made))
        policy = self.settings.noise if isinstance(self.settings, DefaultSettings) else "none"
        return replace(
            self, evaluations=evaluations, posterior=self.posterior.conditioned(evaluations, policy), library=None
        )

    @property
    def surrogates(self) -> Surrogates:
        """The Gaussian processes of the outputs."""
        return self.posterior.surrogates

    @cached_property
    def solver(self) -> Solver:
        """The constrained solver on the surrogates."""
        return solver_for(self.posterior)

    @cached_property
    def fast_map(self) -> FastMap:
        """Fast answers from solved thresholds."""
        settings = self.settings
        if not isinstance(settings, DefaultSettings):
            raise ModelError(f"the {settings.method} method has no solved thresholds; it answers by its network")
        with one_thread():
            seed = child_seed(self.seed, "library")
            library = self.library or build_library(self.solver, settings.probability, settings.library, seed)
            return FastMap(self.solver, library)

    @cached_property
    def further(self) -> dict[str, Posterior]:
        """Posteriors of further numbers that the simulator returned, by name: those that were asked for so far."""
        return {}

    @cached_property
    def pcm(self) -> PCM:
        """The network: the run's own, or else trained when first asked for."""
        return self.network if self.network is not None else self.method.train_network(self)


def layer_sizes(problem: Problem, settings: MethodSettings) -> tuple[int, ...]:
    """Return the sizes of the network's layers."""
    hidden = [settings.hidden_width] * settings.hidden_layers
    return (len(problem.box.names), *hidden, problem.space.dimension)


def measured_design(fitted: Fitted, evaluation: Evaluation, aim: float | None) -> Designs:
    """Return one measured design as an answer."""
    measured = fitted.posterior.measured
    row = next(i for i, e in enumerate(measured) if e.point == evaluation.point)
    return Designs(torch.from_numpy(measured.x[row : row + 1]), {0: row}, aim)


def best_measured(
    query: Query, measured: Sequence[Evaluation], problem: Problem, unit: FloatArray | float
) -> Evaluation:
    """Return the best of some measured designs for a query with one row.

    Feasible ones come before infeasible ones and are compared by objective, infeasible ones by their total violation in these
    units (one for each requirement).
    """
    y = Evaluations(problem, tuple(measured)).y
    rows = query.repeated(len(y))
    feasible = problem.box.feasible(y, rows)
    objective = problem.objective.sign * y[:, 0]
    violation = np.clip(problem.box.violations(y, rows) / unit, 0.0, None).sum(axis=1)
    keys = [(0, objective[i]) if feasible[i] else (1, violation[i]) for i in range(len(y))]
    return measured[min(range(len(y)), key=keys.__getitem__)]
