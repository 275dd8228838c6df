from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from cbabo.storage import lock
from cbabo.storage.lock import STALE_SECONDS, Holder


def test_this_process_is_alive() -> None:
    here = Holder.here()
    assert here.alive
    assert here.pid == os.getpid()
    assert here.token != Holder.here().token


def test_a_dead_process_on_this_machine_is_known_at_once() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    holder = replace(Holder.here(), pid=child.pid, process_started=lock.psutil.Process(child.pid).create_time())
    assert holder.alive
    child.kill()
    deadline = time.monotonic() + 10
    while holder.alive and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not holder.alive  # still a zombie: nobody has waited for it
    child.communicate()
    assert not holder.alive


def test_a_reused_process_number_is_not_the_holder() -> None:
    assert not replace(Holder.here(), process_started=Holder.here().process_started - 100.0).alive


@pytest.mark.parametrize(("age", "alive"), [(0.0, True), (STALE_SECONDS - 5, True), (STALE_SECONDS + 5, False)])
def test_on_another_machine_the_heartbeat_decides(age: float, alive: bool) -> None:
    holder = replace(Holder.here(), machine="elsewhere|pid:[1]", heartbeat=time.time() - age)
    assert holder.alive is alive
    assert holder.label == f"process {holder.pid} on elsewhere"
