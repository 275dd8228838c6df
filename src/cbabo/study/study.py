"""A study: one problem's evaluations and settings. The only object with state, and all of it is in the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from cbabo.domain.constraints import ThresholdsLike
from cbabo.domain.evaluations import Evaluation, Evaluations, Trial
from cbabo.domain.focus import Focus
from cbabo.domain.parts import Reading, whole_name
from cbabo.domain.problem import Problem
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.errors import InputError, StudyError, shown
from cbabo.evaluators.execution import Execution
from cbabo.evaluators.function import Evaluate
from cbabo.evaluators.outputs import check_objective, missing, not_finite, output_reading
from cbabo.methods.settings import MethodSettings, Settings
from cbabo.storage.database import Database
from cbabo.storage.rows import Damage
from cbabo.storage.store import StudyStore
from cbabo.study.importing import ImportReport, check_rows
from cbabo.study.runner import Run
from cbabo.study.trials import Trials

if TYPE_CHECKING:
    from cbabo.answering.answers import Answer
    from cbabo.model import Model


class Study:
    """Ask for designs, tell what they measured; or let `run` do both.

    Examples:
        >>> from cbabo import Constraint, Objective, Problem, Real, Study
        >>> problem = Problem("bar", [Real("width", 1, 3)], Objective("mass"), [Constraint("stress", low=1, high=9)])
        >>> study = Study.create(problem, storage="sqlite://", seed=0)
        >>> trial = study.ask()[0]
        >>> study.tell(trial.id, {"mass": 2.0 * trial.point["width"], "stress": 9.0 / trial.point["width"] ** 2})
        >>> study.evaluations.to_frame()["state"].tolist()
        ['complete']
    """

    def __init__(self, store: StudyStore) -> None:
        self._store = store
        self._trials = Trials(store)

    @classmethod
    def create(
        cls,
        problem: Problem,
        storage: str,
        name: str | None = None,
        seed: int = 0,
        settings: MethodSettings | None = None,
        focus: ThresholdsLike | None = None,
        exist_ok: bool = True,
    ) -> Study:
        """Create a study, or open it if it exists with the same problem, seed and settings.

        focus: as `focus` takes it; None leaves what is stored, an empty list clears it.
        """
        if not isinstance(problem, Problem):
            raise InputError(f"problem: expected a Problem, got {type(problem).__name__}; Problem.from_file reads one")
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise InputError(f"seed: expected a whole number from 0 on, got {seed!r}")
        name = problem.name if name is None else name
        if not isinstance(name, str) or not name.strip() or len(name) > 255 or "::" in name:
            raise InputError(f"study: the name must be a text of 1 to 255 characters without '::', got {name!r}")
        settings = Settings.default() if settings is None else settings
        wanted = _focus(problem, focus)
        store, new = StudyStore.create(Database.create(storage), name, problem, seed, settings)
        study = cls(store)
        if not new:
            study._refuse_difference(problem, seed, settings, exist_ok)
        if focus is not None and store.focus() != wanted:
            store.set_focus(wanted)
        return study

    @classmethod
    def open(cls, storage: str, name: str) -> Study:
        """Open a study that exists."""
        return cls(StudyStore.open(Database.open(storage), name))

    @property
    def name(self) -> str:
        """The study's name, unique in its database."""
        return self._store.record.name

    @property
    def problem(self) -> Problem:
        """The problem it was created for."""
        return self._store.record.problem

    @property
    def seed(self) -> int:
        """The seed that every random decision comes from."""
        return self._store.record.seed

    @property
    def settings(self) -> MethodSettings:
        """The settings it was created with."""
        return self._store.record.settings

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of this package and of what it computes with, when the study was created."""
        return self._store.record.versions

    @property
    def storage_file(self) -> Path | None:
        """The SQLite file that holds the study; None for other databases, and for one in memory."""
        return self._store.database.file

    @property
    def storage_label(self) -> str:
        """The database, without passwords."""
        return self._store.database.label

    @property
    def is_shared(self) -> bool:
        """Whether other processes can open the study."""
        return self._store.database.shared

    @property
    def learner_state(self) -> bytes | None:
        """The method's state after its last iteration, as bytes; None before the first."""
        return self._store.learner()[1]

    @property
    def evaluations(self) -> Evaluations:
        """Everything asked for so far, as a frozen table; later evaluations do not change it.

        A damaged row is named in a warning and left out; `damages` lists them.
        """
        return Evaluations(self.problem, self._store.evaluations())

    @property
    def damages(self) -> tuple[Damage, ...]:
        """What is damaged or missing among the stored evaluations; empty if the database is sound."""
        return self._store.damages()

    @property
    def focused(self) -> Focus | None:
        """The thresholds under discussion, None for the whole box."""
        return self._store.focus()

    @property
    def optimiser(self) -> str | None:
        """Which live process is optimising this study now, if any."""
        holder = self._store.holder()
        return None if holder is None else holder.label

    def ask(self, count: int = 1) -> list[Trial]:
        """Request designs to evaluate; they count against the budget and stay pending until told."""
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise InputError(f"ask: expected a whole number of designs from 1 on, got {count!r}")
        with self._store.locked():
            trials = self._trials.take(count, started=False)
        if not trials:
            raise StudyError("ask: every design of this space was asked for already; there is none left to evaluate")
        return trials

    def ask_at(self, point: Mapping[str, float]) -> Trial:
        """Request this design, to be measured by hand; it does not count against the budget and stays pending until told."""
        return self._store.start(self.problem.space.check(point), "refine", started=False)

    def tell(self, id: int, outputs: Mapping[str, Any] | None = None, *, failed: str | None = None) -> None:
        """Store what an asked-for design measured, or why it failed.

        outputs: numbers by name, or {"value": ..., "sem": ...} with a standard error, or lists of either, one for each part of an
        output. An output that is NaN or infinite makes it a failure; a missing or misspelt one is refused, and the design
        stays pending.
        """
        if (outputs is None) == (failed is None):
            raise InputError("tell: expected either outputs or failed='reason', got both or neither")
        if failed is not None:
            if not isinstance(failed, str) or not failed.strip():
                raise InputError(f"tell: failed must be the reason as a text, got {failed!r}")
            self._store.finish(id, {"state": "failed", "failure": " ".join(failed.split()), "cause": "design"})
            return
        readings, bad = self._checked(outputs)
        if bad is not None:
            self._store.finish(id, {"state": "failed", "failure": bad, "cause": "design"})
        else:
            self._store.finish(id, {"state": "complete", "outputs": readings})

    def add(self, table: pd.DataFrame | str | Path, columns: Mapping[str, str] | None = None) -> ImportReport:
        """Import old runs: a DataFrame or a CSV file with the variables and raw outputs, further numbers kept.

        Optional columns "<name> sem" hold standard errors; an output with parts has one column for each, "<name>[0]" and so on.
        columns: their names for ours, as {"Vol (cm3)": "volume"}. Rows with problems are listed in the report and
        left out; the rest is stored.
        """
        known = ((row.point, row.outputs) for row in self.evaluations if row.state == "complete")
        checked = check_rows(self.problem, table, columns, known)
        return ImportReport(tuple(self._store.insert(checked.rows)), checked.problems, checked.known, checked.broken)

    def forget(self, ids: Iterable[int], reason: str = "no reason given", *, undo: bool = False) -> None:
        """Exclude evaluations, all or none of them, so that nothing is learned from them; they stay in the record.

        They keep their ids and still count against the budget, since they were spent. An evaluation that has no outcome yet is
        refused. undo: include them again.
        """
        numbers = [ids] if isinstance(ids, int) else list(ids)
        if not numbers or any(not isinstance(number, int) or isinstance(number, bool) for number in numbers):
            raise InputError(f"forget: expected ids of evaluations as whole numbers, got {shown(ids)}")
        if not isinstance(reason, str) or not reason.strip():
            raise InputError(f"forget: reason must be a text, got {shown(reason)}")
        self._store.exclude(numbers, None if undo else " ".join(reason.split()))

    def focus(self, thresholds: ThresholdsLike | None) -> None:
        """State the thresholds under discussion, as a table or a list of mappings; None or an empty list clears them.

        Each row names all movable limits and may have a "weight", 1 unless given. Without a focus the whole box counts.
        """
        self._store.set_focus(_focus(self.problem, thresholds))

    def run(
        self,
        evaluate: Evaluate,
        budget: int = 200,
        workers: int = 1,
        executor: Executor | None = None,
        asynchronous: bool = False,
        timeout: float | None = None,
        retries: int = 0,
        stop_after_failures: int | None = None,
        on_interrupted: Literal["rerun", "fail"] = "rerun",
        on_result: Callable[[Evaluation], None] | None = None,
        in_process: bool = False,
    ) -> None:
        """Evaluate until the study has requested `budget` evaluations in all; running again resumes.

        workers: evaluations at a time, each in a worker process, so that a simulator that crashes costs one evaluation; a
        design that has ended two processes counts as failed. What the simulator prints is shown after each evaluation if there
        is one worker, and kept with every failure. executor: any concurrent.futures.Executor instead.
        asynchronous: ask for the next evaluation as soon as one ends, rather than batch by batch. timeout: seconds for one
        evaluation, from its start on. retries: further tries after a timeout or a failure marked as worth another try.
        stop_after_failures: give up after so many failures in a row. on_interrupted: what to do with evaluations that a dead
        run left unfinished. on_result: called with every finished evaluation. in_process: call `evaluate` in this process, for
        one whose state cannot be sent to another or is needed here; a crash of it then ends this process.

        If the database does not answer, the run waits for up to 10 minutes, or as long as the environment variable
        CBABO_OUTAGE_SECONDS states.
        """
        plan = Run(
            evaluate,
            budget,
            _execution("run", workers=workers, timeout=timeout, retries=retries, in_process=in_process),
            executor,
            asynchronous,
            stop_after_failures,
            on_interrupted,
            on_result,
        )
        with self._store.locked(patient=True):
            plan.drive(self._trials)

    def model(self) -> Model:
        """Return a model of everything measured so far; a pure reading, also while the study runs."""
        return self._model_of(self.evaluations)

    def refine(
        self,
        thresholds: Mapping[str, float],
        evaluate: Evaluate,
        evaluations: int = 2,
        start: Point | None = None,
        timeout: float | None = None,
        retries: int = 0,
        on_result: Callable[[Evaluation], None] | None = None,
        in_process: bool = False,
    ) -> Answer:
        """Spend at most `evaluations` expensive calls on one answer: 1 verifies it, further ones look for a better one.

        They are stored as kind "refine", do not count against the budget, and the next model knows them. A call that follows
        another one for the same limits goes on where that one ended: two calls with one evaluation each do the same as one call
        with two. A limit that is left out stands at its nominal value. start: a design to begin with instead of the
        prediction; one that was measured before is not measured again. timeout, retries, on_result, in_process: as `run`
        takes them.
        """
        from cbabo.answering.refine import refine

        if not isinstance(evaluations, int) or isinstance(evaluations, bool) or evaluations < 1:
            raise InputError(f"refine: evaluations must be a whole number from 1 on, got {evaluations!r}")
        if not callable(evaluate):
            raise InputError(f"refine: evaluate must be a function of a point, got {evaluate!r}")
        limits = self.problem.box.complete(thresholds)
        begin = None if start is None else self._start(start)
        execution = _execution("refine", timeout=timeout, retries=retries, in_process=in_process)
        with self._store.locked(patient=True), execution.executor(evaluate) as executor:

            def measure(point: Point) -> Evaluation:
                trial = self._trials.start(point, limits)
                outcome = execution.evaluate(executor, evaluate, point, self._trials.outputs, trial.id)
                evaluation = self._trials.record(trial.id, outcome)
                if on_result is not None:
                    on_result(evaluation)
                return evaluation

            known, made = _split(self.evaluations, limits, begin)
            if any(row.point == begin for row in made):
                begin = None  # The refinement that begins there goes on.
            return refine(
                self._model_of(known),
                Query.of(known.problem.box, limits),
                measure,
                evaluations,
                begin,
                made,
            )

    def _start(self, point: Mapping[str, float]) -> Point:
        """Return a design that a refinement begins with; refuse one that breaks a known relation."""
        legal, region = self.problem.space.check(point), self.problem.region
        if region is not None and region.broken(legal):
            raise InputError(f"refine: the start must obey all relations, but it breaks {region.broken(legal)}")
        return legal

    def _model_of(self, evaluations: Evaluations) -> Model:
        from cbabo.methods.learner import Learner
        from cbabo.model import make_model

        return make_model(evaluations, Learner.from_bytes(self.learner_state), self.settings, self.seed)

    def _checked(self, outputs: Any) -> tuple[dict[str, Reading], str | None]:
        """Return the outputs that were told, and why they are a failure, if they are."""
        if not isinstance(outputs, Mapping):
            raise InputError(f"tell: expected outputs as a mapping of names to numbers, got {shown(outputs)}")
        declared = self.problem.simulated
        absent = missing(outputs, declared)
        if absent is not None:
            raise InputError(f"tell: the output {absent!r} is missing; expected {', '.join(declared)}")
        readings: dict[str, Reading] = {}
        failure = None
        try:
            for name, value in outputs.items():
                readings[str(name)] = output_reading(str(name), value)
            check_objective(declared, readings)
        except InputError as error:
            raise InputError(f"tell: {error}") from None
        for name in list(readings):
            bad = not_finite(name, readings[name])
            whole = whole_name(name)
            if bad is not None:
                del readings[name]
                if name in declared or (whole in declared and whole not in outputs):
                    failure = failure or bad
        return readings, failure

    def _refuse_difference(self, problem: Problem, seed: int, settings: MethodSettings, exist_ok: bool) -> None:
        if not exist_ok:
            raise StudyError(f"study {self.name!r} exists already; choose another name or pass exist_ok=True")
        different = [
            what
            for what, same in (
                ("problem", problem == self.problem),
                ("seed", seed == self.seed),
                ("settings", settings == self.settings),
            )
            if not same
        ]
        if different:
            raise StudyError(
                f"study {self.name!r} exists with another {' and another '.join(different)}; "
                "choose another name, or state what is stored"
            )


