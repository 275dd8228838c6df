"""Outputs that share their kernel: one covariance matrix and one Cholesky factor for all parts of an output.

Symbols and shapes
    q, g    outputs, and groups of outputs with the same lengthscales, noise variance, kernel family and stretch
    P       outputs of the largest group
    t       q x n    something of each output; as columns g x n x P, with zeros where a group has fewer outputs than P

What costs n^2 or more is done once for each group; each output has its own constant, amplitude and weights. Where nothing is
shared, g = q and P = 1.

Parts of an output that depend on different variables need different lengthscales, or each of them is learned as slowly as if it
depended on all variables. So the parts of one output may form several groups, by the relevance of the variables for each part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class SharingTuning:
    """Numbers that decide which parts of an output share a kernel."""

    most: int = 6
    """Groups of the parts of one output at most: with these, 36 parts cost less than twice as much as one output."""
    apart: float = 0.3
    """Distance between the relevances of two parts, as directions, from which on they do not share a kernel."""


TUNING = SharingTuning()


@dataclass(frozen=True, eq=False)
class Sharing:
    """Which outputs share a kernel.

    Examples:
        >>> sharing = Sharing.of(torch.tensor([0, 1, 1]))
        >>> sharing.groups, sharing.size, sharing.first.tolist(), sharing.slot.tolist()
        (2, 2, [0, 1], [0, 0, 1])
        >>> t = torch.tensor([[1.0], [2.0], [3.0]])
        >>> sharing.columns(t).tolist()
        [[[1.0, 0.0]], [[2.0, 3.0]]]
        >>> sharing.outputs(sharing.columns(t)).equal(t)
        True
    """

    group: Tensor
    """q, the group of each output; groups are numbered by their first output."""
    first: Tensor
    """g, the first output of each group."""
    slot: Tensor
    """q, the position of each output in its group."""
    size: int
    """P."""

    @classmethod
    def of(cls, labels: Tensor) -> Sharing:
        """Return the groups of outputs that have the same label (q, any integers)."""
        numbers: dict[int, int] = {}
        counts: list[int] = []
        group, slot, first = [], [], []
        for j, label in enumerate(labels.tolist()):
            g = numbers.setdefault(label, len(numbers))
            if g == len(counts):
                counts.append(0)
                first.append(j)
            group.append(g)
            slot.append(counts[g])
            counts[g] += 1
        return cls(torch.tensor(group), torch.tensor(first), torch.tensor(slot), max(counts, default=1))

    @classmethod
    def of_rows(cls, *parts: Tensor | None) -> Sharing:
        """Return the groups of outputs for which all tensors (q or q x d; None counts as equal) have the same values."""
        columns = [t.reshape(len(t), -1).double() for t in parts if t is not None]
        return cls.of(torch.unique(torch.cat(columns, dim=1), dim=0, return_inverse=True)[1])

    @property
    def groups(self) -> int:
        """The number of groups g."""
        return len(self.first)

    @property
    def is_trivial(self) -> bool:
        """Whether no output shares its kernel."""
        return self.size == 1

    @cached_property
    def members(self) -> Tensor | None:
        """g, the number of outputs in each group; None if it is 1 everywhere."""
        return None if self.is_trivial else torch.bincount(self.group, minlength=self.groups).double()

    @cached_property
    def filled(self) -> Tensor | None:
        """g x P, 1 where there is an output and 0 elsewhere; None if no output shares its kernel."""
        if self.is_trivial:
            return None
        mask = torch.zeros(self.groups, self.size, dtype=torch.float64)
        mask[self.group, self.slot] = 1.0
        return mask

    def columns(self, t: Tensor) -> Tensor:
        """Arrange t (q x n) as columns of each group, g x n x P."""
        if self.is_trivial:
            return t.unsqueeze(-1)
        found = t.new_zeros(self.groups, t.shape[1], self.size)
        found[self.group, :, self.slot] = t
        return found

    def outputs(self, columns: Tensor) -> Tensor:
        """Arrange columns of each group (g x n x P) by output, q x n; further dimensions are kept."""
        return columns.select(2, 0) if self.is_trivial else columns[self.group, :, self.slot]

    def each(self, t: Tensor) -> Tensor:
        """Repeat something of each group (g x ...) for its outputs, q x ...."""
        return t if self.is_trivial else t[self.group]

    def once(self, t: Tensor) -> Tensor:
        """Take something that the outputs of a group share (q x ...) once, g x ...."""
        return t if self.is_trivial else t[self.first]


def split_by_relevance(group: Tensor, relevance: Tensor) -> Tensor:
    """Split groups (q labels) whose outputs depend on different variables; return the label of each output's new group (q).

    relevance: q x d, how much each output depends on each variable, not negative. Groups begin with the output that is farthest
    from those that began one; every output joins the nearest.

    Examples:
        >>> relevance = torch.tensor([[1.0, 1.0], [5.0, 0.0], [0.0, 1.0], [2.0, 0.1]])
        >>> split_by_relevance(torch.tensor([0, 1, 1, 1]), relevance).tolist()
        [0, 1, 2, 1]
    """
    direction = relevance / relevance.norm(dim=1, keepdim=True).clamp_min(1e-300)
    found = group.clone()
    for label in group.unique():
        mine = (group == label).nonzero().squeeze(-1)
        centres = [0]
        distance = torch.cdist(direction[mine], direction[mine])
        while len(centres) < TUNING.most:
            nearest = distance[:, centres].amin(1)
            farthest = int(nearest.argmax())
            if float(nearest[farthest]) <= TUNING.apart:
                break
            centres.append(farthest)
        found[mine] = mine[torch.tensor(centres)][distance[:, centres].argmin(1)]
    return found
