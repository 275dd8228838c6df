"""The command line: the same verbs as the Python interface, and no mathematics.

Exit codes: 0 done, 1 failed, 2 the user's input is wrong or an optional part is not installed, 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Annotated, NoReturn

import typer

from cbabo.errors import CbaboError, InputError, MissingExtraError, StudyError, StudyLockedError
from cbabo.storage.urls import hide_passwords
from cbabo.surfaces.cli import (
    answering,
    bench,
    committing,
    deciding,
    demo,
    evaluating,
    exporting,
    files,
    inspecting,
    serving,
)
from cbabo.surfaces.cli.options import CommandInterruptedError
from cbabo.surfaces.cli.streams import forgiving_stderr
from cbabo.surfaces.cli.terminal import TerminalHandler, escaping

_INTERRUPTED = 130  # what typer, and every shell, makes of Ctrl-C

app = typer.Typer(
    name="cbabo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Its colours would be escaped, and usage errors repeat what was typed.
    context_settings={"help_option_names": ["-h", "--help"]},
)
for commands in (demo, files, evaluating, inspecting, answering, committing, deciding, serving, exporting, bench):
    commands.register(app)  # In the order of work, as the help shows them.


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(metadata.version("cbabo"))
        raise typer.Exit


@app.callback()
def cbabo(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Answer every limit from one run of an expensive simulator."""


def main() -> None:
    """Run the command line; every error is one sentence, and nothing that cannot be written to standard error is one."""
    with forgiving_stderr():
        _main()


def _main() -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a unit shows "?"
    with escaping(), _messages():
        _run()


def _run() -> None:
    try:
        app()
    except CommandInterruptedError as error:
        _end(str(error), _INTERRUPTED)
    except CbaboError as error:
        wrong_input = isinstance(error, InputError | StudyError | MissingExtraError) and not isinstance(
            error, StudyLockedError
        )
        _end(str(error), 2 if wrong_input else 1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        _end(f"{where}{error.strerror or error}; check the path, the rights and the space there", 1)
    except SystemExit as ending:
        if ending.code == _INTERRUPTED:
            _end("interrupted; everything told so far is stored, and the same command may be given again", _INTERRUPTED)
        raise


@contextmanager
def _messages() -> Iterator[None]:
    """Print the messages of this package and of the web server."""
    handler = TerminalHandler(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("cbabo", "uvicorn")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def _end(sentence: str, code: int) -> NoReturn:
    sys.stderr.write(f"cbabo: {hide_passwords(' '.join(sentence.split()))}\n")
    sys.exit(code)
