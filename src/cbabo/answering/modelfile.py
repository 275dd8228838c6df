"""A model in one file: tensors with a JSON header (safetensors), never pickle."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.domain.problem import Problem
from cbabo.errors import InputError, ModelError, SurrogateError
from cbabo.methods.settings import Settings
from cbabo.network.pcm import PCM
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.checksum import checksum
from cbabo.numerics.threads import one_thread
from cbabo.numerics.versions import versions
from cbabo.solver.library import Library
from cbabo.surrogate import Forms, Surrogates, Warp
from cbabo.surrogate.failures import fit_failure_model
from cbabo.surrogate.posterior import Posterior, training_evaluations

FORMAT = 2
_KEY = "cbabo"


def write_model(
    path: Path,
    problem: Problem,
    settings: Settings,
    seed: int,
    evaluations: Evaluations,
    posterior: Posterior,
    network: PCM | None,
    library: Library | None,
) -> None:
    """Write the parts of a model."""
    arrays, meta = posterior.surrogates.to_arrays()
    tensors = {f"surrogates.{name}": torch.from_numpy(array) for name, array in arrays.items()}
    if posterior.warp is not None:
        tensors |= {f"warp.{f.name}": getattr(posterior.warp, f.name) for f in fields(Warp)}
    if library is not None:
        parts = {f.name: np.ascontiguousarray(getattr(library, f.name)) for f in fields(Library)}
        tensors |= {f"library.{name}": torch.from_numpy(array) for name, array in parts.items()}
    if network is not None:
        tensors["pcm.weights"] = network.weights.contiguous()
    header = {
        "format": FORMAT,
        "versions": versions(),
        "problem": problem.to_dict(),
        "problem_digest": problem.digest,
        "settings": settings.model_dump(),
        "seed": seed,
        "surrogates": meta,
        "pcm_sizes": None if network is None else network.sizes,
        "evaluations": [_plain(row) for row in evaluations],
    }
    sealed = {**header, "checksum": checksum(json.dumps(header), tensors)}
    content = save(tensors, metadata={_KEY: json.dumps(sealed)})
    try:
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            part.write_bytes(content)
            part.replace(path)  # an older model stays whole until the new one is
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: the model cannot be written ({error}); choose another place") from error


def read_model(path: Path) -> dict[str, Any]:
    """Read the parts of a model: problem, settings, seed, evaluations, posterior, network, library."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror}); check the path") from error
    try:
        tensors = load(content)
        header_size = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + header_size]).get("__metadata__", {})
    except (SafetensorError, LookupError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: the file is damaged or not a model ({error}); save the model again") from error
    if _KEY not in metadata:
        raise ModelError(f"{path}: this file holds tensors of something else, not a model of cbabo; check the path")
    try:
        header = json.loads(metadata[_KEY])
        known = header["format"]
        if not isinstance(known, int):
            raise TypeError(f"format {known!r}")
        if known == FORMAT:
            if header.pop("checksum") != checksum(json.dumps(header), tensors):
                raise ValueError("another checksum")
            with one_thread():  # as in the fit: the same to the last bit
                return _parts(header, tensors)
    except (AttributeError, LookupError, TypeError, ValueError, SurrogateError) as error:
        raise ModelError(f"{path}: the file is damaged ({error}); save the model again") from error
    if known < FORMAT:
        raise ModelError(
            f"{path}: this model was written by an older version of cbabo (format {known}, this one reads {FORMAT}); "
            "save it again from its study"
        )
    raise ModelError(
        f"{path}: this model was written by a newer version of cbabo (format {known}, this one knows {FORMAT}); "
        "install the newer version"
    )


def _parts(header: dict[str, Any], tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
    problem = Problem.from_dict(header["problem"])
    if problem.digest != header["problem_digest"]:
        raise ValueError("the problem's digest differs")
    evaluations = Evaluations(problem, tuple(_evaluation(row) for row in header["evaluations"]))
    surrogates = Surrogates.from_arrays(_arrays(tensors, "surrogates."), header["surrogates"])
    warp = {n: torch.from_numpy(a) for n, a in _arrays(tensors, "warp.").items()}
    h = surrogates.hyperparameters
    forms = (
        Forms(Warp(**warp), h.family, h.stretch) if warp and h.family is not None and h.stretch is not None else None
    )
    settings = Settings(**header["settings"])
    failure_model = None if forms is None else fit_failure_model(evaluations)
    return {
        "problem": problem,
        "settings": settings,
        "seed": header["seed"],
        "evaluations": evaluations,
        "posterior": Posterior(
            problem, training_evaluations(evaluations, settings), surrogates, forms, failure_model=failure_model
        ),
        "network": _network(problem, header["pcm_sizes"], tensors),
        "library": _library(problem, tensors),
    }


def _arrays(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, FloatArray]:
    """Return the arrays whose names begin so."""
    return {n.removeprefix(prefix): np.asarray(t.numpy()) for n, t in tensors.items() if n.startswith(prefix)}


def _library(problem: Problem, tensors: dict[str, torch.Tensor]) -> Library | None:
    arrays = _arrays(tensors, "library.")
    if not arrays:
        return None
    library = Library(**arrays)
    if not library.fits(len(problem.box.names), problem.space.dimension):
        raise ValueError(f"a library of {[a.shape for a in arrays.values()]} does not fit the problem")
    return library


def _network(problem: Problem, stated: list[int] | None, tensors: dict[str, torch.Tensor]) -> PCM | None:
    if stated is None:
        return None
    sizes, weights = tuple(stated), tensors["pcm.weights"]
    expected = sum((a + 1) * b for a, b in itertools.pairwise(sizes))
    if weights.shape != (expected,) or (sizes[0], sizes[-1]) != (len(problem.box.names), problem.space.dimension):
        raise ValueError(f"a network of {weights.numel()} weights does not have the layers {sizes}")
    return PCM(sizes, weights)


def _plain(row: Evaluation) -> dict[str, Any]:
    plain = asdict(row)
    plain["started"] = None if row.started is None else row.started.isoformat()
    return plain


def _evaluation(plain: dict[str, Any]) -> Evaluation:
    started = plain.pop("started")
    return Evaluation(**plain, started=None if started is None else datetime.fromisoformat(started))
