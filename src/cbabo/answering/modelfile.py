"""A model in one file: tensors with a JSON header (safetensors), never pickle.

The header begins with a SHA-256 digest of everything else that the file says (`numerics.codec.pack`), which finds damage, not
forgery. What is read is then checked number by number (`modelcheck`). A file for others holds the evaluations without what only
the study needs: logs, reasons of failures, hosts and processes.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cbabo.answering.modelcheck import (
    MAX_BYTES,
    check_data,
    check_notes,
    check_seed,
    check_settings,
    check_tensors,
    read_evaluations,
)
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.problem import Problem
from cbabo.errors import InputError, ModelError, shown
from cbabo.methods.method import Fitted
from cbabo.methods.registry import method_for
from cbabo.methods.settings import DefaultSettings, PaperSettings, Settings
from cbabo.network.pcm import PCM
from cbabo.numerics.codec import decode, encode, pack, unpack
from cbabo.numerics.threads import one_thread
from cbabo.numerics.versions import versions
from cbabo.solver.library import Library
from cbabo.surrogate import Forms, Surrogates, Warp
from cbabo.surrogate.failures import FailureModel
from cbabo.surrogate.noise import Measurements
from cbabo.surrogate.posterior import Posterior

FORMAT = 4
_FAILED = "failed; the reason is in the study"


@dataclass(frozen=True, eq=False)
class _Parts:
    """What of a model is stored as tensors."""

    surrogates: Surrogates
    warp: Warp | None
    failure_model: FailureModel | None
    network: PCM | None
    library: Library | None
    kappa: Tensor | None
    exact: Tensor | None = field(metadata={"dtype": torch.int64})


def write_model(path: Path, fitted: Fitted) -> None:
    """Write a model, with the network or the library that answers."""
    try:
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        content = model_bytes(fitted, shared=True)
        try:
            part.write_bytes(content)
            part.replace(path)  # An older model stays whole until the new one is.
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: the model cannot be written ({error}); choose another place") from error


def model_bytes(fitted: Fitted, *, complete: bool = True, shared: bool = False) -> bytes:
    """Return a model as the content of a file.

    complete: compute what answers, if that was not done yet. shared: for people without the study; it says nothing of what
    simulators printed and where they ran.
    """
    answers_by_network = isinstance(fitted.settings, PaperSettings)
    network, library = fitted.network, fitted.library
    if "pcm" in vars(fitted) or (complete and answers_by_network):
        network = fitted.pcm
    if "fast_map" in vars(fitted) or (complete and not answers_by_network):
        library = fitted.fast_map.library
    posterior = fitted.posterior
    exact = None if posterior.exact is None else posterior.exact.long()
    parts = _Parts(
        posterior.surrogates, posterior.warp, posterior.failure_model, network, library, posterior.kappa, exact
    )
    plain, tensors = encode(parts)
    header: dict[str, Any] = {
        "format": FORMAT,
        "versions": versions(),
        "problem": fitted.problem.to_dict(),
        "problem_digest": fitted.problem.digest,
        "settings": fitted.settings.to_dict(),
        "seed": fitted.seed,
        "evaluations": [_plain(fitted.problem, _reduced(row) if shared else row) for row in fitted.evaluations],
        "parts": plain,
    }
    if fitted.notes:
        header["notes"] = list(fitted.notes)
    return pack(header, tensors)


def read_model(path: Path) -> dict[str, Any]:
    """Read what a model is made of: the arguments of `Fitted`."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: the file cannot be read (it is no regular file); check the path")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror}); check the path") from error
    if len(content) > MAX_BYTES:
        raise ModelError(f"{path}: expected a model of at most {MAX_BYTES:,} bytes, got more; check the path")
    return model_arguments(content, path)


