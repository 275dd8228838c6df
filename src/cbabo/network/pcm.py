"""The parametric constraint model (PCM): a network from thresholds to designs, with hand-written derivatives.

Symbols and shapes
    theta   b x k    thresholds, 0 strictest, 1 most relaxed
    x       b x d    designs, unit cube
    W_i, c_i         weights and biases of layer i; one flat vector holds them all
    a_i     b x s_i  before the activation: a_i = h_(i-1) W_i' + c_i
    h_i     b x s_i  after it: SiLU inside, sigmoid at the end (x = h_last)
    g       b x d    a direction for each design
    v       b x k    J'g, where J = dx/dtheta
    t       b x k    a direction for each threshold

`gradient_with_tangent` is d/dweights of <p, x> + <r, J t>: reverse mode over a forward pass that computes J t, too. The
derivatives are written by hand because the overhead of autograd would be as large as the arithmetic.
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


@dataclass(frozen=True)
class NetworkTuning:
    """Numbers that control speed and optimiser of the network."""

    chunk: int = 1024
    """Thresholds per chunk of a query; the activations of a chunk fit into the processor's cache."""
    single_thread: int = 256
    """Thresholds up to which a query runs on one thread, which is faster, and much faster on a busy machine."""
    beta_1: float = 0.9
    """Decay of Adam's running mean of the gradient, as in torch."""
    beta_2: float = 0.999
    """Decay of Adam's running mean of the squared gradient, as in torch."""
    epsilon: float = 1e-8
    """Number that Adam adds to the root of the squared gradient, as in torch."""


TUNING = NetworkTuning()


@dataclass(frozen=True, eq=False)
class PCM:
    """The network h(theta) -> x.

    Examples:
        >>> pcm = PCM.initial((2, 16, 16, 3), seed=0)
        >>> theta = torch.tensor([[0.0, 0.0], [0.5, 1.0]], dtype=torch.float64)
        >>> designs = pcm.designs(theta)
        >>> designs.shape, bool(((designs > 0) & (designs < 1)).all())
        (torch.Size([2, 3]), True)
    """

    sizes: tuple[int, ...]
    """Layer sizes: k, the hidden widths, d."""
    weights: Tensor
    """All W_i and c_i in one flat vector, double precision."""

    @property
    def is_complete(self) -> bool:
        """Whether there are as many weights as the layers need."""
        return self.weights.shape == (sum((a + 1) * b for a, b in itertools.pairwise(self.sizes)),)

    @classmethod
    def initial(cls, sizes: Sequence[int], seed: int) -> PCM:
        """Return an untrained network with orthogonal hidden layers, small output weights and zero biases.

        All its designs are close to the centre of the cube.
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
        """Weights and biases (W_i, c_i) as views of the flat vector."""
        return _views(self.weights, self.sizes)

    def designs(self, theta: Tensor) -> Tensor:
        """Return designs x (b x d) for theta (b x k), chunk by chunk and without derivatives."""
        x = torch.empty(len(theta), self.sizes[-1], dtype=torch.float64)
        buffers = torch.empty(2, min(len(theta), TUNING.chunk) * max(self.sizes[1:]), dtype=torch.float64)
        with torch.no_grad(), one_thread() if len(theta) <= TUNING.single_thread else nullcontext():
            for rows, part in zip(x.split(TUNING.chunk), theta.split(TUNING.chunk), strict=True):
                h = part
                for i, (weight, bias) in enumerate(self.layers[:-1]):
                    a = buffers[i % 2, : len(part) * len(bias)].view(len(part), len(bias))
                    h = torch.nn.functional.silu(torch.addmm(bias, h, weight.mT, out=a), inplace=True)
                weight, bias = self.layers[-1]
                torch.addmm(bias, h, weight.mT, out=rows).sigmoid_()
        return x

    def trace(self, theta: Tensor) -> Trace:
        """Return designs for theta (b x k) with the intermediate results that derivatives need; not chunked."""
        h, sigmas, slopes = [theta], [], []
        for i, (weight, bias) in enumerate(self.layers):
            a = torch.addmm(bias, h[-1], weight.mT)
            sigma = a.sigmoid()
            if i == len(self.layers) - 1:
                h.append(sigma)
                slopes.append(sigma * (1.0 - sigma))
            else:
                h.append(a.mul_(sigma))
                slopes.append(torch.addcmul(a, sigma, 1.0 - a))  # SiLU: h + sigma (1 - h), with h = a sigma.
            sigmas.append(sigma)
        return Trace(self, tuple(h), tuple(sigmas), tuple(slopes))


@dataclass(frozen=True, eq=False)
class Trace:
    """Intermediate results of one forward pass at b thresholds."""

    pcm: PCM
    h: tuple[Tensor, ...]
    """theta, then every h_i."""
    sigmas: tuple[Tensor, ...]
    """Sigmoids of every a_i."""
    slopes: tuple[Tensor, ...]
    """Derivatives of the activations at a_i."""

    @property
    def x(self) -> Tensor:
        """Designs, b x d."""
        return self.h[-1]

    def pull(self, g: Tensor) -> Tensor:
        """Return the vector-Jacobian product v = J'g (b x k) for g (b x d)."""
        delta = g
        for (weight, _), slope in zip(reversed(self.pcm.layers), reversed(self.slopes), strict=True):
            delta = (delta * slope) @ weight
        return delta

    def gradient(self, p: Tensor) -> Tensor:
        """Return the gradient of <p, x> by the weights, flat, for constant p (b x d)."""
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
        """Return the gradient of <p, x> + <r, J t> by the weights, flat, for constant p, r (b x d) and t (b x k)."""
        tangents = [t]  # Tangents of theta and of every h_i.
        pre_tangents = []  # Tangents of every a_i.
        for (weight, _), slope in zip(self.pcm.layers, self.slopes, strict=True):
            pre_tangents.append(tangents[-1] @ weight.mT)
            tangents.append(slope * pre_tangents[-1])
        out = torch.empty_like(self.pcm.weights)
        grads = _views(out, self.pcm.sizes)
        count = len(p)
        both = torch.cat([p, r])  # Adjoints of h_i, and below them the adjoints of its tangent.
        for i in reversed(range(len(self.slopes))):
            delta, delta_t = both[:count], both[count:]
            delta.mul_(self.slopes[i]).addcmul_(pre_tangents[i].mul_(delta_t), self._second_derivative(i))
            delta_t.mul_(self.slopes[i])
            torch.mm(delta.mT, self.h[i], out=grads[i][0]).addmm_(delta_t.mT, tangents[i])
            torch.sum(delta, 0, out=grads[i][1])
            if i:
                both = both @ self.pcm.layers[i][0]
        return out

    def _second_derivative(self, i: int) -> Tensor:
        """Return the second derivative of activation i at a_i."""
        if i == len(self.slopes) - 1:
            return self.slopes[i] * (1.0 - 2.0 * self.h[-1])
        return self.slopes[i].mul(2.0).sub_(self.h[i + 1]).mul_(1.0 - self.sigmas[i])


