"""Arguments and options that several commands share."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import pandas as pd
import typer

from cbabo.errors import CbaboError, InputError, shown
from cbabo.evaluators.function import load_function
from cbabo.evaluators.spec import Simulator
from cbabo.storage.urls import hide_passwords
from cbabo.study.study import Study
from cbabo.surfaces.records import plain_names
from cbabo.surfaces.studyfile import StudyFile, lasting_url

if TYPE_CHECKING:
    from cbabo.decisions.recommend import Intent

StudyArgument = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study's YAML file, or URL::name such as sqlite:///truss.db::truss.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change a value of the file, as study.settings.batch_size=4."),
]
TightenOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tighten", metavar="NAME[=VALUE]", help="A limit to tighten, to a value if given; the others stay locked."
    ),
]
LoosenOption = Annotated[
    list[str] | None,
    typer.Option(
        "--loosen",
        metavar="NAME[=VALUE]",
        help="A limit that may loosen, to a value at most if given; the others stay locked.",
    ),
]
Format = Literal["table", "json", "csv"]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress and no summary; warnings and errors remain.")
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print the result.")]


class CommandInterruptedError(CbaboError):
    """Ctrl-C has ended a command; the message says how to go on."""


def interrupted(stored: str) -> CommandInterruptedError:
    """Say what is stored, and by which command to resume: the one that was given."""
    words = [hide_passwords(word) for word in sys.argv[1:]]
    return CommandInterruptedError(f"stopped; {stored}, resume by: {shlex.join(['cbabo', *words])}")


def open_study(study: str, changes: list[str] | None = None) -> Study:
    """Open a study that was started."""
    if not names_database(study):
        return read_file(study, changes).open()
    if changes:
        raise InputError(
            f"--set: expected a study file whose values can be changed, got {shown(hide_passwords(study))}; leave it out"
        )
    url, _, name = study.rpartition("::")
    lasting_url(url)
    return Study.open(url, name)


def stored_study(study: str, changes: list[str] | None = None) -> Study:
    """Open a study that was started, whatever its file states now."""
    return open_study(study) if names_database(study) else read_file(study, changes).stored()


def start_study(study: str, changes: list[str] | None = None) -> Study:
    """Open a study, creating it if it comes from a file and was not started yet."""
    return open_study(study, changes) if names_database(study) else read_file(study, changes).create()


def names_database(study: str) -> bool:
    """Tell whether a STUDY is URL::name rather than a file."""
    return "::" in study and not Path(study).is_file()


def read_file(path: str, changes: list[str] | None = None) -> StudyFile:
    """Read a study's YAML file."""
    if "://" in path and not Path(path).exists():
        raise InputError(
            f"expected a study's YAML file or URL::name, got the URL {shown(hide_passwords(path))} without '::name'"
        )
    return StudyFile.read(path, changes or ())


def find_simulator(
    command: str, study: str, evaluator: str | None, changes: list[str] | None = None, *, required: bool = True
) -> Simulator | None:
    """Return the simulator: the function named by --evaluator, or the study file's. It never comes from the database.

    Where there is none, the command says so, or gets None if it can do without.
    """
    if evaluator is not None:
        try:
            return Simulator(load_function(evaluator, Path.cwd()))
        except InputError as error:
            raise InputError(f"--evaluator: {error}") from error
    if names_database(study):
        if required:
            raise InputError(
                f"{command}: the evaluator is never taken from the database; add --evaluator module:function"
            )
        return None
    file = read_file(study, changes)
    return file.simulator() if required or file.evaluator is not None else None


def pairs(words: list[str] | None, what: str) -> dict[str, str]:
    """Split words of the form name=value."""
    found: dict[str, str] = {}
    for word in words or []:
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not name or not value or name in found:
            raise InputError(f"{what}: expected name=value, each name once, got {shown(word)}")
        found[name] = value
    return found


def read_intents(tighten: list[str] | None, loosen: list[str] | None) -> dict[str, Intent]:
    """Put what should be tightened and what may be loosened together."""
    tightened, loosened = (dict(_intent(word) for word in words or []) for words in (tighten, loosen))
    both = sorted(set(tightened) & set(loosened))
    if both:
        raise InputError(f"recommend: {both[0]!r} is to be tightened and loosened; name it once")
    stated = {name: ("tighten", value) for name, value in tightened.items()}
    stated |= {name: ("loosen", value) for name, value in loosened.items()}
    return {name: direction if value is None else (direction, value) for name, (direction, value) in stated.items()}  # type: ignore[misc]


def _intent(word: str) -> tuple[str, float | None]:
    """Split a limit from the value that may follow it."""
    name, equals, text = word.rpartition("=")
    try:
        return (name.strip(), float(text)) if equals else (word, None)
    except ValueError:
        return word, None


def read_limits(file: Path) -> pd.DataFrame:
    """Read a CSV file of limits."""
    try:
        limits = pd.read_csv(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: expected a CSV file of limits ({error}); check the path") from error
    return limits.rename(columns=plain_names(map(str, limits.columns)))
