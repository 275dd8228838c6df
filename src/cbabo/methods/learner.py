"""What the method carries from one iteration to the next, as bytes: no pickle, and the same to the last bit."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from cbabo.errors import StorageError, shown
from cbabo.methods.training import Trainee
from cbabo.network.pcm import PCM, Adam
from cbabo.numerics.codec import checksum
from cbabo.surrogate import Hyperparameters, Warp
from cbabo.surrogate.posterior import FitState
from cbabo.surrogate.prequential import PrequentialErrors

_FORMAT = 2
_FIT = "fit."
_WARP = "warp."
_PREQUENTIAL = "prequential."


@dataclass(frozen=True, eq=False)
class Learner:
    """The state after an iteration."""

    iteration: int
    """Batches proposed so far, the initial design included."""
    sobol_position: int = 0
    """Points drawn from the Sobol sequence of thresholds so far."""
    trainee: Trainee | None = None
    """The network and its optimiser; None before the first training."""
    fit: FitState = field(default_factory=FitState)
    """What the next fit of the surrogates starts from."""

    def to_bytes(self) -> bytes:
        """Write the state down."""
        tensors: dict[str, Tensor] = {}
        meta: dict[str, object] = {"format": _FORMAT, "iteration": self.iteration, "sobol": self.sobol_position}
        meta["formed"] = self.fit.formed
        if self.trainee is not None:
            pcm, adam = self.trainee.pcm, self.trainee.adam
            tensors |= {"weights": pcm.weights, "first": adam.first, "second": adam.second}
            meta |= {"sizes": pcm.sizes, "adam": adam.steps}
        if self.fit.hyperparameters is not None:
            parts = {f.name: getattr(self.fit.hyperparameters, f.name) for f in fields(self.fit.hyperparameters)}
            tensors |= {_FIT + name: part for name, part in parts.items() if isinstance(part, Tensor)}
            meta["fit"] = {name: part for name, part in parts.items() if not isinstance(part, Tensor)}
        if self.fit.warp is not None:
            tensors |= {_WARP + f.name: getattr(self.fit.warp, f.name) for f in fields(Warp)}
        if self.fit.prequential is not None:
            tensors |= {_PREQUENTIAL + f.name: getattr(self.fit.prequential, f.name) for f in fields(PrequentialErrors)}
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
        has_warp = any(n.startswith(_WARP) for n in tensors)
        if "weights" in tensors:
            pcm = PCM(tuple(meta["sizes"]), tensors["weights"])
            trainee = Trainee(pcm, Adam(meta["adam"], tensors["first"], tensors["second"]))
        if "fit" in meta:
            parts: dict[str, Any] = {n.removeprefix(_FIT): t for n, t in tensors.items() if n.startswith(_FIT)}
            hyperparameters = Hyperparameters(**parts, **meta["fit"])
        warp = (
            Warp(**{n.removeprefix(_WARP): t for n, t in tensors.items() if n.startswith(_WARP)}) if has_warp else None
        )
        said = {n.removeprefix(_PREQUENTIAL): t for n, t in tensors.items() if n.startswith(_PREQUENTIAL)}
        prequential = PrequentialErrors(**said) if said else None
        state = FitState(hyperparameters, warp, meta["formed"], prequential)
        return cls(meta["iteration"], meta["sobol"], trainee, state)
