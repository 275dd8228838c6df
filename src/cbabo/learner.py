"""What the method carries from one iteration to the next, as bytes: no pickle, and the same to the last bit."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from cbabo.checksum import checksum
from cbabo.errors import StorageError, shown
from cbabo.pcm import PCM, Adam
from cbabo.surrogate import Hyperparameters
from cbabo.training import Trainee

_FORMAT = 1
_FIT = "fit."


@dataclass(frozen=True, eq=False)
class Learner:
    """The state after an iteration."""

    iteration: int
    """Batches proposed so far, the initial design included."""
    sobol_position: int = 0
    """Points drawn from the Sobol sequence of thresholds so far."""
    trainee: Trainee | None = None
    """The network and its optimiser; None before the first training."""
    hyperparameters: Hyperparameters | None = None
    """Where the next fit of the surrogates starts."""

    def to_bytes(self) -> bytes:
        """Write the state down."""
        tensors: dict[str, Tensor] = {}
        meta: dict[str, object] = {"format": _FORMAT, "iteration": self.iteration, "sobol": self.sobol_position}
        if self.trainee is not None:
            pcm, adam = self.trainee.pcm, self.trainee.adam
            tensors |= {"weights": pcm.weights, "first": adam.first, "second": adam.second}
            meta |= {"sizes": pcm.sizes, "adam": adam.steps}
        if self.hyperparameters is not None:
            parts = {f.name: getattr(self.hyperparameters, f.name) for f in fields(self.hyperparameters)}
            tensors |= {_FIT + name: part for name, part in parts.items() if isinstance(part, Tensor)}
            meta["fit"] = {name: part for name, part in parts.items() if not isinstance(part, Tensor)}
        text = json.dumps({**meta, "checksum": checksum(json.dumps(meta), tensors)})
        tensors["meta"] = torch.tensor(list(text.encode()), dtype=torch.uint8)
        content: bytes = save({name: tensor.contiguous() for name, tensor in tensors.items()})
        return content

    @classmethod
    def from_bytes(cls, content: bytes | None) -> Learner:
        """Read a state; None is the state before everything."""
        if content is None:
            return cls(0)
        try:
            tensors = load(content)
            meta = json.loads(bytes(tensors.pop("meta").tolist()))
            if meta["format"] == _FORMAT:
                return cls._sound(meta, tensors)
        except (SafetensorError, LookupError, TypeError, ValueError) as error:
            raise StorageError(
                "the learner's state in the database is damaged; restore a copy of the database"
            ) from error
        raise StorageError(
            f"the learner's state has format {shown(meta['format'])}, expected {_FORMAT}; use the version that wrote it"
        )

    @classmethod
    def _sound(cls, meta: dict[str, Any], tensors: dict[str, Tensor]) -> Learner:
        if meta.pop("checksum") != checksum(json.dumps(meta), tensors):
            raise ValueError("another checksum")
        trainee = hyperparameters = None
        if "weights" in tensors:
            pcm = PCM(tuple(meta["sizes"]), tensors["weights"])
            trainee = Trainee(pcm, Adam(meta["adam"], tensors["first"], tensors["second"]))
        if "fit" in meta:
            parts: dict[str, Any] = {n.removeprefix(_FIT): t for n, t in tensors.items() if n.startswith(_FIT)}
            hyperparameters = Hyperparameters(**parts, **meta["fit"])
        return cls(meta["iteration"], meta["sobol"], trainee, hyperparameters)
