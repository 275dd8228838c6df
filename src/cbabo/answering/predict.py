"""Answering many thresholds at once: the designs, and what is predicted of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbabo.answering.answers import Answer, Estimate, Price, Status
from cbabo.answering.prices import Asked, Prices, price_limits
from cbabo.domain.categorical import Categorical
from cbabo.domain.constraints import FEASIBILITY_TOLERANCE
from cbabo.domain.problem import Problem
from cbabo.domain.query import Query
from cbabo.domain.space import AnyVariable, Integer
from cbabo.errors import InputError, shown
from cbabo.methods.method import Designs, Fitted
from cbabo.methods.paper import network_designs
from cbabo.methods.settings import DefaultSettings, PaperSettings
from cbabo.numerics.arrays import FloatArray, is_number
from cbabo.numerics.threads import one_thread
from cbabo.numerics.tolerances import PROBABILITY_SLACK
from cbabo.solver.reaching import Reaching
from cbabo.surrogate.failures import failure_probability

Source = Literal["pcm", "solver"]
"""What answers: the network alone, or the constrained solver."""


def predict_many(
    fitted: Fitted,
    query: Query,
    *,
    probability: float | None = None,
    method: Source | None = None,
    fast: bool = False,
) -> Answers:
    """Answer a query; the arguments are those of `Model.predict_many`."""
    if probability is not None and not (is_number(probability) and 0.0 < probability < 1.0):
        raise InputError(f"predict: probability must be a number between 0 and 1, got {shown(probability)}")
    if method not in (None, "pcm", "solver"):
        raise InputError(f"predict: method must be 'pcm' or 'solver', got {shown(method)}")
    if method == "solver" and isinstance(fitted.settings, PaperSettings):
        raise InputError("predict: the paper method answers by its network only; leave method out")
    if method == "pcm":
        designs = network_designs(fitted, query)
    else:
        designs = fitted.method.answer(fitted, query, probability, fast)
    ignored = probability is not None and designs.aim is None
    return Answers(fitted, query, designs, ("probability has no effect: the network aims at none",) if ignored else ())


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Designs for many thresholds; what is predicted of them is computed when asked for.

    Examples:
        >>> from cbabo import problems
        >>> from cbabo.study.study import Study
        >>> truss = problems.get("three_truss")
        >>> study = Study.create(truss.problem, "sqlite://")
        >>> study.run(truss.evaluate, budget=30)
        >>> answers = study.model().predict_many([truss.problem.box.nominal] * 2)
        >>> len(answers), answers.points.shape
        (2, (2, 2))
    """

    fitted: Fitted
    query: Query
    designs: Designs
    notes: tuple[str, ...] = ()
    """Warnings that hold for all of them."""
    spent: bool = False
    """Whether evaluations were spent on them, so that a measured design is told as such even if it breaks a limit."""

    def __len__(self) -> int:
        return len(self.query)

    def __repr__(self) -> str:
        """Say in one line what they answer."""
        return f"Answers({self.fitted.problem.name!r}, {len(self)} thresholds)"

    @property
    def thresholds(self) -> FloatArray:
        """The limits, n x k, natural units, in the order of the movable constraints."""
        return self.query.thresholds

    @property
    def x(self) -> Tensor:
        """The designs, n x d, unit cube, legal."""
        return self.designs.x

    @property
    def measured(self) -> Mapping[int, int]:
        """Which answers are measured designs, and the row of each among the posterior's evaluations."""
        return self.designs.measured

    @cached_property
    def points(self) -> FloatArray:
        """The designs, n x v, natural units, in the order of the problem's variables; a label is its index."""
        return self._problem.space.natural(self.x.numpy())

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of all outputs, n x q each; measured values, and zero, for what was measured exactly."""
        posterior = self.fitted.posterior
        mean, std = (part.numpy() for part in posterior.natural(*self._moments))
        exact = np.ones(mean.shape[1], dtype=np.bool_) if posterior.exact is None else posterior.exact.numpy()
        std[:, list(self._problem.exact)] = 0.0
        for i, row in self.measured.items():
            mean[i], std[i] = np.where(exact, posterior.measured.y[row], mean[i]), np.where(exact, 0.0, std[i])
        return mean, std

    @cached_property
    def probability_feasible(self) -> FloatArray:
        """The probability, n, that all limits asked for are obeyed; 1 or 0 for designs that were measured exactly."""
        theta = torch.from_numpy(self.query.theta)
        chance = self.fitted.posterior.limits.log_probability(*self._moments, theta).exp().numpy()
        rows = list(self.measured)
        if rows:
            asked = Query(self.query.box, self.query.thresholds[rows], self.query.theta[rows])
            of_measured = self.fitted.posterior.measured_probability(asked)
            chance[rows] = of_measured[np.arange(len(rows)), list(self.measured.values())]
        return chance

    @cached_property
    def probability_success(self) -> FloatArray:
        """The probability, n, that the simulator returns at all; 1 for designs that were measured, unless outputs are noisy."""
        fitted = self.fitted
        chance = 1.0 - failure_probability(fitted.posterior.failure_model, fitted.evaluations, self.x).numpy()
        if fitted.posterior.all_exact:
            chance[list(self.measured)] = 1.0
        return chance

    @property
    def approximate(self) -> NDArray[np.bool_]:
        """Which of them (n) are fast answers, of which full ones may be slightly better designs; not measured designs."""
        found = np.full(len(self), self.designs.fast)
        found[list(self.measured)] = False
        return found

    def measurements(self, i: int) -> int:
        """Return how often the design of one of them was measured."""
        counts = self.fitted.posterior.counts
        if i not in self.measured:
            return 0
        return 1 if counts is None else int(counts[self.measured[i]])

    @cached_property
    def reachable(self) -> NDArray[np.bool_]:
        """Whether each answer (n) has the probability that was aimed at; True where none was."""
        if self.designs.aim is None:
            return np.ones(len(self), dtype=np.bool_)
        return self.probability_feasible >= self.designs.aim - PROBABILITY_SLACK

    def status(self, i: int) -> Status:
        """Return what one of the answers is."""
        if i not in self.measured:
            return "predicted" if self.reachable[i] else "unreachable"
        if self.designs.aim is None:
            return "verified" if self.probability_feasible[i] > 0.5 else "measured"
        if self.reachable[i]:
            return "verified"
        return "measured" if self.spent else "unreachable"

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Which limits lie outside the box in some row, and by how much at the most."""
        if not len(self):
            return (*self.notes, *self.fitted.notes)
        ends = (self.thresholds.argmin(axis=0), self.thresholds.argmax(axis=0))
        found = (text for rows in ends for i in rows for text in self.query.warnings(int(i)))
        return (*self.notes, *self.fitted.notes, *dict.fromkeys(found))

    def to_frame(self) -> pd.DataFrame:
        """Return a table: limits, variables, mean and standard deviation of every output, probabilities."""
        problem = self._problem
        mean, std = self.moments
        columns: dict[str, Any] = {f"limit {name}": self.thresholds[:, i] for i, name in enumerate(problem.box.names)}
        columns |= {v.name: _named(v, self.points[:, i]) for i, v in enumerate(problem.variables)}
        for name, at in self._columns.items():
            rows = np.arange(len(self))
            columns |= {name: mean[rows, at], f"{name} std": std[rows, at]}
        chances = {"probability feasible": self.probability_feasible, "probability success": self.probability_success}
        return pd.DataFrame({**columns, **chances, "approximate": self.approximate})

    def answer(self, i: int) -> Answer:
        """Return one of them by itself."""
        problem = self._problem
        mean, std = self.moments
        outputs = {n: Estimate(float(mean[i, at[i]]), float(std[i, at[i]])) for n, at in self._columns.items()}
        status = self.status(i)
        doubts = self._doubts(i) if status == "measured" else []
        doubts += [] if status == "verified" else self.fitted.notes
        return Answer(
            thresholds=self.query.named(i),
            point=problem.space.points(self.x[i].unsqueeze(0).numpy())[0],
            objective=outputs[problem.objective.name],
            outputs=outputs,
            probability_feasible=float(self.probability_feasible[i]),
            status=status,
            closest_thresholds=self._closest(i) if status == "unreachable" else None,
            warnings=(*self.query.warnings(i), *doubts, *self.notes),
            noise={n: s for n, s in zip(problem.outputs, self.fitted.posterior.noise.tolist(), strict=True) if s > 0},
            measurements=self.measurements(i),
            probability_success=float(self.probability_success[i]),
            approximate=bool(self.approximate[i]),
            prices=self._prices(i),
            problem=problem,
        )

    def _prices(self, i: int) -> Mapping[str, Price]:
        """Return the prices of one answer's limits, to be computed when they are looked at; none where limits cannot be met."""
        possible = self.reachable[i] if self.designs.aim is not None else self.probability_feasible[i] > 0.5
        if not possible:
            return {}
        fitted, query, x, aim = self.fitted, self.query.row(i), self.x[i].numpy(), self.designs.aim

        def ask(query: Query, *, fast: bool) -> Asked:
            found = predict_many(fitted, query, probability=aim, fast=fast)
            mean, std = (part[:, 0] for part in found.moments)
            return Asked(
                np.where(found.reachable, mean, fitted.problem.objective.sign * np.inf), std, found.designs.x.numpy()
            )

        return Prices(query.box.names, lambda: price_limits(fitted, query, x, aim, ask))

    def _doubts(self, i: int) -> list[str]:
        """Say why a measured design is not verified."""
        broken = broken_limits(self._problem, self.query.row(i), self.moments[0][i : i + 1])
        if broken:
            return broken
        times = "once" if self.measurements(i) == 1 else f"{self.measurements(i)} times"
        return [
            f"the measured design was measured {times}, and noise leaves doubt: it obeys these limits with a probability of "
            f"{self.probability_feasible[i]:.3g}; refine again to measure more"
        ]

    def _closest(self, i: int) -> Mapping[str, float] | None:
        assert self.designs.aim is not None
        asked, fitted, box = self.query.theta[i], self.fitted, self.query.box
        theta = self.designs.closest.get(i)
        if theta is None:
            library = fitted.fast_map.library if isinstance(fitted.settings, DefaultSettings) else None
            with one_thread():
                met = Reaching(fitted.solver, library, self.designs.aim).closest(asked)
            theta = None if met is None else met.theta
        return None if theta is None else box.named(box.from_theta(theta[None])[0])

    @cached_property
    def _columns(self) -> dict[str, NDArray[np.int64]]:
        """Where (n) each output is among the columns of the moments; an output with parts is where its governing part is."""
        problem, mean = self._problem, self.moments[0]
        found = {name: np.full(len(self), j) for j, name in enumerate(problem.outputs)}
        found |= {name: problem.box.governing(mean, self.thresholds, at) for name, at in problem.parts.items()}
        return {name: found[name] for name in problem.reported_outputs}

    @property
    def _problem(self) -> Problem:
        return self.fitted.problem

    @cached_property
    def _moments(self) -> tuple[Tensor, Tensor]:
        """Means and standard deviations, n x q each, in the surrogates' units."""
        with one_thread(), torch.no_grad():
            return self.fitted.posterior.predictor.mean_and_std(self.x)


def broken_limits(problem: Problem, query: Query, y: FloatArray) -> list[str]:
    """Say which limits outputs y (1 x q) break, and by how much."""
    violation = iter(problem.box.violations(y, query.thresholds)[0])
    found = []
    for constraint, limit in zip(problem.constraints, problem.box.limits(query.thresholds), strict=True):
        for output in constraint.output_names:
            over = float(next(violation))
            if over > FEASIBILITY_TOLERANCE * constraint.scale:
                unit = f" {constraint.unit}" if constraint.unit else ""
                name = constraint.name if output == constraint.name else f"{constraint.name} ({output})"
                found.append(
                    f"the measured design breaks {name} {constraint.sense} {limit[0]:g}{unit} by {over:.4g}{unit}"
                )
    return found


def _named(variable: AnyVariable, values: FloatArray) -> Any:
    """Return natural values (n) as a table shows them: labels by name, and whole numbers as such."""
    if isinstance(variable, Categorical):
        return [variable.label(value) for value in values]
    return values.round().astype(np.int64) if isinstance(variable, Integer) else values