@dataclass(frozen=True, eq=False)
class Adam:
    """State of the Adam optimiser between two steps.

    Examples:
        >>> weights = torch.ones(2, dtype=torch.float64)
        >>> adam = Adam.initial(weights)
        >>> adam = adam.step(weights, torch.tensor([1.0, -1.0], dtype=torch.float64), rate=0.1)
        >>> adam.steps, weights.round(decimals=4).tolist()
        (1, [0.9, 1.1])
    """

    steps: int
    """Number of steps so far."""
    first: Tensor
    """Running mean of the gradient, flat."""
    second: Tensor
    """Running mean of its square, flat."""

    @classmethod
    def initial(cls, weights: Tensor) -> Adam:
        """Return the state before the first step."""
        return cls(0, torch.zeros_like(weights), torch.zeros_like(weights))

    def copy(self) -> Adam:
        """Return a copy, which `step` may overwrite without changing this state."""
        return Adam(self.steps, self.first.clone(), self.second.clone())

    def step(self, weights: Tensor, gradient: Tensor, rate: float) -> Adam:
        """Make one step with this learning rate and return the new state; weights, gradient and this state are overwritten."""
        steps = self.steps + 1
        beta_1, beta_2 = TUNING.beta_1, TUNING.beta_2
        first = self.first.lerp_(gradient, 1.0 - beta_1)
        second = self.second.mul_(beta_2).addcmul_(gradient, gradient, value=1.0 - beta_2)
        scale = torch.sqrt(second, out=gradient).mul_(1.0 / math.sqrt(1.0 - beta_2**steps)).add_(TUNING.epsilon)
        weights.addcdiv_(first, scale, value=-rate / (1.0 - beta_1**steps))
        return Adam(steps, first, second)


def _views(flat: Tensor, sizes: Sequence[int]) -> tuple[tuple[Tensor, Tensor], ...]:
    views = []
    start = 0
    for width, height in itertools.pairwise(sizes):
        middle, end = start + width * height, start + width * height + height
        views.append((flat[start:middle].view(height, width), flat[middle:end]))
        start = end
    return tuple(views)