def _split(
    evaluations: Evaluations, limits: Mapping[str, float], start: Point | None
) -> tuple[Evaluations, tuple[Evaluation, ...]]:
    """Return the evaluations before a refinement for these limits, and those that were spent on it at the very end.

    start: a design with which the refinement begins; if it was measured before, it counts as spent on it.
    """
    rows = [row for row in evaluations if row.state != "running" and row.excluded is None]
    first = len(rows)
    while first > 0 and rows[first - 1].kind == "refine" and rows[first - 1].thresholds == limits:
        first -= 1
    spent = rows[first:]
    if start is not None and all(row.point != start for row in spent):
        spent = [row for row in rows if row.state == "complete" and row.point == start][-1:]
    ids = {row.id for row in spent}
    return Evaluations(evaluations.problem, tuple(row for row in evaluations if row.id not in ids)), tuple(spent)


def _execution(where: str, **stated: Any) -> Execution:
    """Read how to execute evaluations, naming the method that was called in messages."""
    try:
        return Execution(**stated)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _focus(problem: Problem, thresholds: ThresholdsLike | None) -> Focus | None:
    """Read a focus; None and an empty list mean the whole box."""
    if thresholds is None or (isinstance(thresholds, list | tuple) and not thresholds):
        return None
    return Focus.of(problem.box, thresholds)
