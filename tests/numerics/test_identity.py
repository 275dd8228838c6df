from __future__ import annotations

import os
import subprocess
import sys

from cbabo.numerics.identity import machine, process_start


def test_a_machine_has_one_id() -> None:
    assert machine() == machine()
    assert machine().strip()


def test_a_process_is_told_from_another_and_from_a_dead_one() -> None:
    assert process_start(os.getpid()) is not None
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    begun = process_start(other.pid)
    assert begun is not None
    assert begun == process_start(other.pid)
    other.kill()
    other.wait()
    other.communicate()
    assert process_start(other.pid) != begun
