"""A worker process of the pool: it reads tasks from a pipe and answers them one after the other.

Every message about a task begins with the task's id and the number of the process that sends it. The driver takes those of the
task and of the worker that it asked, and no others. A process that a task forks does not get the pipes and never answers.

This file is run as a script and imports the package only when it has the driver's sys.path. The pipes are hidden
from user code, which finds an empty standard input and whose output goes to the log file.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, Any

_LENGTH = struct.Struct(">Q")
_PROCESS = struct.Struct(">Q")
ID_BYTES = 16
"""Bytes of a task's id."""
_LARGEST = 2**34
"""Bytes of a message that are read at most."""


def main() -> None:
    """Serve the driver until it closes the pipe or is gone."""
    incoming, outgoing = _take_pipes()
    # SIG_IGN would be inherited by simulators, some of which are stopped by an interrupt; a handler is not.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    faulthandler.enable()
    with suppress(EOFError, BrokenPipeError):
        path, log = pickle.loads(read_frame(incoming))
        sys.path[:] = path
        _serve(incoming, outgoing, path, log)


def write_frame(stream: IO[bytes], content: bytes) -> None:
    """Send one message: its length, then its bytes."""
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes:
    """Receive one message, or raise EOFError when the other side is gone."""
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size))
    return _read(stream, length)


def _read(stream: IO[bytes], length: int) -> bytes:
    if length > _LARGEST:
        raise OSError(f"a message of {length} bytes is announced, which no task sends")
    content = stream.read(length)
    if len(content) < length:
        raise EOFError("the other side of the pipe is gone")
    return content


def sealed(task: bytes, process: int, content: bytes) -> bytes:
    """Return a message about a task: its id, the process that sends it, and the content."""
    return task + _PROCESS.pack(process) + content


def opened(message: bytes, task: bytes, process: int) -> bytes:
    """Return the content of a message, or raise OSError if it is not about this task or from another process."""
    head = sealed(task, process, b"")
    if not message.startswith(head):
        raise OSError("the message is of another task or process")
    return message[len(head) :]


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(_close, (incoming.fileno(), outgoing.fileno())))
    return incoming, outgoing


def _serve(incoming: IO[bytes], outgoing: IO[bytes], path: list[str], log: str) -> None:
    """Answer each task with two messages: an empty one when it begins, and its reply."""
    own = os.getpid()
    from pathlib import Path

    from cbabo.evaluators.logs import printed_log

    printed_log.set(Path(log))
    while True:
        task, wanted, body = pickle.loads(read_frame(incoming))
        if wanted != path:
            sys.path[:] = [*wanted, *(entry for entry in sys.path if entry not in wanted)]
            path = wanted
        with suppress(OSError):
            os.truncate(log, 0)
        call = _load(body)
        write_frame(outgoing, sealed(task, own, b""))
        reply = _reply(call)
        if os.getpid() != own:  # A process that the task has forked.
            os._exit(1)
        with suppress(Exception):
            sys.stdout.flush()
        write_frame(outgoing, sealed(task, own, reply))


def _close(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)


def _load(body: bytes) -> Callable[[], Any]:
    from cbabo.errors import EvaluationError
    from cbabo.evaluators.function import describe

    try:
        function, args, kwargs = pickle.loads(body)
        return partial(function, *args, **kwargs)
    except BaseException as error:
        reason = f"the task cannot be loaded in a worker ({describe(error)}); make its modules importable"
        return partial(_raise, EvaluationError(reason, log=traceback.format_exc(), cause="set-up"))


def _raise(error: Exception) -> None:
    raise error


def _reply(call: Callable[[], Any]) -> bytes:
    """Run the task and pack its result, or what it raised with the traceback's text."""
    import cloudpickle

    from cbabo.errors import EvaluationError
    from cbabo.evaluators.function import describe
    from cbabo.evaluators.logs import printed_tail

    text = ""
    try:
        result = call()
    except Exception as error:
        text = traceback.format_exc()
        with suppress(Exception):
            packed: bytes = cloudpickle.dumps((None, error, text))
            pickle.loads(packed)  # Some exceptions can be packed but not unpacked.
            return packed
        reason = describe(error)
    except BaseException as error:
        reason = f"the task tried to end its process ({describe(error)}); raise an Exception instead"
    else:
        try:
            sent: bytes = cloudpickle.dumps((result, None, ""))
            return sent
        except Exception as error:
            kind = type(result).__name__
            reason = f"the result, a {kind}, cannot be sent back ({describe(error)}); return plain numbers"
    return pickle.dumps((None, EvaluationError(reason, log=text or printed_tail()), text))


if __name__ == "__main__":
    main()
