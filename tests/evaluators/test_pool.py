from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, wait
from pathlib import Path

import psutil
import pytest

from cbabo.errors import EvaluationError, InputError
from cbabo.evaluators.function import perform
from cbabo.evaluators.pool import WorkerPool

from .processes import STUBBORN, all_gone, pids, start_driver, wait_until

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX processes")


def workers() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children():
        try:
            if any(word.endswith("worker.py") for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture(autouse=True)
def _no_worker_is_left() -> Iterator[None]:
    yield
    wait_until(lambda: not workers(), 5)


def failure(pool: WorkerPool, function: object) -> EvaluationError:
    with pytest.raises(EvaluationError) as caught:
        pool.submit(function).result(30)  # type: ignore[arg-type]
    return caught.value


# --- what works


def test_functions_of_every_kind() -> None:
    factor = 3
    with WorkerPool(2) as pool:
        assert list(pool.map(lambda x: factor * x, range(5))) == [0, 3, 6, 9, 12]
        assert pool.submit(divmod, 7, 2).result() == (3, 1)
        assert pool.submit(dict, a=1).result() == {"a": 1}
        assert pool.submit(os.getpid).result() != os.getpid()


def test_workers_start_when_needed_and_are_used_again() -> None:
    with WorkerPool(4) as pool:
        assert workers() == []
        assert len({pool.submit(os.getpid).result() for _ in range(5)}) == 1
        assert len(workers()) == 1


def test_a_worker_has_the_drivers_path_and_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "early_module.py").write_text("value = 1")
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "late_module.py").write_text("value = 2")

    def load(name: str) -> int:
        import importlib

        return int(importlib.import_module(name).value)

    with WorkerPool(1) as pool:
        sys.path.insert(0, str(tmp_path))
        assert pool.submit(load, "early_module").result() == 1
        sys.path.insert(0, str(tmp_path / "later"))
        assert pool.submit(load, "late_module").result() == 2
        assert pool.submit(os.getcwd).result() == str(tmp_path)


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    script = """
from dataclasses import dataclass
from cbabo.evaluators.pool import WorkerPool

@dataclass
class Result:
    value: float

def simulate(x):
    return Result(offset + x)

offset = 10
with WorkerPool(2) as pool:
    assert [result.value for result in pool.map(simulate, range(3))] == [10, 11, 12]
    assert isinstance(pool.submit(simulate, 1).result(), Result)
"""
    driver = start_driver(script, tmp_path)
    assert driver.wait(30) == 0


def test_user_code_may_print_and_read() -> None:
    def noisy() -> str:
        print("to stdout", flush=True)
        os.system("echo from a child")
        os.write(1, b"\x00\xff raw")
        return sys.stdin.read()

    with WorkerPool(1) as pool:
        assert pool.submit(noisy).result(30) == ""
        assert pool.submit(lambda: 1).result(30) == 1


def test_large_arguments_and_results() -> None:
    with WorkerPool(1) as pool:
        assert len(pool.submit(lambda data: data * 2, b"x" * 5_000_000).result()) == 10_000_000


# --- what fails


def test_an_exception_travels_back_with_its_traceback() -> None:
    def broken() -> None:
        raise KeyError("mesh")

    with WorkerPool(1) as pool, pytest.raises(KeyError, match="mesh") as caught:
        pool.submit(broken).result()
    assert "in broken" in "".join(caught.value.__notes__)


def test_what_a_failing_simulator_printed_is_in_the_log() -> None:
    def simulate(point: dict[str, float]) -> dict[str, float]:
        print("residual 1e9")
        raise ValueError("diverged")

    with WorkerPool(1) as pool:
        pool.submit(print, "of another task").result()
        outcome = pool.submit(perform, simulate, {"x": 1.0}, ("y",), 1).result()
    assert outcome.failure == "ValueError: diverged"
    assert outcome.log.endswith("--- printed\nresidual 1e9")
    assert "of another task" not in outcome.log


def test_exceptions_that_cannot_travel() -> None:
    class Sealed(Exception):  # noqa: N818
        def __init__(self, first: int, second: int) -> None:
            super().__init__("sealed message")

    def sealed() -> None:
        raise Sealed(1, 2)

    def locked() -> None:
        error = RuntimeError("locked message")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    with WorkerPool(1) as pool:
        assert failure(pool, sealed).reason == "Sealed: sealed message"
        assert "in locked" in failure(pool, locked).log


