"""The model of a study: problem, settings, evaluations, surrogates and network; answers every threshold at once.

A model is a value. Making one reads a study and changes nothing; using one never evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from cbabo.answering.answers import Answer, Estimate, LimitChange, Recommendation, Status
from cbabo.answering.modelfile import read_model, write_model
from cbabo.decisions.recommend import ByNetwork, BySolver, Intent, Judge, Proposals, propose
from cbabo.domain.constraints import FEASIBILITY_TOLERANCE, ThresholdsLike
from cbabo.domain.evaluations import Evaluations
from cbabo.domain.problem import Problem
from cbabo.errors import InputError, ModelError, shown
from cbabo.methods.designs import snapped
from cbabo.methods.learner import Learner
from cbabo.methods.settings import Settings
from cbabo.methods.step import FEWEST, layers, train_whole
from cbabo.network.distillation import distil
from cbabo.network.pcm import PCM
from cbabo.numerics.arrays import FloatArray, is_number
from cbabo.numerics.seeding import child_seed
from cbabo.numerics.threads import one_thread
from cbabo.solver.continuous import NEARLY, Solver, SolverAnswer
from cbabo.solver.library import FastMap, Library, build_library
from cbabo.solver.mixed import solver_for
from cbabo.surrogate import Surrogates
from cbabo.surrogate.posterior import Posterior, fit_posterior

Method = Literal["pcm", "solver"]
_NOT_FOLLOWED = "no limits that follow all intents are believed feasible; these move some of them the other way"


@dataclass(frozen=True, eq=False)
class Model:
    """Answers for every threshold in the box."""

    problem: Problem
    settings: Settings
    seed: int
    evaluations: Evaluations
    """What it was trained on, failed ones included."""
    posterior: Posterior
    """The surrogates of the measured designs."""
    network: PCM | None = None
    """The network as the run trained it; None where it did not."""
    library: Library | None = None
    """Solved thresholds for fast answers; None: solved when first asked for."""

    def predict(
        self, thresholds: Mapping[str, float], *, probability: float | None = None, method: Method | None = None
    ) -> Answer:
        """Return the design for these limits, with what it is believed to do.

        probability: of feasibility that the solver aims at least at, as the settings say unless given; method: "pcm" for the
        network alone, "solver" for the surrogates' problem solved, as the settings say unless given.
        """
        return self.predict_many(self.problem.box.row(thresholds), probability=probability, method=method).answer(0)

    def predict_many(
        self,
        thresholds: ThresholdsLike,
        *,
        probability: float | None = None,
        method: Method | None = None,
        fast: bool = False,
    ) -> Answers:
        """Return the designs for many limits: a table by name, or n x k in the order of the movable constraints.

        fast: for maps and sliders, answer from a library of solved thresholds (made at the first such call) instead of solving.
        """
        wanted = self.settings.probability if probability is None else probability
        if not is_number(wanted) or not 0.0 < wanted < 1.0:
            raise InputError(f"predict: probability must be a number between 0 and 1, got {shown(probability)}")
        if method is None:
            method = "pcm" if self.settings.answer == "network" else "solver"
        if method not in ("pcm", "solver"):
            raise InputError(f"predict: method must be 'pcm' or 'solver', got {shown(method)}")
        rows = self.problem.box.array(thresholds)
        theta = np.clip(self.problem.box.to_theta(rows), 0.0, 1.0)
        if method == "pcm":
            return Answers(self, rows, snapped(self.problem.space, self.pcm.designs(torch.from_numpy(theta))), wanted)
        with one_thread():
            answer = self.fast_map.answers if fast else self.solver.answers
            found = answer(theta, wanted)
        x = np.array([f.x for f in found]).reshape(-1, self.problem.space.dimension)
        return Answers(self, rows, snapped(self.problem.space, torch.from_numpy(x)), wanted, found)

    def recommend(
        self, base: Mapping[str, float], intents: Mapping[str, Intent], *, alternatives: int = 3
    ) -> Recommendation:
        """Propose limits that follow the intents (tighten, lock, loosen, or <, =, >) and improve the objective.

        A limit without an intent is locked.
        """
        if not isinstance(alternatives, int) or isinstance(alternatives, bool) or alternatives < 0:
            raise InputError(f"recommend: alternatives must be a whole number from 0 on, got {alternatives!r}")
        found = propose(self.problem, self.settings, self.seed, self._judge, base, intents, 1 + alternatives)
        box = self.problem.box
        answers = self.predict_many(np.vstack([box.row(base), box.from_theta(found.theta)]))
        proposals = tuple(self._proposal(found, answers, i) for i in range(len(found.theta)))
        return replace(proposals[0], alternatives=proposals[1:])

    @property
    def _judge(self) -> Judge:
        """What a recommendation asks about its candidates."""
        if self.settings.answer == "network":
            return ByNetwork(self.posterior, self.pcm, self.settings.recommend_tolerance)
        box = self.problem.box
        probability = self.settings.probability - NEARLY
        return BySolver(
            self.solver, lambda theta: self.predict_many(box.from_theta(theta), fast=True).found or (), probability
        )

    def _proposal(self, found: Proposals, answers: Answers, i: int) -> Recommendation:
        """Put together one proposal: what it changes, and what each change alone would do."""
        box, base = self.problem.box, answers.answer(0)
        after = found.theta[i]
        singly = np.where(np.eye(len(after), dtype=bool), after, found.base)
        alone = self.predict_many(box.from_theta(singly)).moments[0][:, 0]
        goal = self.problem.objective.sign
        answer = answers.answer(1 + i)
        if not found.followed:
            answer = replace(answer, warnings=(*answer.warnings, _NOT_FOLLOWED))
        changes = {
            name: LimitChange(
                found.intents[name],
                base.thresholds[name],
                answer.thresholds[name],
                goal * (base.objective.mean - float(alone[j])),
            )
            for j, name in enumerate(box.names)
        }
        improvement = goal * (base.objective.mean - answer.objective.mean)
        return Recommendation(answer.thresholds, answer, base, improvement, float(found.utility[i]), changes)

    def save(self, path: str | Path) -> None:
        """Write the model to one file: tensors and JSON, never pickle.

        The library is made before, if it is not there yet: a model that is read answers fast at once. A network that was never
        asked for is not trained only to be written, unless it is what answers.
        """
        solved = self.settings.answer == "solver"
        network = self.pcm if not solved or "pcm" in vars(self) else self.network
        library = self.fast_map.library if solved else None
        parts = self.problem, self.settings, self.seed, self.evaluations, self.posterior, network, library
        write_model(Path(path), *parts)

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a model that `save` wrote."""
        return cls(**read_model(Path(path)))

    @cached_property
    def pcm(self) -> PCM:
        """The network: the run's own; or else made when first asked for, from the library where answers are solved."""
        if self.network is not None:
            return self.network
        if self.settings.answer == "network":
            return train_whole(self.posterior, self.settings, self.seed)
        fast_map = self.fast_map
        with one_thread():
            return distil(fast_map, layers(self.problem, self.settings), self.settings.probability, self.seed)

    @property
    def surrogates(self) -> Surrogates:
        """The Gaussian processes of the outputs, as the settings have them learned."""
        return self.posterior.surrogates

    @cached_property
    def solver(self) -> Solver:
        """What answers thresholds by the surrogates."""
        return solver_for(self.posterior)

    @cached_property
    def fast_map(self) -> FastMap:
        """What answers thresholds from the library."""
        with one_thread():
            seed = child_seed(self.seed, "library")
            library = self.library or build_library(self.solver, self.settings.probability, self.settings.library, seed)
            return FastMap(self.solver, library)


