"""What a method carries from one iteration to the next, as bytes: no pickle, and the same to the last bit."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from safetensors import SafetensorError
from safetensors.torch import load

from cbabo.errors import StorageError, shown
from cbabo.methods.effort import Effort
from cbabo.methods.training import Trainee
from cbabo.numerics.codec import decode, encode, pack, unpack
from cbabo.surrogate.posterior import FitState

_FORMAT = 4
_WITHOUT_EFFORT = 3
"""The format before effort was part of it."""


@dataclass(frozen=True, eq=False)
class Learner:
    """The state after an iteration."""

    iteration: int
    """Batches proposed so far, the initial design included."""
    sobol_position: int = 0
    """Points drawn from the Sobol sequence of thresholds so far."""
    trainee: Trainee | None = None
    """The network and its optimiser; None before the first training, and under the default method."""
    fit: FitState = field(default_factory=FitState)
    """What the next fit of the surrogates starts from."""
    effort: Effort = field(default_factory=Effort)
    """How much effort the next batch is worth."""

    def to_bytes(self) -> bytes:
        """Write the state down."""
        plain, tensors = encode(self)
        return pack({"format": _FORMAT, "learner": plain}, tensors)

    @classmethod
    def from_bytes(cls, content: bytes | None) -> Learner:
        """Read a state; None is the state before everything."""
        if content is None:
            return cls(0)
        try:
            plain, tensors = unpack(content)
            known = plain["format"]
            if known == _WITHOUT_EFFORT:
                return decode(cls, {**plain["learner"], "effort": encode(Effort())[0]}, tensors)
            if known == _FORMAT:
                return decode(cls, plain["learner"], tensors)
        except (LookupError, TypeError, ValueError) as error:
            older = _before_codec(content)
            if older is not None:
                return older
            raise StorageError(
                "the learner's state in the database is damaged; restore a copy of the database"
            ) from error
        raise StorageError(
            f"the learner's state has format {shown(known)}, expected {_FORMAT}; use the version that wrote it"
        )


def _before_codec(content: bytes) -> Learner | None:
    """Read the position of a state of format 2, whose surrogates are then fitted from scratch; None if it is none."""
    try:
        meta = json.loads(bytes(load(content)["meta"].tolist()))
        return Learner(int(meta["iteration"]), int(meta["sobol"])) if meta["format"] == 2 else None
    except (SafetensorError, LookupError, TypeError, ValueError):
        return None
