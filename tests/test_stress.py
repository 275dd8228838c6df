"""120 evaluations, four workers, every kind of failure, and a driver that is killed three times.

`benchmarks/soak.py` does more of this, and fails databases too.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import psutil

from cbabo import Problem, Settings, Study

BUDGET, KILLS = 120, 3
QUICK = Settings.paper().replace(inner_steps=2, hidden_width=8, initial_evaluations=100, batch_size=20)
"""What is proven here is not about the method, which is kept short; other tests kill it while it learns."""

DRIVER = textwrap.dedent("""
    import hashlib, os, signal, subprocess, sys, time
    sys.path.insert(0, {tests!r})
    from cbabo import Study
    from simulators import simulate_beam

    def evaluate(point):
        from cbabo.domain.current import current_evaluation

        number = current_evaluation.get()
        with open({log!r}, "a") as log:          # one short line in append mode: whole lines, whoever writes
            log.write(f"{{number}}\\n")
        trouble = int(hashlib.sha256(str(number).encode()).hexdigest(), 16) % 25
        if trouble == 0:
            raise ValueError("mesh did not converge")
        if trouble == 1:
            return {{**simulate_beam(point), "stress": float("inf")}}
        if trouble == 2:
            return {{"mass": 1.0}}
        if trouble == 3:
            subprocess.run([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
        if trouble == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02 + 0.003 * (number % 11))
        return simulate_beam(point)

    Study.open({url!r}, "beam").run(evaluate, budget={budget}, workers=4, timeout=2.0, asynchronous=True)
""")


def family(mark: str) -> list[psutil.Process]:
    """All processes that descend from a driver, recognised by a mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("STRESS_MARK") == mark:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def test_all_evaluations_survive_everything(beam: Problem, url: str, tmp_path: Path) -> None:
    study = Study.create(beam, url, settings=QUICK)
    log = tmp_path / "started.txt"
    log.touch()
    code = DRIVER.format(tests=str(Path(__file__).parent), log=str(log), url=url, budget=BUDGET)
    chance = random.Random(20260115)
    finished_at_kill: list[tuple[set[int], int]] = []  # what was stored, and how long the log was by then
    for kill in range(KILLS + 1):
        mark = f"{os.getpid()}-{kill}"
        driver = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "STRESS_MARK": mark})
        if kill == KILLS:
            assert driver.wait(120) == 0
            break
        goal = (kill + 1) * 30
        deadline = time.monotonic() + 60
        while len(study.evaluations) < goal and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(chance.uniform(0.0, 0.3))
        assert driver.poll() is None
        driver.kill()
        driver.wait()
        died = time.monotonic()
        while family(mark) and time.monotonic() < died + 5:
            time.sleep(0.05)
        assert family(mark) == []  # workers and their simulators are gone within five seconds
        stored = {row.id for row in study.evaluations if row.state != "running"}
        finished_at_kill.append((stored, len(log.read_text().split())))

    rows = study.evaluations
    assert [row.id for row in rows] == list(range(1, BUDGET + 1))  # all accounted for, none stored twice
    assert len(rows.running) == 0
    reasons = " ".join(str(row.failure) for row in rows.failed)
    for words in (
        "mesh did not converge",
        "'stress' must be a finite number",
        "'stress' is declared",
        "within 2 s",
        "signal 9",
    ):
        assert words in reasons
    assert 12 <= len(rows.failed) <= 36
    assert all(row.outputs and row.failure is None for row in rows.complete)

    started = [int(line) for line in log.read_text().split()]
    assert set(started) == set(range(1, BUDGET + 1))
    for stored, position in finished_at_kill:
        assert not stored & set(started[position:])  # what was stored is never run again
    assert max(Counter(started).values()) <= KILLS + 1
