"""Studies on a Dask cluster: a real scheduler and two worker processes, one of which is killed now and then."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest
from distributed import Client

from cbabo import Problem, Study
from cbabo.domain.evaluations import Evaluations
from cbabo.errors import EvaluationError, RunStoppedError
from cbabo.evaluators.command import CommandEvaluator
from cbabo.evaluators.guard import Guardian
from cbabo.surfaces import cli
from simulators import simulate_beam

TESTS = str(Path(__file__).parent)
PATH = os.pathsep.join([TESTS, *filter(None, [os.environ.get("PYTHONPATH")])])
ONCE_SLOW = """
import os, pathlib, sys, time
log = pathlib.Path(sys.argv[1])
first = not list(log.iterdir())
(log / str(os.getpid())).touch()
time.sleep(60 if first else 0)
print("mass=1", "stress=2", "frequency=3", "cost=4", sep="\\n")
"""


class Cluster:
    """A scheduler and workers with one thread each, in processes of their own and in a folder of their own."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._file = folder / "scheduler.json"
        settings = {
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
            "PYTHONPATH": PATH,
        }
        self._environment = {**os.environ, **settings}
        self._folder = folder
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        self._workers = self._start("worker", "--nworkers", str(workers), "--nthreads", "1")

    @property
    def address(self) -> str:
        """Where the scheduler listens, when it does."""
        wait_until(lambda: self._file.exists() and self._file.read_text().endswith("}"))
        found: str = json.loads(self._file.read_text())["address"]
        return found

    def _start(self, kind: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", kind, "--no-dashboard", "--scheduler-file", str(self._file), *words]
        with (self._folder / f"{kind}.log").open("wb") as log:
            return subprocess.Popen(
                command, cwd=self._folder, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )

    def close(self) -> None:
        """Kill everything, and be sure of it."""
        family = []
        for process in (self._workers, self.scheduler):
            with suppress(psutil.NoSuchProcess):
                family += [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
            process.kill()
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        for process in (self._workers, self.scheduler):
            process.wait()
        assert psutil.wait_procs(family, timeout=5)[1] == []


@contextmanager
def running_cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    with Guardian():  # nothing is left behind, even if the tests are killed
        cluster = Cluster(folder, workers)
        try:
            yield cluster
        finally:
            cluster.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def study(beam: Problem, url: str) -> Study:
    return Study.create(beam, url)


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def content(evaluations: Evaluations) -> list[tuple[object, ...]]:
    return [(row.id, row.state, dict(row.point), dict(row.outputs)) for row in evaluations]


def logging_simulator(folder: Path, pause: float = 0.0, hang_at: int | None = None) -> Callable[[dict], dict]:
    """The beam, which notes every start as a file ID-PID and waits a minute at the first try of `hang_at`."""

    def evaluate(point: dict[str, float]) -> dict[str, float]:
        from cbabo.domain.current import current_evaluation

        number = current_evaluation.get()
        first = not list(folder.glob(f"{number}-*"))
        (folder / f"{number}-{os.getpid()}").touch()
        time.sleep(60 if first and number == hang_at else pause)
        return simulate_beam(point)

    return evaluate


def starts(folder: Path, number: int) -> list[int]:
    """The worker processes that have begun the evaluation."""
    return [int(path.name.partition("-")[2]) for path in folder.glob(f"{number}-*")]


class InBackground(threading.Thread):
    """Calls a function beside the test; `end` waits for it and raises what it raised."""

    def __init__(self, function: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._function()
        except BaseException as error:
            self._error = error

    def end(self, seconds: float = 60.0) -> None:
        self.join(seconds)
        assert not self.is_alive(), "it takes too long"
        if self._error is not None:
            raise self._error


# ---- runs


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_run_on_a_cluster_equals_one_at_home(
    client: Client, study: Study, beam: Problem, tmp_path: Path, asynchronous: bool
) -> None:
    log = tmp_path / "log"
    log.mkdir()
    executor = client.get_executor()
    study.run(logging_simulator(log, 0.1), budget=12, executor=executor, workers=2, asynchronous=asynchronous)
    home = Study.create(beam, f"sqlite:///{tmp_path}/home.db")
    home.run(simulate_beam, budget=12)
    assert content(study.evaluations) == content(home.evaluations)
    assert len({row.worker for row in study.evaluations}) == 2
    assert all(len(starts(log, row.id)) == 1 for row in study.evaluations)
    assert all(row.seconds is not None and 0.1 <= row.seconds < 5 for row in study.evaluations)


def test_failures_are_stored_and_another_try_is_really_made(client: Client, study: Study, tmp_path: Path) -> None:
    def licence(point: dict[str, float]) -> dict[str, float]:
        from cbabo.domain.current import current_evaluation

        number = current_evaluation.get()
        if number == 2:
            raise ValueError("mesh did not converge")
        tries = tmp_path / f"tries-{number}"
        with tries.open("a") as file:
            file.write("x")
        if number == 3 and len(tries.read_text()) < 3:
            raise EvaluationError("no licence", retryable=True)
        return simulate_beam(point)

    study.run(licence, budget=4, executor=client.get_executor(), workers=2, retries=2)  # pure=True is Dask's default
    assert [row.state for row in study.evaluations] == ["complete", "failed", "complete", "complete"]
    assert study.evaluations[1].failure == "ValueError: mesh did not converge"
    assert (tmp_path / "tries-3").read_text() == "xxx"


# ---- workers that die


def test_a_killed_worker_costs_nothing_but_time(client: Client, study: Study, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    told: list[int] = []
    run = InBackground(
        lambda: study.run(
            logging_simulator(log, 0.05, hang_at=5),
            budget=14,
            executor=client.get_executor(),
            workers=2,
            on_result=lambda row: told.append(row.id),
        )
    )
    wait_until(lambda: starts(log, 5))
    (victim,) = starts(log, 5)
    os.kill(victim, signal.SIGKILL)
    run.end()
    assert [row.id for row in study.evaluations] == list(range(1, 15))  # none lost
    assert len(study.evaluations.complete) == 14
    assert sorted(told) == list(range(1, 15))  # none stored twice
    assert len(starts(log, 5)) == 2  # Dask has given it to another worker
    assert f":{victim}" not in str(study.evaluations[4].worker)


def test_a_design_that_kills_its_workers_is_a_failure(client: Client, study: Study) -> None:
    def deadly(point: dict[str, float]) -> dict[str, float]:
        from cbabo.domain.current import current_evaluation

        if current_evaluation.get() == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return simulate_beam(point)

    study.run(deadly, budget=6, executor=client.get_executor(), workers=2)
    failures = {row.id: str(row.failure) for row in study.evaluations.failed}
    assert 2 in failures
    assert all("the executor lost it (KilledWorker" in failure for failure in failures.values())
    assert len(study.evaluations) == 6
    assert len(study.evaluations.running) == 0
    assert len(study.evaluations.failed_designs) == 0


def test_a_command_dies_with_its_worker(client: Client, study: Study, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "simulator.py").write_text(ONCE_SLOW)
    command = (sys.executable, "{here}/simulator.py", "{here}/log")
    evaluate = CommandEvaluator(command, tmp_path / "runs", directory=tmp_path, timeout=20)
    run = InBackground(lambda: study.run(evaluate, budget=1, executor=client.get_executor(), workers=2))
    wait_until(lambda: list((tmp_path / "log").iterdir()))
    (pid,) = [int(path.name) for path in (tmp_path / "log").iterdir()]
    worker = psutil.Process(pid).parent()
    assert worker is not None
    worker.kill()
    wait_until(lambda: not lives(pid), 5)
    run.end()
    assert [row.state for row in study.evaluations] == ["complete"]


# ---- time


def test_the_time_of_an_evaluation_is_kept_by_the_run(client: Client, study: Study, tmp_path: Path) -> None:
    def slow(point: dict[str, float]) -> dict[str, float]:
        from cbabo.domain.current import current_evaluation

        if current_evaluation.get() == 4:
            for _ in range(1000):
                if (tmp_path / "enough").exists():
                    break
                time.sleep(0.02)
            (tmp_path / "ended").touch()
        return simulate_beam(point)

    study.run(slow, budget=3, executor=client.get_executor(), workers=2, timeout=60.0)
    study.run(slow, budget=4, executor=client.get_executor(), workers=2, timeout=1.5)
    assert [row.state for row in study.evaluations] == ["complete"] * 3 + ["failed"]
    assert study.evaluations[3].failure == "no answer within 1.5 s"
    assert study.evaluations[3].cause == "set-up"
    assert 1.0 < (study.evaluations[3].seconds or 0.0) < 10.0
    assert not (tmp_path / "ended").exists()  # a function in a worker of Dask's cannot be stopped
    (tmp_path / "enough").touch()
    wait_until((tmp_path / "ended").exists)
    assert study.evaluations[3].state == "failed"  # its late answer is nobody's


def test_time_in_the_clusters_queue_does_not_count(client: Client, study: Study, tmp_path: Path) -> None:
    """Two workers, sixteen evaluations of 0.3 s: the last waits for 2.1 s, more than the limit."""
    log = tmp_path / "log"
    log.mkdir()
    evaluate = logging_simulator(log, 0.3)
    study.run(evaluate, budget=16, executor=client.get_executor(), workers=16, timeout=2.0)
    assert [row.failure for row in study.evaluations.failed] == []


# ---- drivers and schedulers that die


def test_after_the_driver_was_killed_the_next_resumes(
    cluster: Cluster, client: Client, study: Study, url: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.mkdir()
    code = textwrap.dedent(f"""
        from pathlib import Path
        from distributed import Client
        from cbabo import Study
        from test_dask import logging_simulator

        with Client({cluster.address!r}) as client:
            evaluate = logging_simulator(Path({str(log)!r}), 0.3)
            Study.open({url!r}, "beam").run(evaluate, budget=10, executor=client.get_executor(), workers=2)
    """)
    driver = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": PATH})
    try:
        wait_until(lambda: len(study.evaluations.complete) >= 3)
    finally:
        driver.kill()
        driver.wait()
    stored = {row.id for row in study.evaluations.complete}
    left = {row.id for row in study.evaluations.running}
    assert 1 <= len(left) <= 2
    wait_until(lambda: not client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)), 5)
    told: list[int] = []
    study.run(
        logging_simulator(log),
        budget=10,
        executor=client.get_executor(),
        workers=2,
        on_result=lambda row: told.append(row.id),
    )
    assert sorted(told) == sorted(set(range(1, 11)) - stored)
    assert left <= set(told)
    assert [(row.id, row.state) for row in study.evaluations] == [(number, "complete") for number in range(1, 11)]


def test_a_run_that_ends_early_takes_back_what_it_has_submitted(client: Client, study: Study, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(
            logging_simulator(log, 0.5), budget=30, executor=client.get_executor(), workers=6, on_result=interrupt
        )
    wait_until(lambda: not client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)), 5)
    time.sleep(0.5)
    assert len(list(log.iterdir())) <= 4  # what waited in the cluster's queue was not begun
    assert len(study.evaluations.running) >= 5


def test_without_its_scheduler_a_run_stops_and_blames_no_design(study: Study, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    with (
        running_cluster(tmp_path, workers=1) as cluster,
        Client(cluster.address, set_as_default=False, timeout=5) as client,
    ):
        client.wait_for_workers(1, timeout=60)
        evaluate = logging_simulator(log, 0.05, hang_at=3)
        run = InBackground(lambda: study.run(evaluate, budget=20, executor=client.get_executor(), workers=2))
        wait_until(lambda: starts(log, 3) and len(study.evaluations.complete) == 2)
        cluster.scheduler.kill()
        with pytest.raises(RunStoppedError, match="the executor broke .* will be run again"):
            run.end()
    assert [row.state for row in study.evaluations] == ["complete"] * 2 + ["running"] * 2
    study.run(simulate_beam, budget=20)
    assert [row.id for row in study.evaluations.complete] == list(range(1, 21))


# ---- the command line


STUDY_FILE = """
problem:
  name: beam
  variables: [{name: width, type: real, low: 1, high: 3}]
  objective: minimize mass
  constraints: ["stress <= [1..9]"]
evaluator:
  python: simulator:evaluate
"""


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    """A study whose simulator lies in two modules beside it, where the cluster's workers do not look."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "beamlib.py").write_text("FACTOR = 2.0\ndef mass(width):\n    return FACTOR * width\n")
    (folder / "simulator.py").write_text(
        "import beamlib\nfrom beamlib import mass\n"
        "def evaluate(point):\n    return {'mass': mass(point['width']), 'stress': 1 + beamlib.FACTOR}\n"
    )
    (folder / "study.yaml").write_text(STUDY_FILE)
    return folder / "study.yaml"


def command(*words: object, patience: float = 6.0) -> subprocess.CompletedProcess[str]:
    code = f"import cbabo.surfaces.cli as cli; cli.cluster._CONNECT_SECONDS = {patience}; cli.main()"
    return subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, timeout=60)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[..., str]]:
    """Call the command line in this process, where nothing is left to import; return the one sentence that it ends with."""
    monkeypatch.setattr(cli.cluster, "_CONNECT_SECONDS", 1.0)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def call(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["cbabo", *map(str, words)])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        out, err = capfd.readouterr()
        assert (ending.value.code, out) == (2, "")
        assert err.count("\n") == 1
        return err

    yield call
    for name in ("simulator", "beamlib"):
        sys.modules.pop(name, None)


def test_the_command_line_runs_on_a_cluster(cluster: Cluster, client: Client, study_file: Path) -> None:
    words = ("run", study_file, "--dask", cluster.address, "--workers", 2, "--format", "json")
    done = command(*words, "--budget", 6)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["requested"], summary["complete"], summary["running"]) == (6, 6, 0)
    module = study_file.parent / "beamlib.py"
    module.write_text(module.read_text().replace("2.0", "3.0"))  # the same workers must not use the old one
    done = command(*words, "--budget", 8)
    assert done.returncode == 0, done.stderr
    evaluations = Study.open(f"sqlite:///{study_file.parent}/beam.db", "beam").evaluations
    factors = [row.outputs["mass"] / row.point["width"] for row in evaluations]
    assert factors == pytest.approx([2.0] * 6 + [3.0] * 2)
    assert {str(row.worker).rpartition(":")[2] for row in evaluations} <= {
        str(pid) for pid in client.run(os.getpid).values()
    }


def test_a_simulator_that_cannot_travel_gets_one_sentence(
    cluster: Cluster, client: Client, study_file: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli.cluster, "_CONNECT_SECONDS", 6.0)
    module = study_file.parent / "beamlib.py"
    module.write_text("import threading\nLOCK = threading.Lock()\n" + module.read_text())
    sentence = refused("run", study_file, "--dask", cluster.address, "--budget", 6)
    assert sentence.startswith("cbabo: --dask: the simulator cannot be sent to a cluster (TypeError: cannot pickle")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://127.0.0.1:9", "no scheduler answers at 'tcp://127.0.0.1:9' ("),
        ("http://127.0.0.1:8787", "expected an address such as tcp://host:8786, got 'http://127.0.0.1:8787' ("),
    ],
)
def test_a_wrong_address_gets_one_sentence(
    study_file: Path, address: str, words: str, refused: Callable[..., str]
) -> None:
    assert refused("run", study_file, "--dask", address).startswith(f"cbabo: --dask: {words}")


def test_the_address_of_the_dashboard_gets_one_sentence(study_file: Path) -> None:
    """In a process of its own, whose end closes the connection for which the server would wait."""

    class Silent(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Silent)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        done = command("run", study_file, "--dask", f"tcp://127.0.0.1:{server.server_port}", patience=1)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert done.returncode == 2
    assert "(something else does); give the address that it has printed" in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_dask_it_is_said_what_to_install(
    study_file: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    sentence = refused("run", study_file, "--dask", "tcp://127.0.0.1:9")
    assert sentence == "cbabo: --dask needs Dask's distributed; install it by: pip install 'cbabo[dask]'\n"


# ---- SLURM, as docs/clusters.md shows it


SBATCH = """#!/bin/sh
cp "$1" "$FAKE_SLURM/$$.sh"
setsid bash "$FAKE_SLURM/$$.sh" >"$FAKE_SLURM/$$.log" 2>&1 </dev/null &
echo $! >"$FAKE_SLURM/$!.job"
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
for job in "$@"; do kill -TERM -- "-$job"; done
"""


def test_the_script_for_slurm_works(study_file: Path, tmp_path: Path) -> None:
    documented = (Path(TESTS).parent / "docs" / "clusters.md").read_text()
    script = re.findall(r"<!-- executed by .*? -->\n```python\n(.*?)```", documented, re.DOTALL)[0]
    for stated, here in (
        ("budget=200", "budget=4"),
        ("16GB", "1GB"),
        ("maximum=16", "maximum=2"),
        ("workers=16", "workers=2"),
    ):
        assert stated in script
        script = script.replace(stated, here)
    (study_file.parent / "script.py").write_text(script)
    slurm = tmp_path / "slurm"
    slurm.mkdir()
    for name, content in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (slurm / name).write_text(content)
        (slurm / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{slurm}{os.pathsep}{os.environ['PATH']}", "FAKE_SLURM": str(slurm)}
    try:
        done = subprocess.run(
            [sys.executable, "script.py"],
            cwd=study_file.parent,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        jobs = [int(path.stem) for path in slurm.glob("*.job")]
        with suppress(AssertionError):
            wait_until(lambda: not any(map(lives, jobs)), 5)
        for job in jobs:
            with suppress(ProcessLookupError):
                os.killpg(job, signal.SIGKILL)
    assert done.returncode == 0, done.stderr
    evaluations = Study.open(f"sqlite:///{study_file.parent}/beam.db", "beam").evaluations
    assert [(row.id, row.state) for row in evaluations] == [(number, "complete") for number in range(1, 5)]
    assert len(jobs) >= 1


# ---- other people's executors in general


def test_what_a_thread_pool_started_dies_with_the_driver(study: Study, url: str, tmp_path: Path) -> None:
    code = textwrap.dedent(f"""
        import sys
        from concurrent.futures import ThreadPoolExecutor
        from pathlib import Path
        from cbabo import Study
        from cbabo.evaluators.command import CommandEvaluator

        sleep = "import os, pathlib, time; pathlib.Path('../../pid').write_text(str(os.getpid())); time.sleep(60)"
        evaluate = CommandEvaluator((sys.executable, "-c", sleep), Path({str(tmp_path)!r}) / "runs")
        with ThreadPoolExecutor(1) as threads:
            Study.open({url!r}, "beam").run(evaluate, budget=1, executor=threads)
    """)
    driver = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    finally:
        driver.kill()
        driver.wait()
    wait_until(lambda: not lives(int((tmp_path / "pid").read_text())), 5)


def test_an_executor_that_was_shut_down_stops_the_run(study: Study) -> None:
    from concurrent.futures import ThreadPoolExecutor

    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    with pytest.raises(RunStoppedError, match="cannot schedule new futures after shutdown"):
        study.run(simulate_beam, budget=3, executor=threads)
    study.run(simulate_beam, budget=3)
    assert len(study.evaluations.complete) == 3
