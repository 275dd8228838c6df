"""A study: one problem's evaluations and settings. The only object with state, and all of it is in the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from cbabo.display.studies import study_html
from cbabo.domain.audits import Audit
from cbabo.domain.constraints import ThresholdsLike
from cbabo.domain.convergence import Convergence
from cbabo.domain.evaluations import Evaluation, Evaluations, Trial, Unfinished
from cbabo.domain.focus import Focus
from cbabo.domain.problem import Problem
from cbabo.domain.query import Query
from cbabo.domain.space import Point
from cbabo.errors import InputError, StudyError, shown
from cbabo.evaluators.function import Evaluate
from cbabo.methods.effort import Effort, stored_effort
from cbabo.methods.settings import MethodSettings, Settings
from cbabo.storage.amendments import Amendment, read_amendments, write_amendment
from cbabo.storage.database import Database
from cbabo.storage.rows import Damage
from cbabo.storage.store import StudyStore
from cbabo.storage.waiting import unfinished
from cbabo.study.amending import planned_change, refuse_difference
from cbabo.study.importing import ImportReport, check_rows
from cbabo.study.ledger import Decision, Decisions, audits, author, decision_content, read_decision
from cbabo.study.outcomes import (
    check_spending,
    checked_ids,
    checked_share,
    read_focus,
    retryable_ids,
    split_refinement,
    told_readings,
)
from cbabo.study.runner import Run, read_execution
from cbabo.study.stopping import Until
from cbabo.study.trials import Trials

if TYPE_CHECKING:
    from cbabo.answering.answers import Answer, Recommendation
    from cbabo.model import Model
    from cbabo.surfaces.notebook.file import ExplorerFile
    from cbabo.surfaces.notebook.widget import ExplorerWidget


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
        wanted = read_focus(problem, focus)
        store, new = StudyStore.create(Database.create(storage), name, problem, seed, settings)
        study = cls(store)
        if not new:
            if not exist_ok:
                raise StudyError(f"study {name!r} exists already; choose another name or pass exist_ok=True")
            refuse_difference(store.record, problem, seed, settings)
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
        """The problem, as it was created or last amended."""
        return self._store.record.problem

    @property
    def amendments(self) -> tuple[Amendment, ...]:
        """Every change of the problem since the study was created, the oldest first."""
        return read_amendments(self._store)

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
    def effort(self) -> Effort:
        """How much effort the next batch is worth: a run lowers it where choosing designs takes long beside evaluating them."""
        return stored_effort(self.learner_state)

    @property
    def evaluations(self) -> Evaluations:
        """Everything asked for so far, as a frozen table; later evaluations do not change it.

        A damaged row is named in a warning and left out; `damages` lists them.
        """
        rows = self._store.evaluations()
        return Evaluations(self.problem, rows)

    @property
    def damages(self) -> tuple[Damage, ...]:
        """What is damaged or missing among the stored evaluations; empty if the database is sound."""
        return self._store.damages()

    @property
    def unfinished(self) -> Mapping[int, Unfinished]:
        """What each evaluation without an outcome waits for, by its id: "running" in a run that is under way, "asked" for by a
        user who has not told it, "interrupted" when its run ended, or to be evaluated again ("retry"), both by the next run."""
        return unfinished(self._store)

    @property
    def focused(self) -> Focus | None:
        """The thresholds under discussion, None for the whole box."""
        return self._store.focus()

    @property
    def decisions(self) -> Decisions:
        """What was decided and proposed, the oldest first; `to_frame` makes a table of it."""
        return Decisions(self._store.ledger())

    @property
    def audits(self) -> tuple[Audit, ...]:
        """The audits of the model's claims, the oldest first."""
        return audits(self._store.ledger())

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

    def ask_at(self, point: Mapping[str, Any]) -> Trial:
        """Request this design, to be measured by hand; it does not count against the budget and stays pending until told."""
        self._store.refresh()
        return self._store.start(self.problem.space.check(point), "refine", started=False)

    def tell(self, id: int, outputs: Mapping[str, Any] | None = None, *, failed: str | None = None) -> None:
        """Store what an asked-for design measured, or why it failed.

        outputs: numbers by name, or {"value": ..., "sem": ...} with a standard error, or lists of either, one for each part of an
        output. An output that is NaN or infinite makes it a failure; a missing or misspelt one is refused, and the design
        stays pending.
        """
        self._store.refresh()
        if (outputs is None) == (failed is None):
            raise InputError("tell: expected either outputs or failed='reason', got both or neither")
        if failed is not None:
            if not isinstance(failed, str) or not failed.strip():
                raise InputError(f"tell: failed must be the reason as a text, got {failed!r}")
            self._store.finish(id, {"state": "failed", "failure": " ".join(failed.split()), "cause": "design"})
            return
        readings, bad = told_readings(self.problem, outputs)
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
        numbers = checked_ids("forget", ids)
        if not isinstance(reason, str) or not reason.strip():
            raise InputError(f"forget: reason must be a text, got {shown(reason)}")
        self._store.exclude(numbers, None if undo else " ".join(reason.split()))

    def retry(self, ids: Iterable[int] | None = None) -> list[Trial]:
        """Have failed evaluations evaluated again by the next `run`, all or none of them; return the new evaluations.

        Each becomes an evaluation of kind "retry" at the same design, which does not count against the budget. The old one stays
        in the record and is excluded. ids: failed evaluations, or excluded ones; None: all that failed and are not excluded.
        """
        with self._store.locked():
            return self._store.retry(retryable_ids(self.evaluations, ids))

    def amend(self, problem: Problem, values: Mapping[str, float] | None = None) -> tuple[str, ...]:
        """State the problem anew, with all evaluations kept; return the changes, such as "constraint 'stress': high 10 -> 12".

        Limits may be moved, fixed, made movable, dropped, or set on any number that was recorded. Bounds of variables may change:
        designs outside stay in the record and are never answers; close ones are still learned from. values: for every variable
        that is added, the value that all evaluations so far had. What cannot be is refused, with nothing changed: a variable
        that is removed, a kind of variable that stored designs do not fit, or an output that measured evaluations lack. A study
        is not amended while it runs.
        """
        if not isinstance(problem, Problem):
            raise InputError(f"amend: expected a Problem, got {type(problem).__name__}; Problem.from_file reads one")
        store = self._store
        with store.locked():
            rows, before = store.evaluations(), store.record.problem
            change = planned_change(before, problem, rows, values or {}, store.focus(), store.learner()[1])
            if change is not None:
                write_amendment(store, change)
        return () if change is None else tuple(change.changes)

    def focus(self, thresholds: ThresholdsLike | None) -> None:
        """State the thresholds under discussion, as a table or a list of mappings; None or an empty list clears them.

        Each row names all movable limits and may have a "weight", 1 unless given. Without a focus the whole box counts.
        """
        self._store.refresh()
        self._store.set_focus(read_focus(self.problem, thresholds))

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
        until: float | str | None = None,
        on_convergence: Callable[[Convergence], None] | None = None,
    ) -> None:
        """Evaluate until the study has requested `budget` evaluations in all; running again resumes.

        workers: evaluations at a time, each in a worker process, so that a simulator that crashes costs one evaluation; a
        design that has ended two processes counts as failed. What the simulator prints is shown after each evaluation if there
        is one worker, and kept with every failure. executor: any concurrent.futures.Executor instead.
        asynchronous: ask for the next evaluation as soon as one ends, rather than batch by batch. timeout: seconds for one
        evaluation, from its start on. retries: further tries after a timeout or a failure marked as worth another try.
        stop_after_failures: give up after so many failures in a row; None: if the first five of the run, or ten in a row, fail
        for the same reason (their messages differ in numbers and paths only), which is hardly the designs' fault.
        on_interrupted: what to do with evaluations that a dead run left unfinished. on_result: called with every finished
        evaluation. in_process: call `evaluate` in this process, for one whose state cannot be sent to another or is needed
        here; a crash of it then ends this process. until: end before the budget is spent if the answers have converged to this
        share of the span, as 0.005 or "0.5%" (see `convergence`); it is estimated every 10 evaluations. on_convergence:
        called with every estimate.

        If the database does not answer, the run waits for up to 10 minutes, or as long as the environment variable
        CBABO_OUTAGE_SECONDS states.
        """
        plan = Run(
            evaluate,
            budget,
            read_execution("run", workers=workers, timeout=timeout, retries=retries, in_process=in_process),
            executor,
            asynchronous,
            stop_after_failures,
            on_interrupted,
            on_result,
            None if until is None else Until(checked_share(self.settings, until), self.convergence, on_convergence),
        )
        with self._store.locked(patient=True):
            plan.drive(self._trials)

    def model(self) -> Model:
        """Return a model of everything measured so far; a pure reading, also while the study runs."""
        return self._model_of(self.evaluations)

    def convergence(self) -> Convergence | None:
        """Estimate how far the answers still move, without spending evaluations; None where it is too early to say.

        It is None with fewer than 20 measured designs, and under the paper's method.
        """
        from cbabo.answering.convergence import convergence

        evaluations = self.evaluations
        return convergence(self._model_of(evaluations)) if len(evaluations.complete) > 1 else None

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

        check_spending("refine", evaluate, evaluations)
        self._store.refresh()
        limits = self.problem.box.complete(thresholds)
        begin = None if start is None else self._start(start)
        execution = read_execution("refine", timeout=timeout, retries=retries, in_process=in_process)
        with self._store.locked(patient=True), execution.executor(evaluate) as executor:

            def measure(point: Point) -> Evaluation:
                trial = self._trials.start(point, limits)
                outcome = execution.evaluate(executor, evaluate, point, self._trials.outputs, trial.id)
                evaluation = self._trials.record(trial.id, outcome)
                if on_result is not None:
                    on_result(evaluation)
                return evaluation

            known, made = split_refinement(self.evaluations, limits, begin)
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

    def audit(
        self,
        evaluate: Evaluate,
        evaluations: int = 20,
        workers: int = 1,
        timeout: float | None = None,
        retries: int = 0,
        on_result: Callable[[Evaluation], None] | None = None,
        in_process: bool = False,
        by: str | None = None,
    ) -> Audit:
        """Test the model's claims: answer fresh random thresholds, measure each answer once, and compare.

        The evaluations are stored as kind "audit", do not count against the budget, and the next model knows them; the audit
        is stored in the ledger. If it rejects the stated probabilities, answers that are not verified carry a warning until the
        model has learned (see `decisions.audit`). by: who audits, this machine's user unless given; the others: as for `run`.
        """
        from cbabo.study.auditing import audit_model

        check_spending("audit", evaluate, evaluations)
        execution = read_execution("audit", workers=workers, timeout=timeout, retries=retries, in_process=in_process)
        who = author(by)
        with self._store.locked(patient=True):
            earlier = len(self.audits)
            found = audit_model(self.model(), self._trials, evaluate, execution, evaluations, earlier, on_result)
            self._store.append("audit", who, found.to_dict())
        return self.audits[-1]

    def explore(
        self, limits: Mapping[str, float] | None = None, *, height: int = 900, path: str | Path | None = None
    ) -> ExplorerWidget | ExplorerFile:
        """Return the explorer for a notebook: a widget whose `limits` are those that are set in it.

        widget.limits may be read and set, widget.answer is the full answer to them. Without anywidget (the `notebook` extra), or
        with a path, the page is written to a file and shown as it is. limits: where to begin, nominal where left out; height:
        in pixels; path: of the file, a temporary one unless given.
        """
        from cbabo.surfaces.notebook import explore_study

        return explore_study(self, limits, height, path)

    def decide(
        self,
        thresholds: Mapping[str, float] | Answer | Recommendation,
        note: str = "",
        by: str | None = None,
        intents: Mapping[str, str | tuple[str, float]] | None = None,
        proposal: bool = False,
        model: Model | None = None,
    ) -> Decision:
        """Write agreed limits into the ledger for ever, with their answer and the state of the data, also while the study runs.

        thresholds: limits, of which those left out stand at their nominal value; or an answer, or a recommendation. by: who
        decided, this machine's user unless given. intents: what was asked of each limit. proposal: they are only proposed.
        model: what answers; a new one of everything measured unless given.
        """
        rows, who = self.evaluations, author(by)
        content = decision_content(self._model_of(rows) if model is None else model, rows, thresholds, note, intents)
        entry = self._store.append("proposal" if proposal else "decision", who, content)
        return read_decision(entry)

    def _repr_html_(self) -> str:
        """Return tables for a notebook."""
        return study_html(self)

    def _start(self, point: Mapping[str, float]) -> Point:
        """Return a design that a refinement begins with; refuse one that breaks a known relation."""
        legal, region = self.problem.space.check(point), self.problem.region
        if region is not None and region.broken(legal):
            raise InputError(f"refine: the start must obey all relations, but it breaks {region.broken(legal)}")
        return legal

    def _model_of(self, evaluations: Evaluations) -> Model:
        from cbabo.decisions.audit import audit_warning
        from cbabo.methods.learner import Learner
        from cbabo.model import make_model

        model = make_model(evaluations, Learner.from_bytes(self.learner_state), self.settings, self.seed)
        notes = audit_warning(model, next(reversed(self.audits), None))
        return replace(model, notes=notes) if notes else model
