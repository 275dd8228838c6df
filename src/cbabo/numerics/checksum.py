"""Telling a damaged file from a sound one: safetensors itself does not notice a flipped bit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from torch import Tensor


def checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return a digest of a text and of named tensors, whatever their order."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.numpy().data)
    return digest.hexdigest()
