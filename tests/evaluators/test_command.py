from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cbabo.errors import EvaluationError, InputError
from cbabo.evaluators.command import CommandEvaluator
from cbabo.evaluators.function import perform
from cbabo.evaluators.placeholders import fill
from cbabo.evaluators.readings import named_values
from cbabo.numerics.identity import machine, process_start

from .processes import STUBBORN, all_gone, lives, pids, wait_until

PYTHON = sys.executable


def evaluator(tmp_path: Path, source: str, *words: str, **fields: Any) -> CommandEvaluator:
    """A command that runs Python source, with further words as its arguments."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(source))
    return CommandEvaluator(
        command=(PYTHON, "{here}/program.py", *words), workdir=tmp_path / "runs", directory=tmp_path, **fields
    )


def failure(simulator: CommandEvaluator, **point: float) -> EvaluationError:
    with pytest.raises(EvaluationError) as caught:
        simulator(point)
    return caught.value


# --- placeholders


def test_only_known_names_are_replaced() -> None:
    text = '{"x": {x}, "y": {y}} proc f {} { return ${x} } {x: 3} {x.real} {here}/a {xx}'
    assert (
        fill(text, {"x": 0.5, "here": "/h"}, "a test")
        == '{"x": 0.5, "y": {y}} proc f {} { return $0.5 } {x: 3} {x.real} /h/a {xx}'
    )


def test_formats() -> None:
    assert fill("{x:.3e} {x:08.3f} {n} {n:03d}", {"x": 1.5, "n": 7}, "a test") == "1.500e+00 0001.500 7 007"


def test_odd_names_are_taken_literally() -> None:
    assert fill("{a.b} {a+} {axb}", {"a.b": 1.0, "a+": 2.0}, "a test") == "1.0 2.0 {axb}"


def test_a_bad_format_is_explained() -> None:
    with pytest.raises(EvaluationError, match=r"\{x:q\} in a test .* 1\.5"):
        fill("{x:q}", {"x": 1.5}, "a test")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_make_the_round_trip(value: float) -> None:
    assert float(fill("{x}", {"x": value}, "a test")) == value


# --- reading


def test_lines_are_picked_out() -> None:
    lines = [
        "Solver 3.1 (build=7)\n",
        "  mass = 1.5\n",
        "drag=2.5e-3\r\n",
        "lift = 1.0D+02\n",
        "status = ok\n",
        "two words = 3\n",
        "mass=-.5\n",
        "bad = NaN\n",
    ]
    values = named_values(lines)
    assert values.pop("bad") != 0
    assert values == {"mass": -0.5, "drag": 0.0025, "lift": 100.0}


# --- running


def test_outputs_from_stdout_and_a_removed_directory(tmp_path: Path) -> None:
    simulator = evaluator(tmp_path, "import sys; print('hello'); print('y =', float(sys.argv[1]) * 2)", "{x}")
    assert simulator({"x": 0.1}) == {"y": 0.2}
    assert list((tmp_path / "runs").iterdir()) == []


def test_outputs_from_json_and_from_lines(tmp_path: Path) -> None:
    source = """
        import json, pathlib
        point = json.loads(pathlib.Path("inputs.json").read_text())
        pathlib.Path("out.json").write_text(json.dumps({"y": point["x"], "note": "fine"}))
        pathlib.Path("out.txt").write_text(f"y={point['x']}")
    """
    assert evaluator(tmp_path, source, outputs="out.json")({"x": 0.1}) == {"y": 0.1}
    assert evaluator(tmp_path, source, outputs="out.txt")({"x": 0.1}) == {"y": 0.1}


def test_the_work_directory(tmp_path: Path) -> None:
    template = tmp_path / "deck.tpl"
    template.write_bytes(b"# \xe9 {unknown}\r\nx = {x:.2f}\n")
    template.chmod(0o755)
    simulator = evaluator(
        tmp_path,
        "import os; print('n=' + os.environ['CBABO_EVALUATION']); print(os.environ['WHERE'], os.getcwd())",
        keep="always",
        templates={"sub/deck.txt": template},
        env={"WHERE": "{workdir}|{x}"},
    )
    outcome = perform(simulator, {"x": 0.5, "k": 3}, ("n",), 31)
    assert outcome.outputs == {"n": 31.0}
    (place,) = (tmp_path / "runs").iterdir()
    assert place.name.startswith("00031-")
    assert json.loads((place / "inputs.json").read_text()) == {"x": 0.5, "k": 3}
    assert (place / "sub" / "deck.txt").read_bytes() == b"# \xe9 {unknown}\r\nx = 0.50\n"
    if os.name == "posix":
        assert os.access(place / "sub" / "deck.txt", os.X_OK)
    assert (place / "stdout.txt").read_text().splitlines()[1] == f"{place}|0.5 {place}"
    assert (place / "stderr.txt").read_text() == ""


def test_integers_stay_integers_whatever_their_library(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    simulator = evaluator(tmp_path, "import sys; print('y =', int(sys.argv[1]) + float(sys.argv[2]))", "{n}", "{x}")
    assert simulator({"n": numpy.int64(3), "x": numpy.float64(0.5)}) == {"y": 3.5}


def test_a_label_is_handed_over_as_it_is(tmp_path: Path) -> None:
    source = """
        import json, pathlib, sys
        stated = json.loads(pathlib.Path("inputs.json").read_text())["material"]
        written = pathlib.Path("deck.txt").read_text()
        print("same =", int(sys.argv[1] == stated == written == "AISI 316; echo $0"))
        """
    (tmp_path / "deck.in").write_text("{material}")
    simulator = evaluator(tmp_path, source, "{material}", outputs="stdout", templates={"deck.txt": "deck.in"})
    assert simulator({"material": "AISI 316; echo $0"}) == {"same": 1.0}
    line = f"{PYTHON} {tmp_path / 'program.py'} {{material}}"
    by_shell = replace(simulator, command=(line,), shell=True)
    assert by_shell({"material": "AISI 316; echo $0"}) == {"same": 1.0}


def test_standard_input_is_empty(tmp_path: Path) -> None:
    assert evaluator(tmp_path, "import sys; print(f'y={len(sys.stdin.read())}')")({}) == {"y": 0.0}


def test_it_can_be_pickled(tmp_path: Path) -> None:
    simulator = pickle.loads(pickle.dumps(evaluator(tmp_path, "print('y=1')")))
    assert simulator({}) == {"y": 1.0}


def test_evaluations_at_the_same_time_do_not_meet(tmp_path: Path) -> None:
    simulator = evaluator(tmp_path, "import json; print('y =', json.load(open('inputs.json'))['x'])")
    results: dict[float, float] = {}

    def evaluate(x: float) -> None:
        results[x] = simulator({"x": x})["y"]

    threads = [threading.Thread(target=evaluate, args=(float(x),)) for x in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {float(x): float(x) for x in range(6)}


def test_no_shell_unless_asked_for(tmp_path: Path) -> None:
    simulator = evaluator(tmp_path, "import sys; print('y =', len(sys.argv)); print(sys.argv)", "$(touch hacked); a")
    assert simulator({}) == {"y": 2.0}


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_a_shell_line_with_an_awkward_path(tmp_path: Path) -> None:
    folder = tmp_path / "it's; $(touch hacked) a folder"
    folder.mkdir()
    (folder / "data.txt").write_text("y = 4\n")
    simulator = CommandEvaluator(
        ("cat {here}/data.txt | sed 's/4/5/'; echo z = {x}; test -d {workdir}",), folder / "runs", folder, shell=True
    )
    assert simulator({"x": 1e-30}) == {"y": 5.0, "z": 1e-30}
    assert sorted(path.name for path in folder.iterdir()) == ["data.txt", "runs"]


# --- failing


def test_a_return_code(tmp_path: Path) -> None:
    source = "import sys; print('step 1'); print('no licence', file=sys.stderr); sys.exit(3)"
    simulator = evaluator(tmp_path, source, retry_return_codes=(3,))
    error = failure(simulator)
    assert "exited with code 3" in error.reason
    assert error.retryable
    (place,) = (tmp_path / "runs").iterdir()
    assert place.name.startswith("point-")
    assert error.log == f"--- stderr\nno licence\n--- stdout\nstep 1\nThe directory of this evaluation is kept: {place}"
    assert not failure(evaluator(tmp_path, source)).retryable
    assert evaluator(tmp_path, source + "", allowed_return_codes=(0, 3))({}) == {}


def test_a_long_log_is_cut_but_says_where(tmp_path: Path) -> None:
    source = "import sys; print('o' * 9000); print('e' * 9000, file=sys.stderr); sys.exit(1)"
    outcome = perform(evaluator(tmp_path, source), {}, ("y",), 4)
    assert len(outcome.log) <= 4000
    assert "00004-" in outcome.log.splitlines()[-1]
    assert outcome.log.count("o" * 1000) == 1


def test_a_directory_is_never_kept_if_so_wished(tmp_path: Path) -> None:
    error = failure(evaluator(tmp_path, "print('why'); raise SystemExit(1)", keep="never"))
    assert list((tmp_path / "runs").iterdir()) == []
    assert error.log == "--- stdout\nwhy"


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_crash_names_the_signal(tmp_path: Path) -> None:
    error = failure(evaluator(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"))
    assert "was killed by signal 11 (SIGSEGV)" in error.reason


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    error = failure(CommandEvaluator(("no-such-program-at-all",), tmp_path / "runs", tmp_path))
    assert "cannot be started" in error.reason
    assert "{here}" in error.reason


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "but did not"), ("{", "not JSON"), ("[1]", "holds a list"), ('{"z": 1}', "'y' is declared")],
)
def test_a_bad_output_file_keeps_the_directory(tmp_path: Path, content: str | None, message: str) -> None:
    source = f"print('log line')\nif {content!r} is not None: open('out.json', 'w').write({content!r})"
    outcome = perform(evaluator(tmp_path, source, outputs="out.json"), {}, ("y",), 1)
    assert outcome.failure is not None
    assert message in outcome.failure
    assert "log line" in outcome.log
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_a_template_that_has_gone(tmp_path: Path) -> None:
    simulator = evaluator(tmp_path, "", templates={"a": tmp_path / "gone.txt"})
    assert "gone.txt cannot be read" in failure(simulator).reason


def test_a_bad_format_in_a_template(tmp_path: Path) -> None:
    (tmp_path / "deck.txt").write_text("{x:d}")
    simulator = evaluator(tmp_path, "", templates={"deck": tmp_path / "deck.txt"})
    assert "{x:d} in the template deck.txt" in failure(simulator, x=0.5).reason


def test_a_workdir_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    assert "no directory can be made" in failure(evaluator(tmp_path, "")).reason


@pytest.mark.parametrize("fields", [{"templates": {"../a": Path("b")}}, {"outputs": "/tmp/out.json"}])
def test_files_outside_the_directory_are_refused(tmp_path: Path, fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="relative to its own directory"):
        evaluator(tmp_path, "", **fields)


def test_an_empty_command_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is empty"):
        CommandEvaluator((), tmp_path)


# --- what it starts


def test_a_timeout_kills_the_whole_tree(tmp_path: Path) -> None:
    simulator = evaluator(tmp_path, STUBBORN, str(tmp_path), "{here}/program.py", timeout=2.5)
    error = failure(simulator)
    assert "no answer within 2.5 s" in error.reason
    assert error.retryable
    assert len(pids(tmp_path)) == 2
    assert all_gone(pids(tmp_path))


@pytest.mark.skipif(os.name != "posix", reason="needs double forks")
def test_a_timeout_finds_a_daemon_that_has_left_the_tree(tmp_path: Path) -> None:
    source = """
        import os, pathlib, time
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            pathlib.Path("{}", str(os.getpid()) + ".pid").touch()
            time.sleep(60)
        os.wait()
        time.sleep(60)
    """.replace("{}", str(tmp_path))
    failure(evaluator(tmp_path, source, timeout=2.5))
    assert len(pids(tmp_path)) == 1
    assert all_gone(pids(tmp_path))


def test_a_failed_command_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(STUBBORN)
    source = f"""
        import pathlib, subprocess, sys, time
        subprocess.Popen([sys.executable, {str(tmp_path / "child.py")!r}, {str(tmp_path)!r}], start_new_session=True)
        while not list(pathlib.Path({str(tmp_path)!r}).glob("*.pid")):
            time.sleep(0.02)
        sys.exit(1)
    """
    failure(evaluator(tmp_path, source))
    assert len(pids(tmp_path)) == 1
    assert all_gone(pids(tmp_path))


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
def test_ctrl_c_kills_the_command(tmp_path: Path) -> None:
    simulator = evaluator(tmp_path, STUBBORN, str(tmp_path))

    def interrupt() -> None:
        wait_until(lambda: pids(tmp_path))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        simulator({})
    thread.join()
    assert all_gone(pids(tmp_path))


@pytest.mark.skipif(shutil.which("sleep") is None, reason="needs sleep")
def test_a_background_child_does_not_hold_up_a_finished_command_and_ends_with_it(tmp_path: Path) -> None:
    source = """
        import pathlib, subprocess
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        print("y =", child.pid)
    """
    child = int(evaluator(tmp_path, source)({})["y"])
    wait_until(lambda: not lives(child))


def interrupted_directory(simulator: CommandEvaluator, number: int, claim: list[Any]) -> Path:
    place = simulator.workdir / f"{number:05d}-abcdef"
    place.mkdir(parents=True)
    (place / ".running").write_text(json.dumps(claim))
    (place / "huge.bin").write_bytes(b"0")
    return place


def test_the_directory_of_an_interrupted_evaluation_is_removed_when_it_runs_again(tmp_path: Path) -> None:
    simulator = evaluator(tmp_path, "print('y = 1')")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = interrupted_directory(simulator, 3, [machine(), gone.pid, 1.0])
    reused = interrupted_directory(simulator, 4, [machine(), os.getpid(), 1.0])  # The number is another process's now.
    live = interrupted_directory(simulator, 5, [machine(), os.getpid(), process_start(os.getpid())])
    foreign = interrupted_directory(simulator, 6, ["another machine", gone.pid, 1.0])
    for number in (3, 4, 5, 6):
        assert perform(simulator, {}, ("y",), number).complete
    assert [place.exists() for place in (dead, reused, live, foreign)] == [False, False, True, True]


def test_no_claim_is_left_in_a_directory_that_is_kept(tmp_path: Path) -> None:
    simulator = replace(evaluator(tmp_path, "print('y = 1')"), keep="always")
    assert perform(simulator, {}, ("y",), 1).complete
    (place,) = simulator.workdir.iterdir()
    assert not (place / ".running").exists()


OUTPUT_FILES = {
    "pipe": "import os; os.mkfifo('out.txt')",
    "endless device": "import os; os.symlink('/dev/zero', 'out.txt')",
    "folder": "import os; os.mkdir('out.txt')",
    "one line too large": "f = open('out.txt', 'w'); f.write('y = 1' + ' ' * 2000)",
    "sparse": "f = open('out.txt', 'wb'); f.truncate(10**12)",
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX files")
@pytest.mark.parametrize("source", OUTPUT_FILES.values(), ids=OUTPUT_FILES)
def test_only_a_regular_file_of_limited_size_is_read(tmp_path: Path, source: str) -> None:
    simulator = replace(evaluator(tmp_path, source), outputs="out.txt", largest_file=1000, timeout=20.0)
    with pytest.raises(EvaluationError, match=r"regular file|at most 1,000 bytes|cannot be read"):
        simulator({})


def test_a_link_to_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "shared.txt").write_text("y = 4")
    source = f"import os; os.symlink({str(tmp_path / 'shared.txt')!r}, 'out.txt')"
    assert replace(evaluator(tmp_path, source), outputs="out.txt")({}) == {"y": 4.0}


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(x=st.floats(allow_nan=False, allow_infinity=False))
def test_a_point_arrives_exactly(tmp_path: Path, x: float) -> None:
    source = (
        "import json, sys; x = json.load(open('inputs.json'))['x']; assert x == float(sys.argv[1]); print('y =', x)"
    )
    assert evaluator(tmp_path, source, "{x}")({"x": x}) == {"y": x}