def model_arguments(content: bytes, path: Path) -> dict[str, Any]:
    """Return what a model is made of from the content of a file; path: what messages call it."""
    try:
        header, tensors = unpack(content)
    except ValueError as error:
        raise ModelError(
            f"{path}: the file is damaged, not a model, or of an older version ({_reason(error)}); save the model again"
        ) from error
    try:
        known = header["format"]
        if not isinstance(known, int) or isinstance(known, bool):
            raise TypeError(f"format {shown(known)}")
        if known == FORMAT:
            with one_thread():  # As in the fit: the same to the last bit.
                return _arguments(header, tensors)
    except Exception as error:  # Whatever goes wrong with a file that somebody else wrote, it is the file's fault.
        raise ModelError(f"{path}: the file is damaged ({_reason(error)}); save the model again") from error
    if known < FORMAT:
        raise ModelError(
            f"{path}: this model was written by an older version of cbabo (format {shown(known)}, this one reads {FORMAT}); "
            "save it again from its study"
        )
    raise ModelError(
        f"{path}: this model was written by a newer version of cbabo (format {shown(known)}, this one knows {FORMAT}); "
        "install the newer version"
    )


def _arguments(header: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    problem = Problem.from_dict(header["problem"])
    if problem.digest != header["problem_digest"]:
        raise ValueError("the problem's digest differs")
    seed = check_seed(header["seed"])
    method = method_for(Settings.from_dict(header["settings"]))
    check_settings(method.settings)
    evaluations = read_evaluations(problem, header["evaluations"])
    measurements = Measurements.of(evaluations.informative) if isinstance(method.settings, DefaultSettings) else None
    measured = evaluations.complete if measurements is None else measurements.rows
    y = torch.from_numpy(measured.y) if measurements is None else measurements.y
    y = y[:, list(problem.learned)] if problem.derived else y
    check_tensors(problem, tensors)
    check_data(evaluations, measured, y, _warp(tensors), tensors)
    parts = decode(_Parts, header["parts"], tensors)
    _check_shapes(problem, parts)
    h = parts.surrogates.hyperparameters
    warped = parts.warp is not None and h.family is not None and h.stretch is not None
    forms = Forms(parts.warp, h.family, h.stretch) if warped else None  # type: ignore[arg-type]
    return {
        "problem": problem,
        "method": method,
        "seed": seed,
        "evaluations": evaluations,
        "posterior": Posterior(
            problem,
            measured,
            parts.surrogates,
            forms,
            failure_model=parts.failure_model,
            kappa=parts.kappa,
            exact=None if parts.exact is None else parts.exact.bool(),
            counts=None if measurements is None else measurements.count,
        ),
        "network": parts.network,
        "library": parts.library,
        "notes": check_notes(header.get("notes", [])),
    }


def _warp(tensors: dict[str, Any]) -> Warp | None:
    """Return the warp of the outputs, which the data were warped by before anything was fitted to them."""
    names = [f"warp.{part.name}" for part in fields(Warp)]
    return Warp(*(tensors[name] for name in names)) if names[0] in tensors else None


def _reason(error: Exception) -> str:
    """Say in a few words what was wrong."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."


def _check_shapes(problem: Problem, parts: _Parts) -> None:
    """Refuse parts that are not of this problem."""
    k, d, q = len(problem.box.names), problem.space.dimension, len(problem.learned)
    s, network, library = parts.surrogates, parts.network, parts.library
    if (s.x.shape[1], s.y.shape[1]) != (d, q):
        raise ValueError(f"surrogates of {tuple(s.x.shape)} and {tuple(s.y.shape)} do not fit the problem")
    if network is not None and (not network.is_complete or (network.sizes[0], network.sizes[-1]) != (k, d)):
        raise ValueError(f"a network of {network.weights.numel()} weights does not have the layers {network.sizes}")
    if library is not None and not library.fits(k, d):
        raise ValueError(f"a library of {tuple(library.theta.shape)} thresholds does not fit the problem")


def _reduced(row: Evaluation) -> Evaluation:
    """Return an evaluation without what its simulator printed and where it ran: paths, hosts, processes, tracebacks."""
    return replace(row, failure=None if row.failure is None else _FAILED, log="", worker=None)


def _plain(problem: Problem, row: Evaluation) -> dict[str, Any]:
    """Return an evaluation in plain values, without the limits of a refinement if the problem no longer has one of them."""
    plain = asdict(row)
    if not set(row.thresholds or ()) <= set(problem.box.names):
        plain["thresholds"] = None
    plain["started"] = None if row.started is None else row.started.isoformat()
    return plain
