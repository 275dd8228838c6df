"""The parametric constraint model: a network from thresholds to designs, with its derivatives written out.

Symbols and shapes
    theta   b x k    thresholds, 0 strictest, 1 most relaxed
    x       b x d    designs, unit cube
    W_i, c_i         weights and biases of layer i; one flat vector holds them all
    a_i     b x s_i  before the activation: a_i = h_(i-1) W_i' + c_i
    h_i     b x s_i  after it: SiLU inside, sigmoid at the end (x = h_last)
    g       b x d    a direction for each design
    v       b x k    J'g, where J = dx/dtheta
    t       b x k    a direction for each threshold

`gradient` needs d/dweights of <p, x> + <r, J t>: reverse mode over a forward pass that carries the derivative J t along.
Written by hand it is free of autograd's overhead, which would be as large as the arithmetic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from cbabo.numerics.threads import one_thread

_CHUNK = 1024  # thresholds at a time: the activations of a large query stay in the processor's cache
_FEW = 256  # thresholds that are quicker on one thread, many times so on a busy machine


@dataclass(frozen=True, eq=False)
class PCM:
    """h(theta) -> x."""

    sizes: tuple[int, ...]
    """k, the hidden widths, d."""
    weights: Tensor
    """All W_i and c_i in one flat vector, double precision."""

    @classmethod
    def initial(cls, sizes: Sequence[int], seed: int) -> PCM:
        """Return an untrained network: orthogonal hidden layers, small output weights, no biases.

        Its designs all lie close to the centre of the cube.
        """
        generator = torch.Generator().manual_seed(seed)
        parts = []
        for i, (width, height) in enumerate(itertools.pairwise(sizes)):
            weight = torch.empty(height, width, dtype=torch.float64)
            if i == len(sizes) - 2:
                weight.normal_(0.0, 0.01, generator=generator)
            else:
                torch.nn.init.orthogonal_(weight, generator=generator)
            parts += [weight.flatten(), torch.zeros(height, dtype=torch.float64)]
        return cls(tuple(sizes), torch.cat(parts))

    @cached_property
    def layers(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """(W_i, c_i), views of the flat vector."""
        return _views(self.weights, self.sizes)

    def designs(self, theta: Tensor) -> Tensor:
        """Return x (b x d) for theta (b x k), any number of them."""
        x = torch.empty(len(theta), self.sizes[-1], dtype=torch.float64)
        room = torch.empty(2, min(len(theta), _CHUNK) * max(self.sizes[1:]), dtype=torch.float64)
        with torch.no_grad(), one_thread() if len(theta) <= _FEW else nullcontext():
            for rows, part in zip(x.split(_CHUNK), theta.split(_CHUNK), strict=True):
                h = part
                for i, (weight, bias) in enumerate(self.layers[:-1]):
                    a = room[i % 2, : len(part) * len(bias)].view(len(part), len(bias))
                    h = torch.nn.functional.silu(torch.addmm(bias, h, weight.mT, out=a), inplace=True)
                weight, bias = self.layers[-1]
                torch.addmm(bias, h, weight.mT, out=rows).sigmoid_()
        return x

    def trace(self, theta: Tensor) -> Trace:
        """Return x with what its derivatives need."""
        h, sigmas, slopes = [theta], [], []
        for i, (weight, bias) in enumerate(self.layers):
            a = torch.addmm(bias, h[-1], weight.mT)
            sigma = a.sigmoid()
            if i == len(self.layers) - 1:
                h.append(sigma)
                slopes.append(sigma * (1.0 - sigma))
            else:
                h.append(a.mul_(sigma))
                slopes.append(torch.addcmul(a, sigma, 1.0 - a))  # of SiLU, with h = a sigma: h + sigma (1 - h)
            sigmas.append(sigma)
        return Trace(self, tuple(h), tuple(sigmas), tuple(slopes))


@dataclass(frozen=True, eq=False)
class Trace:
    """One forward pass at b thresholds."""

    pcm: PCM
    h: tuple[Tensor, ...]
    """theta, then every h_i."""
    sigmas: tuple[Tensor, ...]
    """Sigmoids of every a_i."""
    slopes: tuple[Tensor, ...]
    """Derivatives of the activations at a_i."""

    @property
    def x(self) -> Tensor:
        """The designs, b x d."""
        return self.h[-1]

    def pull(self, g: Tensor) -> Tensor:
        """Return v = J'g (b x k) for g (b x d)."""
        delta = g
        for (weight, _), slope in zip(reversed(self.pcm.layers), reversed(self.slopes), strict=True):
            delta = (delta * slope) @ weight
        return delta

    def gradient(self, p: Tensor) -> Tensor:
        """Return d<p, x>/dweights, flat, for constant p (b x d)."""
        out = torch.empty_like(self.pcm.weights)
        grads = _views(out, self.pcm.sizes)
        delta = p
        for i in reversed(range(len(self.slopes))):
            delta = delta * self.slopes[i]
            torch.mm(delta.mT, self.h[i], out=grads[i][0])
            torch.sum(delta, 0, out=grads[i][1])
            if i:
                delta = delta @ self.pcm.layers[i][0]
        return out

    def gradient_with_tangent(self, p: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """Return d(<p, x> + <r, J t>)/dweights, flat, for constant p, r (b x d) and t (b x k)."""
        tangents = [t]  # of theta, then of every h_i
        rises = []  # of every a_i
        for (weight, _), slope in zip(self.pcm.layers, self.slopes, strict=True):
            rises.append(tangents[-1] @ weight.mT)
            tangents.append(slope * rises[-1])
        out = torch.empty_like(self.pcm.weights)
        grads = _views(out, self.pcm.sizes)
        count = len(p)
        both = torch.cat([p, r])  # adjoints of h_i, and below them those of its tangent
        for i in reversed(range(len(self.slopes))):
            delta, delta_t = both[:count], both[count:]
            delta.mul_(self.slopes[i]).addcmul_(rises[i].mul_(delta_t), self._bend(i))
            delta_t.mul_(self.slopes[i])
            torch.mm(delta.mT, self.h[i], out=grads[i][0]).addmm_(delta_t.mT, tangents[i])
            torch.sum(delta, 0, out=grads[i][1])
            if i:
                both = both @ self.pcm.layers[i][0]
        return out

    def _bend(self, i: int) -> Tensor:
        """Second derivative of activation i."""
        if i == len(self.slopes) - 1:
            return self.slopes[i] * (1.0 - 2.0 * self.h[-1])
        return self.slopes[i].mul(2.0).sub_(self.h[i + 1]).mul_(1.0 - self.sigmas[i])


@dataclass(frozen=True, eq=False)
class Adam:
    """The optimiser's memory between two steps."""

    steps: int
    """Steps made so far."""
    first: Tensor
    """Running mean of the gradient, flat."""
    second: Tensor
    """Running mean of its square, flat."""

    @classmethod
    def initial(cls, weights: Tensor) -> Adam:
        """Return the memory before the first step."""
        return cls(0, torch.zeros_like(weights), torch.zeros_like(weights))

    def copy(self) -> Adam:
        """Return a memory that `step` may overwrite without changing this one."""
        return Adam(self.steps, self.first.clone(), self.second.clone())

    def step(self, weights: Tensor, gradient: Tensor, rate: float) -> Adam:
        """Make one step with this learning rate; weights, gradient and the memory's own tensors are overwritten."""
        steps = self.steps + 1
        first = self.first.lerp_(gradient, 1.0 - _BETA_1)
        second = self.second.mul_(_BETA_2).addcmul_(gradient, gradient, value=1.0 - _BETA_2)
        scale = torch.sqrt(second, out=gradient).mul_(1.0 / math.sqrt(1.0 - _BETA_2**steps)).add_(_EPSILON)
        weights.addcdiv_(first, scale, value=-rate / (1.0 - _BETA_1**steps))
        return Adam(steps, first, second)


_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8


def _views(flat: Tensor, sizes: Sequence[int]) -> tuple[tuple[Tensor, Tensor], ...]:
    views = []
    start = 0
    for width, height in itertools.pairwise(sizes):
        middle, end = start + width * height, start + width * height + height
        views.append((flat[start:middle].view(height, width), flat[middle:end]))
        start = end
    return tuple(views)
