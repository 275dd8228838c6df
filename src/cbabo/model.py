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

from cbabo.answers import Answer, Estimate, LimitChange, Recommendation
from cbabo.constraints import FEASIBILITY_TOLERANCE, ThresholdsLike
from cbabo.designs import snapped
from cbabo.errors import InputError, ModelError
from cbabo.evaluations import Evaluations
from cbabo.learner import Learner
from cbabo.limits import Limits
from cbabo.modelfile import read_model, write_model
from cbabo.pcm import PCM
from cbabo.problem import Problem
from cbabo.recommend import Intent, Proposals, propose
from cbabo.seeding import child, child_seed
from cbabo.selection import ThresholdSampler
from cbabo.settings import Settings
from cbabo.space import FloatArray
from cbabo.step import FEWEST, fit_surrogates, untrained
from cbabo.surrogate import Surrogates
from cbabo.threads import one_thread
from cbabo.training import train

Method = Literal["pcm"]
_NOT_FOLLOWED = "no limits that follow all intents are believed feasible; these move some of them the other way"


@dataclass(frozen=True, eq=False)
class Model:
    """Answers for every threshold in the box."""

    problem: Problem
    settings: Settings
    seed: int
    evaluations: Evaluations
    """What it was trained on, failed ones included."""
    surrogates: Surrogates
    pcm: PCM

    def predict(self, thresholds: Mapping[str, float], *, method: Method = "pcm") -> Answer:
        """Return the design for these limits, with what it is believed to do."""
        return self.predict_many(self.problem.box.row(thresholds), method=method).answer(0)

    def predict_many(self, thresholds: ThresholdsLike, *, method: Method = "pcm") -> Answers:
        """Return the designs for many limits: a table by name, or n x k in the order of the movable constraints."""
        if method != "pcm":
            raise InputError(f"predict: method must be 'pcm', got {method!r}")
        rows = self.problem.box.array(thresholds)
        theta = np.clip(self.problem.box.to_theta(rows), 0.0, 1.0)
        return Answers(self, rows, snapped(self.problem.space, self.pcm.designs(torch.from_numpy(theta))))

    def recommend(
        self, base: Mapping[str, float], intents: Mapping[str, Intent], *, alternatives: int = 3
    ) -> Recommendation:
        """Propose limits that follow the intents (tighten, lock, loosen, or <, =, >) and improve the objective.

        A limit without an intent is locked.
        """
        if not isinstance(alternatives, int) or isinstance(alternatives, bool) or alternatives < 0:
            raise InputError(f"recommend: alternatives must be a whole number from 0 on, got {alternatives!r}")
        found = propose(
            self.problem, self.settings, self.seed, self.surrogates, self.pcm, base, intents, 1 + alternatives
        )
        box = self.problem.box
        answers = self.predict_many(np.vstack([box.row(base), box.from_theta(found.theta)]))
        proposals = tuple(self._proposal(found, answers, i) for i in range(len(found.theta)))
        return replace(proposals[0], alternatives=proposals[1:])

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
        """Write the model to one file: tensors and JSON, never pickle."""
        write_model(Path(path), self.problem, self.settings, self.seed, self.evaluations, self.surrogates, self.pcm)

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a model that `save` wrote."""
        return cls(**read_model(Path(path)))

    @cached_property
    def limits(self) -> Limits:
        """The problem's objective and limits as tensors."""
        return Limits.of(self.problem)


@dataclass(frozen=True, eq=False)
class Answers:
    """Designs for many thresholds; what they are believed to do is computed when asked for."""

    model: Model
    thresholds: FloatArray
    """n x k, natural units, in the order of the movable constraints."""
    x: Tensor
    """n x d, unit cube, legal."""

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def points(self) -> FloatArray:
        """The designs, n x d, natural units, in the order of the problem's variables."""
        return self.model.problem.space.natural(self.x.numpy())

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and deviations of all outputs, n x q each."""
        with one_thread(), torch.no_grad():
            mean, std = self.model.surrogates.mean_and_std(self.x)
        return mean.numpy(), std.numpy()

    @cached_property
    def probability_feasible(self) -> FloatArray:
        """The probability, n, that all limits are obeyed."""
        mean, std = (torch.from_numpy(part) for part in self.moments)
        theta = torch.from_numpy(self.model.problem.box.to_theta(self.thresholds))
        return self.model.limits.log_probability(mean, std, theta).exp().numpy()

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
            status="predicted",
            warnings=outside_warnings(problem, self.thresholds[i]),
        )


def make_model(evaluations: Evaluations, learner: Learner, settings: Settings, seed: int) -> Model:
    """Make a model of everything measured so far; nothing is written and the learner is not advanced.

    The network is the learner's. One that was never trained, as with imported runs only, is trained here over the whole horizon.
    """
    measured = evaluations.complete
    if len(measured) < FEWEST:
        raise ModelError(
            f"a model needs at least {FEWEST} measured designs, got {len(measured)}; run more evaluations first"
        )
    with one_thread():
        surrogates = fit_surrogates(measured, learner)
        trainee = learner.trainee
        if trainee is None:
            sampler = ThresholdSampler(len(evaluations.problem.box.names), child_seed(seed, "sobol"))
            random = child(seed, "thresholds of an untrained model")
            thetas, _ = sampler.draw(settings.training_steps, settings.thresholds_per_step, random)
            trainee = train(
                untrained(evaluations.problem, settings, seed),
                surrogates,
                Limits.of(evaluations.problem),
                thetas,
                settings,
            )
    return Model(evaluations.problem, settings, seed, evaluations, surrogates, trainee.pcm)


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