def test_leaving_the_process_is_a_failure_of_the_task() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with WorkerPool(1) as pool:
        assert "SystemExit: 3" in failure(pool, lambda: sys.exit(3)).reason
        assert "KeyboardInterrupt" in failure(pool, interrupted).reason


def test_a_result_that_cannot_be_sent() -> None:
    with WorkerPool(1) as pool:
        assert "a lock, cannot be sent back" in failure(pool, lambda: threading.Lock()).reason


def test_a_task_that_cannot_be_sent() -> None:
    lock = threading.Lock()
    with WorkerPool(1) as pool, pytest.raises(InputError, match="cannot be sent to a worker"):
        pool.submit(lambda: lock)


def test_a_task_that_cannot_be_loaded() -> None:
    class Poison:
        def __reduce__(self) -> tuple[object, ...]:
            return (exec, ("raise SystemExit('no module here')",))

    with WorkerPool(1) as pool:
        with pytest.raises(EvaluationError, match=r"cannot be loaded in a worker .*no module here"):
            pool.submit(print, Poison()).result()
        assert pool.submit(lambda: 1).result() == 1


@pytest.mark.parametrize(("count", "timeout"), [(0, None), (1.5, None), (1, 0.0), (1, -1.0)])
def test_what_is_refused(count: int, timeout: float | None) -> None:
    with pytest.raises(InputError):
        WorkerPool(count, timeout)


# --- what dies


def test_a_dead_worker_costs_one_task() -> None:
    def die() -> None:
        print("last words")
        os._exit(3)

    with WorkerPool(2) as pool:
        futures = [pool.submit(die if i == 2 else os.getpid) for i in range(6)]
        wait(futures)
        errors = [future.exception() for future in futures]
    assert [error is not None for error in errors] == [False, False, True, False, False, False]
    error = errors[2]
    assert isinstance(error, EvaluationError)
    assert "died during the task (it exited with code 3)" in error.reason
    assert error.retryable
    assert error.log == "last words"


@posix
def test_a_segmentation_fault_shows_where_it_was() -> None:
    def crash() -> None:
        os.kill(os.getpid(), 11)

    with WorkerPool(1) as pool:
        error = failure(pool, crash)
        assert "was killed by signal 11 (SIGSEGV)" in error.reason
        assert "in crash" in error.log
        assert pool.submit(lambda: 1).result() == 1


def test_a_worker_that_dies_idle_costs_nothing() -> None:
    with WorkerPool(1) as pool:
        pid = pool.submit(os.getpid).result()
        psutil.Process(pid).kill()
        wait_until(lambda: not psutil.pid_exists(pid))
        wait_until(lambda: pool._slots[0]._worker is not None and not pool._slots[0]._worker.alive)
        assert pool.submit(os.getpid).result() != pid


def test_a_hung_task_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(STUBBORN)
    program = str(tmp_path / "program.py")
    folder = str(tmp_path)

    def hang() -> None:
        subprocess.run([sys.executable, program, folder, program], start_new_session=True)

    with WorkerPool(2, timeout=3.0) as pool:
        hung = pool.submit(hang)
        assert pool.submit(lambda: 1).result() == 1
        error = hung.exception(30)
        assert isinstance(error, EvaluationError)
        assert "no answer within 3 s" in error.reason
        assert error.retryable
        assert len(pids(tmp_path)) == 2
        assert all_gone(pids(tmp_path))
        assert pool.submit(lambda: 2).result() == 2


def test_the_time_in_the_queue_does_not_count() -> None:
    with WorkerPool(1, timeout=2.0) as pool:
        futures = [pool.submit(time.sleep, 0.8) for _ in range(3)]
        assert [future.result() for future in futures] == [None] * 3


def test_a_dead_workers_offspring_is_killed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(STUBBORN)
    program = str(tmp_path / "program.py")
    folder = str(tmp_path)

    def die() -> None:
        import glob

        subprocess.Popen([sys.executable, program, folder], start_new_session=True)
        while not glob.glob(folder + "/*.pid"):  # noqa: PTH207
            time.sleep(0.02)
        os._exit(1)

    with WorkerPool(1) as pool:
        assert "died" in failure(pool, die).reason
        assert len(pids(tmp_path)) == 1
        assert all_gone(pids(tmp_path))


@posix
def test_a_fork_that_holds_the_pipe_does_not_hide_the_death() -> None:
    def die() -> None:
        if os.fork() == 0:
            time.sleep(60)
        os._exit(7)

    with WorkerPool(1) as pool:
        assert "exited with code 7" in failure(pool, die).reason


