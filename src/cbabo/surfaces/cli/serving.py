"""The command that shows a study in a browser: serve."""

from __future__ import annotations

import secrets
import socket
import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from cbabo.errors import InputError, MissingExtraError
from cbabo.surfaces.cli.options import CommandInterruptedError, StudyArgument, find_simulator, open_study
from cbabo.surfaces.cli.printing import simulator_output

_PORT = 8321


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(serve)


def serve(
    study: StudyArgument,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen on this machine; 0: any free port.")
    ] = _PORT,
    evaluator: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="The simulator, where STUDY is URL::name.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page at once.")] = True,
) -> None:
    """Show a study in the browser: move a limit, see the design. Ctrl-C ends it."""
    try:
        from cbabo.surfaces.web.app import make_app
        from cbabo.surfaces.web.server import make_server
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"serve: the package {error.name} is missing; install it by: pip install 'cbabo[web]'"
        ) from error
    from cbabo.numerics.threads import one_thread

    opened, simulator = open_study(study), find_simulator("serve", study, evaluator, required=False)
    listening = listen(port)
    number = listening.getsockname()[1]
    token = secrets.token_urlsafe(18)
    address = f"http://127.0.0.1:{number}/#token={token}"
    with one_thread(), tempfile.TemporaryDirectory(prefix="cbabo-") as folder:
        server = make_server(make_app(opened, simulator, token, number))
        typer.echo(f"The explorer of {opened.name}: {address}")
        typer.echo(f"Token, needed to edit or simulate: {token} (until this server ends by Ctrl-C)")
        if browser:
            webbrowser.open(forwarding_page(Path(folder), address).as_uri())
        try:
            with simulator_output():
                server.run(sockets=[listening])
        except KeyboardInterrupt:  # which is how it ends
            raise CommandInterruptedError("the server has ended; everything told so far is stored") from None


def forwarding_page(folder: Path, address: str) -> Path:
    """Write a page that leads to an address, and that only its owner can read.

    What a browser is told to open is part of its command line, which every user of the machine can read.
    """
    page = folder / "explorer.html"
    page.touch(mode=0o600)
    page.write_text(
        f'<!DOCTYPE html><title>cbabo</title><meta http-equiv="refresh" content="0; url={address}">'
        f'<a href="{address}">The explorer</a>\n',
        encoding="utf-8",
    )
    return page


def listen(port: int) -> socket.socket:
    """Take a port, on this machine's own address only."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()  # who comes before the server is ready waits
    except OSError as error:
        listening.close()
        raise InputError(f"serve: port {port} cannot be used ({error.strerror}); choose another with --port") from error
    return listening
