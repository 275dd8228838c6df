"""The network where answers are solved: distilled from thresholds that the library answers.

Symbols and shapes, in units of the standardised outputs; m lessons, of which b in one step
    theta   m x k        thresholds; x*  m x d  their designs, answered from the library
    g       m x d        derivatives of the objective at x*; H  m x d x d  curvature of the Lagrangian
    A       m x r x d    derivatives of the requirements; e  m x r  by how much they exceed their bounds, mostly below zero
    lam     m x r        multipliers
    p       b x d        what the network misses: h(theta) - x*

A design that misses x* by a little may cost nothing or break a limit, so distance is not what is learned. Every lesson
brings its own small problem along:

    loss = g'p + p'Hp / 2 + sum_j w_j max(0, e_j + A_j p)    with    w_j = lam_j / tau

Keeping away from bound j costs lam_j per unit, breaking it w_j. The mean over errors that the network cannot get rid of is least
where the bound is broken by a share tau of them: the network finds the margins for its own errors itself, as wide as the
errors are, and where they are. tau falls during training, so that the errors are small before margins are kept for them.

Broken bounds push hard and seldom, so that the weights never rest: the network that is returned is the mean of the last ones.

Where many designs are nearly as good as each other, neighbouring entries of the library may be on different branches, which no
network can tell apart: lessons are taken from as few entries as answer almost as well as all.

A lesson holds for thresholds close by too, where only e differs; each is given several times, shifted by a part of the distance
between lessons. Outputs are not linear, and along a valley the network may be far from a lesson at no cost, where what that says
of a bound is no longer true: again and again lessons are taken anew at that mean's own designs, wherever these are. Variables
that are not continuous learn the squares of p. Where the last sigmoid is flat it is taken as steeper than it is, or the network
could not leave a bound of the cube again; what points out of the cube is left out.

Where the surrogates are in doubt about the objective at the network's designs, nothing that is learned of its slopes can be
trusted, and measured designs are known to be good: a few of these are learned as they are, by the squares of p, each at the
thresholds at which it is the best of them, limits being taken a little stricter, since the network blurs where one gives way
to the next. It is taken unless it loses more to the answers than what is in doubt.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from cbabo.network.pcm import PCM, Adam
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.quasirandom import sobol
from cbabo.numerics.seeding import child, child_seed
from cbabo.solver.continuous import Solver
from cbabo.solver.library import FastMap, Library

_LESSONS = 2048
_FEW = (8, 32)  # entries that may do
_BROKEN = 1e-3  # excess that counts
_WORSE = 0.01  # of the objective's range: what this may cost on average
_DOUBT = 0.005  # mean deviation of the standardised objective from which on measured designs are learned
_SHOWN = 16  # of these at most
_STRICTER = 0.5  # of the distance between lessons: how much stricter limits are taken for them
_TIMES = 4  # that each is given
_SHIFT = 0.25  # deviation of its thresholds, of the distance between lessons
_STEPS = 1400
_FIRST = 200  # steps that learn the squares of p, from which the others start
_ANEW = range(400, _STEPS, 100)  # before these steps lessons are taken anew, where the network is then
_BATCH = 128
_RATE = 5e-3  # learning rate at the beginning; it falls to zero
_TAU = (0.1, 0.005)  # from, to
_MEAN = 0.01  # weight of the newest weights in their mean
_LEAST = 1e-9  # what counts as large where no limit holds anything back
_USUAL = 0.95  # of the lessons have multipliers below what counts as large: unreachable thresholds have any
_SMALLEST = 0.1  # multiplier that counts, of the large ones: bounds that do not bind matter too
_EDGE = 1e-3  # from a bound of the cube that counts as on it
_FLATTEST = 0.05  # slope of the last sigmoid
_SPREAD = 32.0  # factors of the initial weights, or all thresholds would be in the linear part of the activations
_GAIN = 1.7


@dataclass(frozen=True, eq=False)
class _Lessons:
    """Everything that a step needs, single precision."""

    theta: Tensor
    """Of every lesson and its repetitions, one set after the other."""
    bound: Tensor
    """Of the requirements there, less margins."""
    x: Tensor
    """m x d."""
    value: Tensor
    """m x r, of the requirements at x."""
    slope: Tensor
    requirements: Tensor
    curvature: Tensor
    weights: Tensor
    """m x r: lam within what counts."""


def distil(fast_map: FastMap, sizes: Sequence[int], probability: float, seed: int) -> PCM:
    """Return a network of these layers that answers as the library does, aiming at this probability."""
    theta = sobol(sizes[0], child_seed(seed, "lessons"), _LESSONS).numpy()
    with torch.no_grad():
        solved = _solved(fast_map, theta, probability)
        taught = [_taught(fast_map, answers, sizes, seed) for answers in solved]
        lost = [_lost(fast_map, fast_map.batched.mean(_designs(pcm, theta)), solved[-1]) for pcm in taught]
        best = int(np.argmin(lost))
        doubt = float(fast_map.batched.std(_designs(taught[best], theta))[:, 0].mean())
        known = _measured(fast_map.solver, theta) if doubt > _DOUBT else None
        if known is None:
            return taught[best]
        shown = _trained(_shown(*known), sizes, seed)
        loss = _lost(fast_map, fast_map.batched.mean(_designs(shown, theta)), solved[-1])
        return shown if loss <= lost[best] + doubt / _span(fast_map, solved[-1]) else taught[best]


def _solved(fast_map: FastMap, theta: FloatArray, probability: float) -> list[Library]:
    """Return answers at theta from as few entries as will do; or, if few will not, from few and from all."""
    whole = fast_map.entries(theta, probability)
    some = []
    for count in _FEW:
        some.append(fast_map.few(count).entries(theta, probability))
        if _lost(fast_map, some[-1].mean, whole) <= _WORSE:
            return some[-1:]
    return [some[0], whole]


def _sound(fast_map: FastMap, solved: Library) -> Library:
    """Leave out answers that break their bounds, unless most do: of what cannot be reached, or was not, neighbours tell more."""
    over = fast_map.batched.sign * solved.mean[:, fast_map.batched.output] - fast_map.batched.bound(solved.theta)
    sound = np.flatnonzero(over.max(1) <= _BROKEN)
    return solved.taken(sound) if 2 * len(sound) > len(over) else solved


def _lost(fast_map: FastMap, mean: FloatArray, whole: Library) -> float:
    """Return how much designs of these means (m x q) lose to these answers on average, of the objective's range."""
    bound = fast_map.batched.bound(whole.theta)
    ours, theirs = (fast_map.merit(bound, z) for z in (mean, whole.mean))
    return float(np.clip((ours - theirs) / _span(fast_map, whole), 0.0, 1.0).mean())


