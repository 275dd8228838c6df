from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cbabo.numerics import identity
from cbabo.numerics.identity import process_start
from cbabo.storage.lock import STALE_SECONDS, Holder

NOW = 1.8e9


def life(holder: Holder, now: float = NOW, *, local: bool = False) -> str:
    return holder.life(now, local=local)


def test_this_process_is_alive() -> None:
    here = Holder.here()
    assert life(here) == "alive"
    assert here.pid == os.getpid()
    assert here.token != Holder.here().token


def test_a_dead_process_of_this_boot_is_known_at_once() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    holder = replace(Holder.here(), pid=child.pid, process_started=process_start(child.pid) or 0.0)
    assert life(holder) == "alive"
    child.kill()
    deadline = time.monotonic() + 10
    while life(holder) == "alive" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert life(holder) == "dead"  # still a zombie: nobody has waited for it
    child.communicate()
    assert life(holder) == "dead"


def test_a_reused_process_number_is_not_the_holder() -> None:
    assert life(replace(Holder.here(), process_started=Holder.here().process_started - 100.0)) == "dead"


@pytest.mark.parametrize("step", [-3600.0, -1.0, 1.0, 3600.0])
def test_a_step_of_the_clock_changes_nothing_on_one_machine(step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Holder.here()
    gone = replace(here, pid=2**22 + 1)
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + step)
    monkeypatch.setattr(identity.psutil, "boot_time", lambda: 0.0 + step)
    assert Holder.here().process_started == here.process_started
    assert life(here, clock() + step) == "alive"
    assert life(gone, clock() + step) == "dead"


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (0.0, "alive"),
        (STALE_SECONDS - 5, "alive"),
        (STALE_SECONDS + 5, "uncertain"),
        (3600.0, "uncertain"),
        (-3600.0, "uncertain"),
    ],
)
def test_on_another_machine_a_recent_heartbeat_means_alive(age: float, expected: str) -> None:
    holder = replace(Holder.here(), machine="boot:another|pid:[1]", host="elsewhere", heartbeat=NOW - age)
    assert life(holder) == expected
    assert holder.label == f"process {holder.pid} on elsewhere"


@pytest.mark.skipif(not identity._BOOT.exists(), reason="there is no boot id")
def test_two_hosts_of_one_name_are_two(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = Holder.here()
    (tmp_path / "boot_id").write_text("0a0a0a0a-0000-0000-0000-000000000000\n")
    monkeypatch.setattr(identity, "_BOOT", tmp_path / "boot_id")
    identity.machine.cache_clear()
    try:
        there = Holder.here()
        assert (there.host, there.pid) == (here.host, here.pid)
        assert there.machine != here.machine
        assert life(replace(here, heartbeat=NOW - 3600.0)) == "uncertain"  # not dead by a look at our own processes
        assert life(replace(here, heartbeat=NOW)) == "alive"
        assert life(replace(here, heartbeat=NOW), local=True) == "dead"  # of an earlier boot of this machine
    finally:
        identity.machine.cache_clear()


def test_without_proc_the_start_of_a_process_is_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(identity, "_PROCESSES", tmp_path)
    assert process_start(os.getpid()) == pytest.approx(identity.psutil.Process().create_time())
    assert process_start(2**22 + 1) is None
    assert life(Holder.here()) == "alive"
