"""When tasks on somebody else's executor begin."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from cbabo.evaluators.starts import StartReport, Starts, listening


class Foreign(Executor):
    """Of a kind that nobody knows; it says that everything is running."""


def running() -> Future[object]:
    future: Future[object] = Future()
    future.set_running_or_notify_cancel()
    return future


def test_a_thread_reports_by_itself() -> None:
    with ThreadPoolExecutor(1) as threads, listening(threads) as starts:
        assert starts is not None
        report, free = starts.report(), threading.Event()
        waiting, future = threads.submit(free.wait, 30), threads.submit(report.send)
        assert starts.when(report.token, future) is None  # its thread is busy
        free.set()
        future.result(30)
        assert waiting.result()
        began = starts.when(report.token, future)
        assert began is not None
        assert 0.0 <= time.monotonic() - began < 30.0


def test_another_process_reports_by_a_file() -> None:
    with ProcessPoolExecutor(1) as processes, listening(processes) as starts:
        assert starts is not None
        report = starts.report()
        assert starts.when(report.token, running()) is None  # what it calls running may be waiting
        code = "import pickle, sys; pickle.loads(bytes.fromhex(sys.argv[1])).send()"
        subprocess.run([sys.executable, "-c", code, pickle.dumps(report).hex()], check=True)
        assert starts.when(report.token, running()) is not None
        folder = Path(report.folder)
        assert folder.exists()
    assert not folder.exists()
    report.send()  # to nobody: nothing happens
    assert not folder.exists()


def test_a_forked_process_does_not_take_itself_for_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(Foreign()) as starts:
        assert starts is not None
        report = starts.report()
        monkeypatch.setattr(os, "getpid", lambda: -1)
        report.send()
        assert [path.name for path in Path(report.folder).iterdir()] == [report.token]


def test_an_unknown_executor_is_believed_until_a_task_has_reported(tmp_path: Path) -> None:
    starts = Starts(Foreign(), "run", str(tmp_path))
    assert starts.when("a", Future()) is None
    began = starts.when("a", running())
    assert began is not None
    assert starts.when("a", running()) == began
    starts.note("b")
    assert starts.when("c", running()) is None  # its tasks report, so this one still waits
    starts.note("a")
    later = starts.when("a", running())
    assert later is not None
    assert later > began


def test_without_a_limit_nothing_is_reported() -> None:
    StartReport("token").send()
    with listening(None) as starts:
        assert starts is None