def _span(fast_map: FastMap, whole: Library) -> float:
    """Return the objective's range over these answers."""
    return max(float(np.subtract(*np.quantile(fast_map.goal * whole.mean[:, 0], [0.95, 0.05]))), _LEAST)


def _measured(solver: Solver, theta: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return thresholds (m x k) and for each the best of a few measured designs (m x d) that obeys it; None if none does."""
    box, measured = solver.posterior.problem.box, solver.posterior.measured
    stricter = np.clip(theta - _STRICTER * len(theta) ** (-1.0 / theta.shape[1]), 0.0, 1.0)
    obeyed = box.obeyed(measured.y, box.from_theta(stricter))
    f = solver.goal * solver.z[: len(measured), 0]
    value = np.where(obeyed, f, f.max() + np.ptp(f))
    few: list[int] = []
    least = np.full(len(theta), np.inf)
    for _ in range(min(_SHOWN, len(f))):
        few.append(int(np.minimum(least[:, None], value).sum(0).argmin()))
        least = np.minimum(least, value[:, few[-1]])
    met = obeyed[:, few].any(1)
    best = np.array(few)[value[:, few].argmin(1)]
    return (theta[met], measured.x[best[met]]) if met.any() else None


def _taught(fast_map: FastMap, solved: Library, sizes: Sequence[int], seed: int) -> PCM:
    """Return a network that learned these answers."""
    lessons = _lessons(fast_map, _sound(fast_map, solved), child(seed, "shifts"))
    return _trained(lessons, sizes, seed, fast_map)


def _trained(lessons: _Lessons, sizes: Sequence[int], seed: int, fast_map: FastMap | None = None) -> PCM:
    """Return a network that had these lessons, and took them anew where it was if it is told by what."""
    random = child(seed, "distil")
    pcm = _initial(sizes, child_seed(seed, "network"), random)
    adam = Adam.initial(pcm.weights)
    mean = PCM(pcm.sizes, pcm.weights.clone())
    for i in range(_STEPS):
        if fast_map is not None and i in _ANEW:
            lessons = _moved(fast_map, lessons, mean)
        at = torch.from_numpy(random.integers(len(lessons.theta), size=_BATCH))
        trace = pcm.trace(lessons.theta[at])
        done = (i - _FIRST) / (_STEPS - _FIRST)
        push = _push(lessons, at, trace.x, None if done < 0 else _TAU[0] * (_TAU[1] / _TAU[0]) ** done)
        steep = replace(trace, slopes=(*trace.slopes[:-1], trace.slopes[-1].clamp_min(_FLATTEST)))
        rate = _RATE * (1.0 + math.cos(math.pi * i / _STEPS)) / 2.0
        adam = adam.step(pcm.weights, steep.gradient(push / _BATCH), rate)
        mean.weights.lerp_(pcm.weights, _MEAN)
    return PCM(mean.sizes, mean.weights.double())


def _push(lessons: _Lessons, at: Tensor, x: Tensor, tau: float | None) -> Tensor:
    """Return the derivative (b x d) of the loss by designs x for these lessons; of half the square if there is no tau."""
    entry = at % len(lessons.x)
    p = x - lessons.x[entry]
    push = p
    if tau is not None:
        A = lessons.requirements[entry]
        broken = lessons.value[entry] + torch.bmm(A, p.unsqueeze(-1)).squeeze(-1) > lessons.bound[at]
        price = lessons.weights[entry] * broken / tau
        push = lessons.slope[entry] + torch.bmm(lessons.curvature[entry], p.unsqueeze(-1)).squeeze(-1)
        push += torch.bmm(price.unsqueeze(1), A).squeeze(1)
    out = ((x < _EDGE) & (push > 0)) | ((x > 1.0 - _EDGE) & (push < 0))
    return torch.where(out, 0.0, push)


def _lessons(fast_map: FastMap, solved: Library, random: np.random.Generator) -> _Lessons:
    """Return the lessons of solved thresholds, each at several of them."""
    m, k = solved.theta.shape
    r = solved.multipliers.shape[1]
    shift = random.normal(0.0, _SHIFT * m ** (-1.0 / k), (_TIMES, m, k))
    shift[0] = 0.0
    theta = np.clip(solved.theta + shift, 0.0, 1.0).reshape(-1, k)
    bound = fast_map.batched.bound(theta)
    bound[:, :r] -= np.tile(solved.margin, (_TIMES, 1))
    large = max(float(np.quantile(solved.multipliers.max(1), _USUAL)), _LEAST)
    # what is not a limit is the risk of failures, which matters whatever limits are worth
    weights = np.full((m, len(fast_map.batched.output)), max(large, 1.0))
    weights[:, :r] = np.clip(solved.multipliers, _SMALLEST * large, large)
    usual = np.minimum(1.0, large / np.maximum(solved.multipliers.max(1), large))
    curvature = usual[:, None, None] * solved.curvature * fast_map.free * fast_map.free[:, None] + np.diag(
        1.0 - fast_map.free
    )
    return _Lessons(
        _single(theta),
        _single(bound),
        _single(solved.x),
        *_seen(fast_map, solved.mean, solved.slope),
        _single(curvature),
        _single(weights),
    )


def _shown(theta: FloatArray, x: FloatArray) -> _Lessons:
    """Return lessons of nothing but these designs (m x d) at theta (m x k)."""
    m, d = x.shape
    nothing = torch.zeros(m, 1)
    eye = torch.eye(d).expand(m, d, d)
    return _Lessons(_single(theta), nothing, _single(x), nothing, torch.zeros(m, d), torch.zeros(m, 1, d), eye, nothing)


def _moved(fast_map: FastMap, lessons: _Lessons, pcm: PCM) -> _Lessons:
    """Return the lessons as they are at the network's own designs, but for variables that are not continuous.

    Means and derivatives are those there; multipliers, curvatures and margins stay.
    """
    x = torch.where(_single(fast_map.free) > 0, pcm.trace(lessons.theta[: len(lessons.x)]).x, lessons.x)
    value, slope, requirements = _seen(fast_map, *fast_map.batched.mean_and_slope(x.double().numpy()))
    return replace(lessons, x=x, value=value, slope=slope, requirements=requirements)


def _seen(fast_map: FastMap, mean: FloatArray, slope: FloatArray) -> tuple[Tensor, Tensor, Tensor]:
    """Return values of the requirements (m x r), derivatives of the objective (m x d) and of the requirements (m x r x d)."""
    batched, free = fast_map.batched, fast_map.free
    return (
        _single(batched.sign * mean[:, batched.output]),
        _single(fast_map.goal * slope[:, 0] * free),
        _single(batched.sign[:, None] * slope[:, batched.output] * free),
    )


def _designs(pcm: PCM, theta: FloatArray) -> FloatArray:
    return pcm.trace(torch.from_numpy(theta)).x.numpy()


def _initial(sizes: Sequence[int], seed: int, random: np.random.Generator) -> PCM:
    """Return the network before training, single precision."""
    pcm = PCM.initial(sizes, seed)
    pcm = PCM(pcm.sizes, pcm.weights.float())
    (weight, bias), *rest = pcm.layers
    weight.mul_(_SPREAD / math.sqrt(sizes[0]))
    bias.copy_(_single(random.uniform(-1.0, 1.0, len(bias))) - 0.5 * weight.sum(1))
    for (weight, _), _ in itertools.pairwise(rest):
        weight.mul_(_GAIN)
    return pcm


def _single(a: FloatArray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(a, dtype=np.float32))
