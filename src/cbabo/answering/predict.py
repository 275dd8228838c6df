"""Answering many thresholds at once: the designs, and what is predicted of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from cbabo.answering.answers import Answer, Estimate, Status
from cbabo.domain.problem import Problem
from cbabo.domain.query import Query
from cbabo.errors import InputError, shown
from cbabo.methods.method import Designs, Fitted
from cbabo.methods.paper import network_designs
from cbabo.methods.settings import PaperSettings
from cbabo.numerics.arrays import FloatArray, is_number
from cbabo.numerics.threads import one_thread
from cbabo.numerics.tolerances import PROBABILITY_SLACK

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
        """The designs, n x d, natural units, in the order of the problem's variables."""
        return self._problem.space.natural(self.x.numpy())

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of all outputs, n x q each; measured values, and zero, for measured designs."""
        posterior = self.fitted.posterior
        mean, std = (part.numpy() for part in posterior.natural(*self._moments))
        for i, row in self.measured.items():
            mean[i], std[i] = posterior.measured.y[row], 0.0
        return mean, std

    @cached_property
    def probability_feasible(self) -> FloatArray:
        """The probability, n, that all limits asked for are obeyed; 1 for measured designs, which obey them."""
        theta = torch.from_numpy(self.query.theta)
        chance = self.fitted.posterior.limits.log_probability(*self._moments, theta).exp().numpy()
        chance[list(self.measured)] = 1.0
        return chance

    @cached_property
    def reachable(self) -> NDArray[np.bool_]:
        """Whether each answer (n) has the probability that was aimed at; True where none was."""
        if self.designs.aim is None:
            return np.ones(len(self), dtype=np.bool_)
        return self.probability_feasible >= self.designs.aim - PROBABILITY_SLACK

    def status(self, i: int) -> Status:
        """Return what one of the answers is."""
        if i in self.measured:
            return "verified"
        return "predicted" if self.reachable[i] else "unreachable"

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Which limits lie outside the box in some row, and by how much at the most."""
        if not len(self):
            return self.notes
        ends = (self.thresholds.argmin(axis=0), self.thresholds.argmax(axis=0))
        found = (text for rows in ends for i in rows for text in self.query.warnings(int(i)))
        return (*self.notes, *dict.fromkeys(found))

    def to_frame(self) -> pd.DataFrame:
        """Return a table: limits, variables, mean and standard deviation of every output, probability of feasibility."""
        problem = self._problem
        mean, std = self.moments
        columns = {f"limit {name}": self.thresholds[:, i] for i, name in enumerate(problem.box.names)}
        columns |= {name: self.points[:, i] for i, name in enumerate(problem.space.names)}
        for name, at in self._columns.items():
            rows = np.arange(len(self))
            columns |= {name: mean[rows, at], f"{name} std": std[rows, at]}
        return pd.DataFrame({**columns, "probability feasible": self.probability_feasible})

    def answer(self, i: int) -> Answer:
        """Return one of them by itself."""
        problem = self._problem
        mean, std = self.moments
        outputs = {n: Estimate(float(mean[i, at[i]]), float(std[i, at[i]])) for n, at in self._columns.items()}
        status = self.status(i)
        return Answer(
            thresholds=self.query.named(i),
            point=problem.space.points(self.x[i].unsqueeze(0).numpy())[0],
            objective=outputs[problem.objective.name],
            outputs=outputs,
            probability_feasible=float(self.probability_feasible[i]),
            status=status,
            closest_thresholds=self._closest(i) if status == "unreachable" else None,
            warnings=(*self.query.warnings(i), *self.notes),
        )

    def _closest(self, i: int) -> Mapping[str, float] | None:
        assert self.designs.aim is not None
        with one_thread():
            theta = self.fitted.solver.closest(self.query.theta[i], self.designs.aim)
        box = self.query.box
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
            return self.fitted.surrogates.mean_and_std(self.x)
