"""The progress display of a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from cbabo.domain.convergence import Convergence
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.study.study import Study
from cbabo.surfaces.cli.terminal import escaped, escaping, unescaped

_LINE_SECONDS = 10.0


@contextmanager
def watching(
    study: Study, budget: int, estimates: Sequence[Convergence], *, quiet: bool
) -> Iterator[Callable[[Evaluation], None] | None]:
    """Show progress on stderr: a bar in a terminal, a line now and then elsewhere, nothing if quiet.

    estimates: of the convergence, the last of which is shown; the run adds to them.
    """
    if quiet:
        yield None
        return
    tally = Tally(study, budget, estimates)
    if not sys.stderr.isatty():
        yield tally.print_lines
        tally.print_line()
        return
    columns = (
        TextColumn("{task.completed}/{task.total}"),
        BarColumn(bar_width=12),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(file=unescaped(sys.stderr))) as progress, escaping():
        task = progress.add_task(escaped(tally.text()), total=max(budget, tally.done), completed=tally.done)

        def show(evaluation: Evaluation) -> None:
            tally.count(evaluation)
            progress.update(task, completed=tally.done, description=escaped(tally.text()))

        yield show


class Tally:
    """Counts what a run has done so far."""

    def __init__(self, study: Study, budget: int, estimates: Sequence[Convergence] = ()) -> None:
        self._estimates = estimates
        evaluations = study.evaluations
        self._problem = study.problem
        self._nominal = study.problem.box.nominal
        self._budget = budget
        counted = [row for row in evaluations if row.kind == "run"]
        self.done = sum(row.state != "running" for row in counted)
        self._failed = sum(row.kind in ("run", "retry") for row in evaluations.failed)
        self._best = evaluations.best(self._nominal)
        self._began = time.monotonic()
        self._shown = self._began
        self._new = 0
        self._seconds = 0.0

    def count(self, evaluation: Evaluation) -> None:
        """Take one more finished evaluation into account."""
        self._new += 1
        self.done += evaluation.kind == "run"
        self._failed += evaluation.state == "failed"
        self._seconds += evaluation.seconds or 0.0
        rows = (evaluation,) if self._best is None else (self._best, evaluation)
        self._best = Evaluations(self._problem, rows).best(self._nominal)

    def text(self) -> str:
        """Describe the progress: failures, the best objective at the nominal limits, time per evaluation, time left."""
        parts = [f"{self._failed} failed", self._best_text()]
        if self._new:
            elapsed = time.monotonic() - self._began
            left = elapsed / self._new * max(0, self._budget - self.done)
            parts += [f"{self._seconds / self._new:.2g} s each", f"{clock(left)} left"]
        if self._estimates:
            parts.append(f"converged to {100.0 * self._estimates[-1].figure:.2g} %")
        return ", ".join(parts)

    def print_lines(self, evaluation: Evaluation) -> None:
        """Count, and write a line if the last one is a while ago."""
        self.count(evaluation)
        if time.monotonic() - self._shown >= _LINE_SECONDS:
            self.print_line()

    def print_line(self) -> None:
        """Write one line on stderr."""
        self._shown = time.monotonic()
        if self._new:
            sys.stderr.write(f"{self.done}/{self._budget} evaluations, {self.text()}\n")
        else:
            sys.stderr.write(
                f"Nothing was left to evaluate: {self.done} evaluations are done or failed and the budget is "
                f"{self._budget}; raise --budget to go on.\n"
            )

    def _best_text(self) -> str:
        if self._best is None:
            return "nothing feasible at the nominal limits yet"
        goal = self._problem.objective
        return f"best {goal.name} {self._best.outputs[goal.name]:.6g} {goal.unit}".rstrip()


def clock(seconds: float) -> str:
    """Write a duration as 4:05, 3:04:05 or "12 days"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{round(hours / 24)} days"
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
