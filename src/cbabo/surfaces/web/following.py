"""Live view of a study: its evaluations as they arrive, and a model that is refitted in the background."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from cbabo.domain.convergence import Convergence
from cbabo.domain.evaluations import Evaluations
from cbabo.errors import CbaboError, ModelError
from cbabo.evaluators.function import describe
from cbabo.model import Model
from cbabo.study.modelcache import cached_model, keep_model, kept_convergence
from cbabo.study.study import Study
from cbabo.surfaces.document import document, empty_document
from cbabo.surfaces.records import audit_text
from cbabo.surfaces.web.turns import Turns

_LOG = logging.getLogger(__name__)
_LOOK = 0.5  # Least number of seconds between two readings of the database.
_SHARE = 4.0  # The server rests this many times as long as it reads or fits.


@dataclass(frozen=True, eq=False)
class Reading:
    """A model and its document at one moment."""

    revision: str
    """A digest of the document: another one means that the page has something to fetch."""
    evaluations: Evaluations
    """The evaluations that it was fitted to."""
    model: Model | None
    problem: str | None
    """Why there is no model."""
    document: bytes
    convergence: Convergence | None
    """How far the answers still move, if the last run has estimated it."""


class Follower:
    """Reads a study on request, at a limited rate."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._guard = threading.Lock()
        self.turns = Turns()
        """The model computes for one request at a time."""
        self._rows, self._next_look = study.evaluations, 0.0
        self._learner: threading.Thread | None = None
        self._next_learning = 0.0
        self._is_run = self._run_has_ended = False
        self.reading = self._read(self._rows)

    @property
    def learning(self) -> bool:
        """Whether a newer model is being made."""
        return self._learner is not None and self._learner.is_alive()

    def evaluations(self) -> Evaluations:
        """Return the study's evaluations as of half a second ago or later; a newer model is begun where they are new."""
        with self._guard:
            now = time.monotonic()
            if now >= self._next_look:
                self._rows = self.study.evaluations
                took = time.monotonic() - now
                self._next_look = now + took + max(_LOOK, _SHARE * took)
                self._look_for_convergence()
                self._look_for_the_end()
            due = self._run_has_ended or now >= self._next_learning
            if self._rows != self.reading.evaluations and not self.learning and due:
                self._run_has_ended = False
                self._learner = threading.Thread(target=self._learn, args=(self._rows,), daemon=True)
                self._learner.start()
            return self._rows

    def _look_for_convergence(self) -> None:
        """Read how far the answers still move, which a run estimates at its end, after the last model was made."""
        reading = self.reading
        if reading.convergence is None and reading.model is not None and self._rows == reading.evaluations:
            self.reading = replace(reading, convergence=kept_convergence(self.study))

    def _look_for_the_end(self) -> None:
        """Do not rest before the model of a run that has ended: it is the last one for now."""
        was, self._is_run = self._is_run, self.study.optimiser is not None
        self._run_has_ended = self._run_has_ended or (was and not self._is_run)

    def forget(self) -> None:
        """Read the study again on the next request, because this server has changed it."""
        with self._guard:
            self._next_look = self._next_learning = 0.0

    def latest(self) -> Model:
        """Return the latest model, to be used in a turn only; ModelError if there is none yet."""
        model, problem = self.reading.model, self.reading.problem
        if model is None:
            raise ModelError(problem or "there is no model yet; run more evaluations first")
        return model

    @contextmanager
    def model(self, *, heavy: bool = False) -> Iterator[Model]:
        """Lend the latest model for one turn."""
        model = self.latest()
        with self.turns.turn(heavy=heavy):
            yield model

    def _learn(self, rows: Evaluations) -> None:
        begun = time.monotonic()
        try:
            reading = self._read(rows)
        except Exception as error:
            _LOG.error("no model could be made of the newer evaluations: %s", describe(error))
            self._next_learning = time.monotonic() + 60.0
            return
        self.reading = reading
        now = time.monotonic()
        self._next_learning = now + _SHARE * (now - begun)

    def _read(self, rows: Evaluations) -> Reading:
        study = self.study
        try:
            model = cached_model(study)
        except CbaboError as error:
            empty = empty_document(study.problem, study.name, study.seed, rows.rows)
            return _reading(rows, None, str(error), empty, None)
        moves = kept_convergence(study)
        reading = _reading(rows, model, None, document(model, study.name, moves, audit_text(study)), moves)
        keep_model(study, model)
        return reading


def _reading(
    rows: Evaluations, model: Model | None, problem: str | None, content: dict[str, Any], moves: Convergence | None
) -> Reading:
    revision = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    body = json.dumps({**content, "revision": revision}, allow_nan=False, separators=(",", ":")).encode("ascii")
    return Reading(revision, rows, model, problem, body, moves)
