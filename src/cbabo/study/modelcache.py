"""Fitted models kept beside their study, so that commands do not fit again what did not change.

A file holds a key, what is to be advised, and a model. The key is a digest of everything that a model depends on: the problem,
the settings, the seed, all evaluations, audits, the method's state, and the code that computes. A file with another key, or one
that is damaged, is not used and is written again. `Study.model` itself reads and fits, and never writes.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from cbabo.domain.convergence import Convergence
from cbabo.errors import ModelError
from cbabo.numerics.versions import versions

if TYPE_CHECKING:
    from cbabo.model import Model
    from cbabo.study.study import Study

_LOG = logging.getLogger(__name__)
_COMPUTING = (
    "errors.py",
    "model.py",
    "numerics",
    "domain",
    "surrogate",
    "solver",
    "network",
    "methods",
    "answering",
    "decisions",
)
"""Parts of the package whose code decides what a model is."""


_LENGTH = 8
"""Bytes that state the length of the advice."""


def cached_model(study: Study) -> Model:
    """Return the model of a study: the one that was kept, if it is of the same data and code, or else a new one, kept now."""
    file, key = _file(study), study_key(study)
    kept = None if file is None else _read(file, key)
    if kept is not None:
        return kept
    model = study.model()
    if file is not None:
        _write(file, key, model)
    return model


def keep_model(study: Study, model: Model) -> None:
    """Keep what a model has computed since it was made: solved thresholds and the network."""
    file = _file(study)
    solved = "fast_map" in vars(model) and model.library is None
    trained = "pcm" in vars(model) and model.network is None
    if file is not None and (solved or trained):
        _write(file, study_key(study), model)


def _write(file: Path, key: bytes, model: Model) -> None:
    """Write a key and a model; a place that cannot be written is left as it is."""
    from cbabo.answering.modelfile import model_bytes
    from cbabo.answering.quality import maxima_advice

    advice = json.dumps(maxima_advice(model)).encode("utf-8")
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(key + len(advice).to_bytes(_LENGTH, "big") + advice + model_bytes(model, complete=False))
        part.replace(file)
    except OSError as error:
        _LOG.debug("the model is not kept in %s: %s", file, error)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def kept_advice(study: Study) -> tuple[str, ...]:
    """Return what the kept model advises, if it is of the same data and code; nothing is fitted, and torch is not imported."""
    file = _file(study)
    try:
        if file is None or not file.exists():
            return ()
        with file.open("rb") as content:
            key = study_key(study)
            if content.read(len(key)) != key:
                return ()
            found = json.loads(content.read(int.from_bytes(content.read(_LENGTH), "big")))
            return tuple(map(str, found)) if isinstance(found, list) else ()
    except (OSError, ValueError) as error:
        _LOG.debug("the advice kept in %s is not used: %s", file, error)
        return ()


def keep_convergence(study: Study, found: Convergence) -> None:
    """Keep how far the answers of a study move, beside its model."""
    file = _convergence_file(study)
    if file is not None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"key": study_key(study).hex(), "convergence": asdict(found)}), encoding="utf-8")
        except OSError as error:
            _LOG.debug("the convergence is not kept in %s: %s", file, error)


def kept_convergence(study: Study) -> Convergence | None:
    """Return how far the answers of a study move, if it was kept for the same data and code; torch is not imported."""
    file = _convergence_file(study)
    try:
        if file is None or not file.exists():
            return None
        stated = json.loads(file.read_text(encoding="utf-8"))
        return Convergence(**stated["convergence"]) if stated["key"] == study_key(study).hex() else None
    except (OSError, ValueError, TypeError, LookupError) as error:
        _LOG.debug("the convergence kept in %s is not used: %s", file, error)
        return None


def _convergence_file(study: Study) -> Path | None:
    file = _file(study)
    return None if file is None else file.with_name(f"{file.name}.convergence")


def study_key(study: Study) -> bytes:
    """Return the digest of everything that a study's model depends on."""
    rows = [asdict(row) for row in study.evaluations]
    stated = {
        "problem": study.problem.to_dict(),
        "settings": study.settings.to_dict(),
        "seed": study.seed,
        "evaluations": rows,
        "audits": [audit.number for audit in study.audits],
        "code": _code(),
        "versions": versions(),
    }
    digest = hashlib.sha256(json.dumps(stated, sort_keys=True, default=str).encode())
    digest.update(study.learner_state or b"")
    return digest.digest()


def _read(file: Path, key: bytes) -> Model | None:
    from cbabo.answering.modelfile import model_arguments
    from cbabo.model import Model

    try:
        content = file.read_bytes()
        if content[: len(key)] != key:
            return None
        begin = len(key) + _LENGTH
        begin += int.from_bytes(content[len(key) : begin], "big")
        return Model(**model_arguments(content[begin:], file))
    except (OSError, ModelError) as error:
        _LOG.debug("the model kept in %s is not used: %s", file, error)
        return None


def _file(study: Study) -> Path | None:
    """Return where a study's model is kept: beside its SQLite file, or in the user's cache folder; None for one in memory."""
    name = hashlib.sha256(study.name.encode()).hexdigest()[:8]
    place = study.storage_file
    if place is not None:
        return place.with_name(f"{place.name}.model-{name}")
    if not study.is_shared:
        return None
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    where = hashlib.sha256(f"{study.storage_label}::{study.name}".encode()).hexdigest()[:16]
    return folder / "cbabo" / f"{where}.model"


@cache
def _code() -> str:
    """Return a digest of the code that decides what a model is."""
    digest = hashlib.sha256()
    root = Path(str(resources.files("cbabo")))
    for part in _COMPUTING:
        path = root / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()
