"""A simulator that is a command: input files and arguments are written, a process runs, and its outputs are read.

Every evaluation has a fresh directory of its own, which is the command's current directory. The command never
outlives its evaluation: on a timeout, a failure or Ctrl-C all that it has started is killed.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Literal

from cbabo.domain.current import current_evaluation
from cbabo.domain.parts import Reading
from cbabo.errors import EvaluationError, InputError
from cbabo.evaluators.function import declared_outputs, finite_outputs
from cbabo.evaluators.guard import ending, kill_marked, kill_tree, marked, marked_environment, new_token
from cbabo.evaluators.logs import LOG_CHARACTERS, file_tail, joined, tail
from cbabo.evaluators.placeholders import fill, plain
from cbabo.evaluators.readings import LARGEST_FILE, read_outputs
from cbabo.numerics.identity import machine, process_start

logger = logging.getLogger(__name__)

_CLAIM = ".running"
"""File that says which process works in a directory; it is removed when the evaluation has ended."""

Keep = Literal["failed", "always", "never"]
_READ_LOG = "; read its log for the cause"
"""How a failure ends whose cause the command has not named."""
_LINE_CHARACTERS = 200
"""The most that a failure shows of the last line on standard error."""


@dataclass(frozen=True)
class CommandEvaluator:
    """Calls a command for every point; it is itself an `Evaluate` and can be pickled.

    In the command, the values of `env` and the templates, {name} or {name:.6e} stands for a variable, {here}
    for the study's folder and {workdir} for the evaluation's own directory.
    """

    command: tuple[str, ...]
    """The program and its arguments; with `shell`, words that make one line for the shell."""
    workdir: Path
    """Where each evaluation gets its own directory."""
    directory: Path = field(default_factory=Path.cwd)
    """The study's folder, {here}."""
    templates: Mapping[str, Path] = field(default_factory=dict)
    """Files to write into the evaluation's directory before the start: name there -> template."""
    outputs: str = "stdout"
    """Where the outputs are: "stdout", or a file in its directory (.json, else name=value lines)."""
    keep: Keep = "failed"
    """Which evaluations' directories are kept."""
    timeout: float | None = None
    """Seconds after which the command is killed."""
    allowed_return_codes: tuple[int, ...] = (0,)
    """Return codes that mean success."""
    retry_return_codes: tuple[int, ...] = ()
    """Return codes that mean that trying again may help, such as that of a missing licence."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to add."""
    shell: bool = False
    """Whether the command is a line for the shell; {here} and {workdir} are quoted already."""
    largest_file: int = LARGEST_FILE
    """Bytes of outputs that are read at most; more is a failure."""

    def __post_init__(self) -> None:
        if not self.command or not self.command[0].strip():
            raise InputError("the command must name a program, but is empty; write the program and its arguments")
        for name in [*self.templates, self.outputs]:
            check_inside(name)
        object.__setattr__(self, "workdir", self.workdir.absolute())
        object.__setattr__(self, "directory", self.directory.absolute())
        absolute = {name: self.directory / path for name, path in self.templates.items()}
        object.__setattr__(self, "templates", absolute)

    def __call__(self, point: dict[str, Any]) -> dict[str, Reading]:
        """Run the command for one point and return its outputs."""
        place = self._make_directory()
        claim = place / _CLAIM
        try:
            claim.write_text(_claim(), encoding="utf-8")
            outputs = self._evaluate({name: plain(value) for name, value in point.items()}, place)
        except BaseException as error:
            kept = self.keep != "never"
            if isinstance(error, EvaluationError):
                raise EvaluationError(
                    _reason(error, place), log=_log(place, kept), retryable=error.retryable
                ) from error
            raise
        else:
            kept = self.keep == "always"
            return outputs
        finally:
            claim.unlink(missing_ok=True)
            if not kept:
                _remove(place)

    def _evaluate(self, point: dict[str, float | str], place: Path) -> dict[str, Reading]:
        (place / "inputs.json").write_text(json.dumps(point, indent=2) + "\n", encoding="utf-8")
        values: dict[str, float | str] = {**point, "here": str(self.directory), "workdir": str(place)}
        for name, template in self.templates.items():
            _write_template(template, place / name, values)
        token = new_token()
        environment = marked_environment(token)
        for name, value in self.env.items():
            environment[name] = fill(value, values, f"the environment variable {name}")
        number = current_evaluation.get()
        if number is not None:
            environment["CBABO_EVALUATION"] = str(number)
        try:
            self._check(self._run(self._words(values), place, environment))
            source = "stdout.txt" if self.outputs == "stdout" else self.outputs
            returned = read_outputs(place / source, self.largest_file)
        except BaseException:
            kill_marked(token)
            raise
        if marked(token):  # A command may end before what it has started in the background.
            kill_marked(token)
        return finite_outputs(returned, declared_outputs.get())

    def _words(self, values: Mapping[str, float | str]) -> list[str] | str:
        if not self.shell:
            return [fill(word, values, "the command") for word in self.command]
        quote = (lambda path: subprocess.list2cmdline([path])) if os.name == "nt" else shlex.quote
        quoted = {name: quote(value) if isinstance(value, str) else value for name, value in values.items()}
        return fill(" ".join(self.command), quoted, "the command")

    def _run(self, words: list[str] | str, place: Path, environment: Mapping[str, str]) -> int:
        """Run the command to its end or its timeout and return its code; it writes to files, not pipes."""
        with (place / "stdout.txt").open("wb") as stdout, (place / "stderr.txt").open("wb") as stderr:
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    cwd=place,
                    env=environment,
                    shell=self.shell,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise EvaluationError(
                    f"the command {words!r} cannot be started ({error}); check the program's name, or write "
                    "{here}/program for a program in the study's folder"
                ) from error
            try:
                return process.wait(self.timeout)
            except subprocess.TimeoutExpired as error:
                raise EvaluationError(
                    f"the command gave no answer within {self.timeout:g} s and was killed; "
                    "raise the timeout if it needs longer",
                    retryable=True,
                ) from error
            finally:
                if process.returncode is None:
                    kill_tree(process.pid)
                    process.wait()

    def _check(self, code: int) -> None:
        if code in self.allowed_return_codes:
            return
        allowed = ", ".join(map(str, self.allowed_return_codes))
        raise EvaluationError(
            f"the command {ending(code)}, but only {allowed} means success{_READ_LOG}",
            retryable=code in self.retry_return_codes,
        )

    def _make_directory(self) -> Path:
        number = current_evaluation.get()
        stem = "point" if number is None else f"{number:05d}"
        try:
            self.workdir.mkdir(parents=True, exist_ok=True)
            for place in self.workdir.glob(f"{stem}-*"):
                if _abandoned(place):
                    logger.info("Removing %s, where an earlier try of this evaluation was interrupted.", place)
                    _remove(place)
            while True:
                place = self.workdir / f"{stem}-{secrets.token_hex(3)}"
                with suppress(FileExistsError):
                    place.mkdir()
                    return place
        except OSError as error:
            raise EvaluationError(
                f"no directory can be made in {self.workdir} ({error}); choose another workdir"
            ) from error