@dataclass(frozen=True, eq=False)
class Answers:
    """Designs for many thresholds; what they are believed to do is computed when asked for."""

    model: Model
    thresholds: FloatArray
    """n x k, natural units, in the order of the movable constraints."""
    x: Tensor
    """n x d, unit cube, legal."""
    probability: float
    """Of feasibility, at which the solver aimed."""
    found: tuple[SolverAnswer, ...] | None = None
    """n, what the solver found; None for the network's answers."""

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def points(self) -> FloatArray:
        """The designs, n x d, natural units, in the order of the problem's variables."""
        return self.model.problem.space.natural(self.x.numpy())

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and deviations of all outputs, n x q each; measured values, and zero, for measured designs."""
        mean, std = (part.numpy() for part in self.model.posterior.natural(*self._believed))
        for i, row in self.measured.items():
            mean[i], std[i] = self.model.posterior.measured.y[row], 0.0
        return mean, std

    @cached_property
    def probability_feasible(self) -> FloatArray:
        """The probability, n, that all limits are obeyed; 1 for measured designs that do."""
        theta = torch.from_numpy(self.model.problem.box.to_theta(self.thresholds))
        chance = self.model.posterior.limits.log_probability(*self._believed, theta).exp().numpy()
        chance[list(self.measured)] = 1.0
        return chance

    @cached_property
    def measured(self) -> dict[int, int]:
        """Which answers are measured designs, and the row of each among the measured evaluations."""
        return {i: f.measured for i, f in enumerate(self.found or ()) if f.measured is not None}

    @cached_property
    def _believed(self) -> tuple[Tensor, Tensor]:
        """Means and deviations, n x q each, in the surrogates' units."""
        with one_thread(), torch.no_grad():
            return self.model.surrogates.mean_and_std(self.x)

    def status(self, i: int) -> Status:
        """Return what one of the answers is."""
        if i in self.measured:
            return "verified"
        if self.found is not None and self.probability_feasible[i] < self.probability - NEARLY:
            return "unreachable"
        return "predicted"

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Which limits lie outside the box in some row, and by how much at the most."""
        if not len(self.thresholds):
            return ()
        ends = self.thresholds.min(axis=0), self.thresholds.max(axis=0)
        return tuple(dict.fromkeys(text for end in ends for text in outside_warnings(self.model.problem, end)))

    def to_frame(self) -> pd.DataFrame:
        """Return a table: limits, variables, mean and deviation of every output, probability of feasibility."""
        problem = self.model.problem
        mean, std = self.moments
        columns = {f"limit {name}": self.thresholds[:, i] for i, name in enumerate(problem.box.names)}
        columns |= {name: self.points[:, i] for i, name in enumerate(problem.space.names)}
        for i, name in enumerate(problem.outputs):
            columns |= {name: mean[:, i], f"{name} std": std[:, i]}
        return pd.DataFrame({**columns, "probability feasible": self.probability_feasible})

    def answer(self, i: int) -> Answer:
        """Return one of them by itself."""
        problem = self.model.problem
        mean, std = self.moments
        outputs = {n: Estimate(float(mean[i, j]), float(std[i, j])) for j, n in enumerate(problem.outputs)}
        return Answer(
            thresholds=problem.box.named(self.thresholds[i]),
            point=problem.space.points(self.x[i].unsqueeze(0).numpy())[0],
            objective=outputs[problem.objective.name],
            outputs=outputs,
            probability_feasible=float(self.probability_feasible[i]),
            status=self.status(i),
            closest_thresholds=self._closest(i) if self.status(i) == "unreachable" else None,
            warnings=outside_warnings(problem, self.thresholds[i]),
        )

    def _closest(self, i: int) -> Mapping[str, float] | None:
        box = self.model.problem.box
        asked = np.clip(box.to_theta(self.thresholds[i : i + 1])[0], 0.0, 1.0)
        with one_thread():
            theta = self.model.solver.closest(asked, self.probability)
        return None if theta is None else box.named(box.from_theta(theta[None])[0])


def make_model(evaluations: Evaluations, learner: Learner, settings: Settings, seed: int) -> Model:
    """Make a model of everything measured so far; nothing is written and the learner is not advanced.

    The network is the learner's; one that was never trained is trained when it is first asked for.
    """
    measured = evaluations.complete
    if len(measured) < FEWEST:
        raise ModelError(
            f"a model needs at least {FEWEST} measured designs, got {len(measured)}; run more evaluations first"
        )
    with one_thread():
        posterior = fit_posterior(evaluations, learner, settings)
    network = None if learner.trainee is None else learner.trainee.pcm
    return Model(evaluations.problem, settings, seed, evaluations, posterior, network)


def outside_warnings(problem: Problem, thresholds: FloatArray) -> tuple[str, ...]:
    """Say which thresholds lie outside the box, and by how much."""
    found = []
    for constraint, value in zip(problem.box.movable, thresholds, strict=True):
        assert constraint.low is not None
        assert constraint.high is not None
        beyond = max(constraint.low - value, value - constraint.high)
        if beyond > FEASIBILITY_TOLERANCE * constraint.scale:
            found.append(
                f"{constraint.name} = {value:g} lies outside {constraint.low:g} to {constraint.high:g} by {beyond:g} "
                f"({100 * beyond / constraint.scale:.3g} % of the range); the model has not learned there"
            )
    return tuple(found)
