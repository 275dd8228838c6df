"""What is carried from one iteration to the next: exact as bytes, and refused when it is not sound."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
import torch
from safetensors.torch import save

from cbabo.errors import StorageError
from cbabo.methods.learner import Learner
from cbabo.methods.training import Trainee
from cbabo.network.pcm import PCM, Adam
from cbabo.numerics.codec import pack, unpack
from cbabo.surrogate import Hyperparameters
from cbabo.surrogate.posterior import FitState


def a_learner(whole: bool = True) -> Learner:
    """A learner as after a fit; without what a fit may leave out, if not whole."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    pcm = PCM.initial((2, 7, 5, 3), 1)
    trainee = Trainee(pcm, Adam(150, random(len(pcm.weights)), random(len(pcm.weights)).square() * 1e-300))
    fit = Hyperparameters(random(4, 3).exp(), random(4).exp(), random(4), explored=40)
    if whole:
        fit = replace(fit, curvature=random(4, 4, 4).mT, value=random(4))
    return Learner(4, 6300, trainee, FitState(fit))


def same(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """Equal to the last bit, or both absent."""
    if a is None or b is None:
        return a is b
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and a.contiguous().numpy().tobytes() == b.contiguous().numpy().tobytes()
    )


@pytest.mark.parametrize("whole", [True, False])
def test_bytes_there_and_back_are_exact(whole: bool) -> None:
    before = a_learner(whole)
    after = Learner.from_bytes(before.to_bytes())
    assert (after.iteration, after.sobol_position) == (4, 6300)
    assert before.trainee is not None
    assert after.trainee is not None
    assert after.trainee.pcm.sizes == (2, 7, 5, 3)
    assert after.trainee.adam.steps == 150
    assert same(after.trainee.pcm.weights, before.trainee.pcm.weights)
    assert same(after.trainee.adam.first, before.trainee.adam.first)
    assert same(after.trainee.adam.second, before.trainee.adam.second)
    assert before.fit.hyperparameters is not None
    assert after.fit.hyperparameters is not None
    for name in (f.name for f in fields(Hyperparameters) if f.name != "explored"):
        assert same(getattr(after.fit.hyperparameters, name), getattr(before.fit.hyperparameters, name)), name
    assert after.fit.hyperparameters.explored == 40
    assert after.to_bytes() == before.to_bytes()


def test_a_learner_that_has_not_learned_yet() -> None:
    assert Learner.from_bytes(None).iteration == 0
    young = Learner.from_bytes(Learner(1).to_bytes())
    assert (young.iteration, young.sobol_position, young.trainee, young.fit.hyperparameters) == (1, 0, None, None)


def test_what_was_read_can_be_trained_further() -> None:
    trainee = Learner.from_bytes(a_learner().to_bytes()).trainee
    assert trainee is not None
    trainee.adam.step(trainee.pcm.weights, torch.ones_like(trainee.pcm.weights), 0.1)
    assert trainee.pcm.weights.isfinite().all()


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100, 0.5, -1])
def test_a_truncated_state_is_refused(size: float) -> None:
    content = a_learner().to_bytes()
    kept = content[: int(size * len(content))] if isinstance(size, float) else content[:size]
    with pytest.raises(StorageError, match=r"^the learner's state in the database is damaged; restore a copy .*$"):
        Learner.from_bytes(kept)


def test_a_flipped_bit_is_noticed_wherever_it_is() -> None:
    content = a_learner().to_bytes()
    for at in range(0, len(content), 97):
        broken = bytearray(content)
        broken[at] ^= 4
        with pytest.raises(StorageError, match=r"^the learner's state .*$"):
            Learner.from_bytes(bytes(broken))


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"null", b"\x80\x04K\x01.", save({}), save({"meta": torch.zeros(3)}), b'{"iteration": 3}']
)
def test_what_is_no_state_at_all_is_refused(content: bytes) -> None:
    with pytest.raises(StorageError, match="damaged"):
        Learner.from_bytes(content)


@pytest.mark.parametrize("meta", [[], None, 3, {"iteration": 1}, {"format": 2}, {"format": 2, "checksum": ""}])
def test_a_strange_header_is_refused(meta: object) -> None:
    tensors = {"meta": torch.tensor(list(json.dumps(meta).encode()), dtype=torch.uint8)}
    with pytest.raises(StorageError, match="damaged"):
        Learner.from_bytes(save(tensors))


def test_a_newer_state_is_refused_by_its_format() -> None:
    plain, tensors = unpack(Learner(3).to_bytes())
    with pytest.raises(
        StorageError, match=r"^the learner's state has format 99, expected 4; use the version that wrote it$"
    ):
        Learner.from_bytes(pack({**plain, "format": 99}, tensors))


def test_a_state_of_the_last_format_keeps_its_place() -> None:
    """Its surrogates are fitted from scratch; the next batch is numbered as it would have been."""
    meta = {"format": 2, "iteration": 7, "sobol": 84, "formed": 30}
    content = save({"meta": torch.tensor(list(json.dumps(meta).encode()), dtype=torch.uint8)})
    learner = Learner.from_bytes(content)
    assert (learner.iteration, learner.sobol_position, learner.trainee) == (7, 84, None)
