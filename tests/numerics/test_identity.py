from __future__ import annotations

import os
import subprocess
import sys

from cbabo.numerics.identity import machine_id, process_start


def test_a_machine_has_one_id() -> None:
    assert machine_id() == machine_id()
    assert machine_id().strip()
    assert " " not in machine_id()


def test_a_process_is_told_from_another_and_from_a_dead_one() -> None:
    assert process_start() == process_start(os.getpid())
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    begun = process_start(other.pid)
    assert begun is not None
    assert begun == process_start(other.pid)
    other.kill()
    other.wait()
    other.communicate()
    assert process_start(other.pid) != begun