def check_inside(name: str) -> None:
    """Refuse a file name that leads out of the evaluation's directory."""
    path = PurePath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise InputError(
            f"a file of an evaluation must be named relative to its own directory, but {name!r} came; "
            "write a plain file name"
        )


def _claim() -> str:
    """Return what tells this process from all others."""
    return json.dumps([machine(), os.getpid(), process_start(os.getpid())])


def _abandoned(place: Path) -> bool:
    """Tell whether a directory is of an evaluation whose process is dead; one of another machine may be alive."""
    try:
        where, process, begun = json.loads((place / _CLAIM).read_text(encoding="utf-8"))
        return bool(where == machine() and process_start(process) != begun)
    except (OSError, ValueError, TypeError):
        return False


def _write_template(template: Path, target: Path, values: Mapping[str, float | str]) -> None:
    try:
        text = template.read_bytes().decode("utf-8", errors="surrogateescape")
    except OSError as error:
        raise EvaluationError(f"the template {template} cannot be read ({error}); put the file there") from error
    filled = fill(text, values, f"the template {template.name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(filled.encode("utf-8", errors="surrogateescape"))
    shutil.copymode(template, target)


def _reason(error: EvaluationError, place: Path) -> str:
    """Return why the evaluation failed, with the last line that the command has written to standard error, if there is one."""
    lines = file_tail(place / "stderr.txt").splitlines()
    if not lines:
        return error.reason
    return f"{error.reason.removesuffix(_READ_LOG)}; its last line on stderr: {lines[-1].strip()[:_LINE_CHARACTERS]}"


def _log(place: Path, kept: bool) -> str:
    note = f"The directory of this evaluation is kept: {place}" if kept else ""
    streams = joined(("stderr", file_tail(place / "stderr.txt")), ("stdout", file_tail(place / "stdout.txt")))
    return f"{tail(streams, LOG_CHARACTERS - len(note) - 1)}\n{note}".strip()


def _remove(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    if place.exists():
        logger.warning("The directory %s cannot be removed; delete it by hand.", place)