@posix
def test_a_forked_child_that_returns_does_not_answer() -> None:
    def fork(number: int) -> tuple[int, bool]:
        parent = os.getpid()
        os.fork()
        return number, os.getpid() == parent

    with WorkerPool(1) as pool:
        answers = [pool.submit(fork, number).result(30) for number in range(10)]
    assert answers == [(number, True) for number in range(10)]


@posix
@pytest.mark.parametrize(
    "ending", ["raise ValueError('child')", "sys.exit(3)", "os._exit(4)", "raise KeyboardInterrupt"]
)
def test_a_forked_child_that_raises_neither_answers_nor_hangs(ending: str) -> None:
    def fork() -> int:
        child = os.fork()
        if child == 0:
            exec(ending, {"os": os, "sys": sys})
        return os.waitpid(child, 0)[0] == child

    with WorkerPool(1) as pool:
        assert [pool.submit(fork).result(30) for _ in range(3)] == [True] * 3


@posix
def test_what_somebody_else_writes_to_the_pipe_costs_one_task() -> None:
    def forge() -> None:
        import pickle
        import struct

        reply = bytes(16) + struct.pack(">Q", os.getpid()) + pickle.dumps((42, None, ""))
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, struct.pack(">Q", len(reply)) + reply)
            except OSError:
                continue

    with WorkerPool(1) as pool:
        assert "something other than the worker" in failure(pool, forge).reason
        assert pool.submit(lambda: 1).result() == 1


@posix
def test_a_task_that_closes_the_pipe() -> None:
    def close() -> None:
        os.closerange(3, 64)
        time.sleep(60)

    with WorkerPool(1) as pool:
        assert "closed the pipe" in failure(pool, close).reason
        assert pool.submit(lambda: 1).result() == 1


@posix
def test_an_interrupt_does_not_stop_a_worker() -> None:
    def interrupted() -> int:
        os.kill(os.getpid(), 2)
        time.sleep(0.1)
        return 1

    def child_stops() -> int:
        child = subprocess.Popen(["sleep", "60"])
        child.send_signal(2)
        return child.wait()

    with WorkerPool(1) as pool:
        assert pool.submit(interrupted).result() == 1
        assert pool.submit(child_stops).result() == -2


# --- the end of the pool


def test_the_end_waits_for_the_tasks() -> None:
    with WorkerPool(1) as pool:
        futures = [pool.submit(time.sleep, 0.1) for _ in range(3)]
    assert all(future.done() and future.exception() is None for future in futures)
    with pytest.raises(RuntimeError):
        pool.submit(time.sleep, 0)


def test_a_quick_end_kills_what_is_running(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(STUBBORN)
    words = [sys.executable, str(tmp_path / "program.py"), str(tmp_path)]
    pool = WorkerPool(1)
    running = pool.submit(subprocess.run, words, start_new_session=True)
    waiting = pool.submit(time.sleep, 60)
    wait_until(lambda: pids(tmp_path))
    pool.shutdown(wait=False, cancel_futures=True)
    assert all_gone(pids(tmp_path))
    assert workers() == []
    with pytest.raises(EvaluationError, match="shut down"):
        running.result(5)
    with pytest.raises(CancelledError):
        waiting.result(5)
    pool.shutdown()


def test_a_slow_end_without_waiting_lets_tasks_run_out() -> None:
    pool = WorkerPool(1)
    futures = [pool.submit(pow, 2, n) for n in range(3)]
    pool.shutdown(wait=False)
    assert [future.result(30) for future in futures] == [1, 2, 4]


def test_an_exception_in_the_block_does_not_wait() -> None:
    futures = []

    def run() -> None:
        with WorkerPool(1) as pool:
            futures.append(pool.submit(time.sleep, 60))
            wait_until(futures[0].running)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert isinstance(futures[0].exception(5), EvaluationError)


def test_a_forgotten_pool_takes_its_workers_along(tmp_path: Path) -> None:
    pool = WorkerPool(1)
    pid = pool.submit(os.getpid).result()
    del pool
    wait_until(lambda: not psutil.pid_exists(pid))
    script = "from cbabo.evaluators.pool import WorkerPool\npool = WorkerPool(1)\npool.submit(print, 1).result()"
    assert start_driver(script, tmp_path).wait(30) == 0
