"""Studies in PostgreSQL, on a real server."""

from __future__ import annotations

import dataclasses
import logging
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from cbabo import Problem, Study
from cbabo.domain.current import current_evaluation
from cbabo.domain.evaluations import Evaluations
from cbabo.errors import CbaboError, InputError, StorageError, StudyLockedError
from cbabo.storage import database as module
from cbabo.storage import place, schema, transactions
from cbabo.storage.checking import find_damage
from cbabo.storage.database import Database
from cbabo.storage.lock import STALE_SECONDS, Holder, write_holder
from postgres import PASSWORD, Server, _find_programs, _initialise, _open_directory, _somebody, postgres, postgres_url
from simulators import simulate_awkward, simulate_beam
from upgrades import check_upgrade

__all__ = ["postgres", "postgres_url"]  # fixtures

TESTS = str(Path(__file__).parents[1])

DRIVER = textwrap.dedent("""
    import sys, time
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    from cbabo import Study
    from simulators import simulate_beam

    def evaluate(point):
        from cbabo.domain.current import current_evaluation
        Path({log!r}).open("a").write(f"{{current_evaluation.get()}}\\n")
        time.sleep({pause})
        return simulate_beam(point)

    Study.open({url!r}, "beam").run(evaluate, budget={budget})
""")


class Driver:
    """Another process that optimises the study; `started` lists the evaluations that it began."""

    def __init__(self, url: str, folder: Path, *, budget: int, pause: float) -> None:
        self.log = folder / f"started-{time.monotonic_ns()}"
        self.log.touch()
        code = DRIVER.format(tests=TESTS, log=str(self.log), pause=pause, url=url, budget=budget)
        self.process = subprocess.Popen([sys.executable, "-c", code])

    @property
    def started(self) -> list[int]:
        return [int(line) for line in self.log.read_text().splitlines()]

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.started) >= count)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def wait_until(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def content(evaluations: Evaluations) -> list[tuple[object, ...]]:
    """Everything that is the same in two runs, floats as their bits."""
    return [(row.id, row.state, row.kind, row.failure, [_bits(row.point), _bits(row.outputs)]) for row in evaluations]


def _bits(values) -> list[tuple[str, str]]:
    return [(name, float(value).hex()) for name, value in values.items()]


@pytest.fixture
def study(beam: Problem, postgres_url: str) -> Study:
    return Study.create(beam, postgres_url)


# ---- the same as on SQLite


def test_parts_and_standard_errors_are_stored_without_loss(study: Study, postgres_url: str) -> None:
    told = {"mass": {"value": 2.0, "sem": 0.1}, "stress": [1.0, {"value": 0.1 + 0.2, "sem": 1e-17}], "frequency": 3.0}
    study.tell(study.ask()[0].id, {**told, "cost": 4.0})
    row = Study.open(postgres_url, "beam").evaluations[0]
    assert row.outputs == {"mass": 2.0, "stress[0]": 1.0, "stress[1]": 0.1 + 0.2, "frequency": 3.0, "cost": 4.0}
    assert row.sem == {"mass": 0.1, "stress[1]": 1e-17}


def test_every_verb_of_a_study(study: Study, beam: Problem, postgres_url: str) -> None:
    study.add(pd.DataFrame([{"width": 1.5, "ribs": 2, **simulate_beam({"width": 1.5, "ribs": 2})}]))
    thresholds = {"stress": 4.0, "frequency": 3.0}
    study.focus(pd.DataFrame([{**thresholds, "weight": 2.0}]))
    first, second = study.ask(2)
    study.tell(first.id, simulate_beam(first.point))
    study.tell(second.id, failed="mesh did not converge")
    study.run(simulate_beam, budget=18, in_process=True)

    again = Study.create(beam, postgres_url)
    assert again.problem == beam
    assert again.focused == study.focused is not None
    assert again.optimiser is None
    opened = Study.open(postgres_url, "beam").evaluations
    assert [(row.id, row.kind, row.state) for row in opened[:4]] == [
        (1, "import", "complete"),
        (2, "run", "complete"),
        (3, "run", "failed"),
        (4, "run", "complete"),
    ]
    assert len(opened.complete) == 18
    assert opened.requested == 18
    assert opened[3].outputs == simulate_beam(dict(opened[3].point))


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_study_on_sqlite_and_on_postgresql_is_the_same_to_the_last_bit(
    beam: Problem, url: str, postgres_url: str, workers: int
) -> None:
    old = pd.DataFrame(
        [{"width": 1.0 + 0.1 * i, "ribs": i, **simulate_beam({"width": 1.0, "ribs": i})} for i in (1, 2)]
    )
    for storage in (url, postgres_url):
        study = Study.create(beam, storage, seed=2**70 + 3)
        study.add(old)
        study.run(simulate_awkward, budget=23, workers=workers)
    on_sqlite, on_postgres = (Study.open(storage, "beam") for storage in (url, postgres_url))
    assert on_postgres.seed == 2**70 + 3
    assert content(on_postgres.evaluations) == content(on_sqlite.evaluations)
    assert len(on_postgres.evaluations) == 25
    assert len(on_postgres.evaluations.failed) == 3


def test_the_migrations_end_in_the_tables_that_the_code_uses(postgres_url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with Database.create(postgres_url).reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.METADATA) == []


# ---- one optimiser at a time


def test_while_one_optimises_readers_are_welcome_and_a_second_optimiser_is_refused(
    study: Study, postgres_url: str, tmp_path: Path
) -> None:
    with Driver(postgres_url, tmp_path, budget=1000, pause=0.1) as driver:
        driver.wait_for(1)
        seen = [0]

        def read() -> bool:
            reader = Study.open(postgres_url, "beam")
            seen.append(len(reader.evaluations))
            assert reader.optimiser == f"process {driver.process.pid} on {os.uname().nodename}"
            return seen[-1] > seen[1] > 0

        wait_until(read)
        assert seen == sorted(seen)
        with pytest.raises(StudyLockedError, match=rf"being optimised by process {driver.process.pid} on ") as refusal:
            study.run(simulate_beam, budget=40)
        assert "\n" not in str(refusal.value)
        for write in (lambda: study.ask(), lambda: study.tell(1, failed="no"), lambda: study.focus(None)):
            with pytest.raises(StudyLockedError):
                write()
        assert driver.process.poll() is None


def test_after_a_kill_the_next_takes_over_at_once_and_resumes(
    study: Study, beam: Problem, url: str, postgres_url: str, tmp_path: Path
) -> None:
    with Driver(postgres_url, tmp_path, budget=20, pause=0.02) as quick:
        quick.wait_for(5)
    with Driver(postgres_url, tmp_path, budget=20, pause=60) as hanging:
        hanging.wait_for(1)
        stored = {row.id for row in study.evaluations.complete}
    (interrupted,) = study.evaluations.running
    assert interrupted.id == hanging.started[0] not in stored
    assert stored == set(range(1, interrupted.id))

    told: list[int] = []
    times = [time.monotonic()]
    study.run(simulate_beam, budget=20, on_result=lambda row: (told.append(row.id), times.append(time.monotonic())))
    assert times[1] - times[0] < 20  # no waiting for a heartbeat
    assert told == list(range(interrupted.id, 21))  # the interrupted one first, and nothing that was stored
    whole = Study.create(beam, url)
    whole.run(simulate_beam, budget=20, in_process=True)
    assert content(study.evaluations) == content(whole.evaluations)


def test_killed_again_and_again_with_workers(study: Study, postgres_url: str, tmp_path: Path) -> None:
    code = DRIVER.replace("budget={budget})", "budget={budget}, workers=2, asynchronous=True)")
    for number, goal in enumerate((2, 14)):
        log = tmp_path / f"log-{number}"
        words = code.format(tests=TESTS, log=str(log), pause=0.03, url=postgres_url, budget=24)
        driver = subprocess.Popen([sys.executable, "-c", words])
        try:
            wait_until(lambda goal=goal: len(study.evaluations.complete) >= goal)
        finally:
            driver.kill()
            driver.wait()
    before = {row.id: row for row in study.evaluations.complete}
    study.run(simulate_beam, budget=24, workers=2)
    after = {row.id: row for row in study.evaluations}
    assert sorted(after) == list(range(1, 25))
    assert all(row.state == "complete" for row in after.values())
    assert all(after[number] == row for number, row in before.items())
    different = {tuple(row.point.items()) for row in after.values()}
    assert len(different) == 23  # one design is measured twice, to detect noise


def test_a_reader_does_not_wait_for_a_writer(study: Study, postgres_url: str) -> None:
    database = Database.open(postgres_url)
    with database.writing() as connection:
        connection.execute(sa.update(schema.STUDIES).values(focus="{}"))
        assert Study.open(postgres_url, "beam").focused is None


def test_a_writer_does_not_wait_for_ever(study: Study, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "BUSY_SECONDS", 0.2)
    impatient = Study.open(postgres_url, "beam")
    with Database.open(postgres_url).writing() as connection:
        connection.execute(sa.select(schema.STUDIES.c.id).with_for_update())
        with pytest.raises(StorageError, match="is another program keeping it locked"):
            impatient.ask()
    impatient.ask()


def test_processes_that_create_the_study_at_the_same_moment_get_the_same(postgres: Server) -> None:
    urls = [postgres.new_database() for _ in range(4)]
    code = textwrap.dedent("""
        import sys, time
        sys.path.insert(0, sys.argv[1])
        from cbabo import Constraint, Objective, Problem, Real, Study
        import psycopg, alembic.command
        problem = Problem("race", [Real("x", 0, 1)], Objective("f"), [Constraint("c", "<=", low=0, high=1)])
        print("ready", flush=True)
        start = float(sys.stdin.readline())
        for number, url in enumerate(sys.argv[2:]):
            time.sleep(max(0, start + 0.8 * number - time.time()))
            study = Study.create(problem, url, seed=5)
            print(study._store.record.id, study._store.record.created.timestamp())
    """)
    command = [sys.executable, "-c", code, TESTS, *urls]
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    start = f"{time.time() + 0.3}\n"
    answers = []
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(start)
        racer.stdin.flush()
    for racer in racers:
        printed, errors = racer.communicate(timeout=60)
        assert (racer.returncode, errors) == (0, "")
        answers.append(printed.splitlines())
    assert len(answers[0]) == 4
    assert answers[0] == answers[1] == answers[2]
    for url in urls:
        assert postgres.execute("SELECT count(*) FROM studies", url) == [(1,)]


def test_threads_that_create_the_study_at_the_same_moment_get_the_same(postgres: Server, beam: Problem) -> None:
    for _ in range(5):
        url = postgres.new_database()
        barrier = threading.Barrier(4)
        found: list[object] = []

        def create(url: str = url, barrier: threading.Barrier = barrier, found: list[object] = found) -> None:
            barrier.wait()
            try:
                found.append(Study.create(beam, url)._store.record.created)
            except CbaboError as error:
                found.append(error)

        threads = [threading.Thread(target=create) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        assert len(set(found)) == 1, found


# ---- texts that PostgreSQL will not take as they are


def test_a_log_with_bytes_of_zero_is_no_reason_to_lose_a_failure(study: Study) -> None:
    def binary(point: dict[str, float]) -> dict[str, float]:
        raise ValueError("wrote \x00\x01 and \ud800")

    study.run(binary, budget=1)
    (row,) = study.evaluations
    assert row.state == "failed"
    assert str(row.failure).startswith("ValueError: wrote ")
    assert "Traceback" in row.log


# ---- what can be wrong with the server


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("p4ss-w0rd@", "s3cret@"), "password authentication failed"),
        (("engineer:p4ss-w0rd", "stranger:s3cret"), "password authentication failed"),
        (("studies_", "nowhere_"), "does not exist"),
        (("@127.0.0.1", "@no-such-host.invalid"), "no-such-host.invalid"),
        (("127.0.0.1:", "127.0.0.1:1?"), "refused"),
    ],
    ids=["password", "user", "database", "host", "port"],
)
def test_a_wrong_address_gets_one_sentence(
    postgres_url: str, beam: Problem, change: tuple[str, str], words: str
) -> None:
    wrong = postgres_url.replace(*change)
    if "?" in wrong:
        wrong = wrong.partition("?")[0] + "/studies"
    for attempt in (lambda: Study.create(beam, wrong), lambda: Study.open(wrong, "beam")):
        began = time.monotonic()
        with pytest.raises(StorageError, match=words) as refusal:
            attempt()
        assert time.monotonic() - began < 20
        check_sentence(str(refusal.value))


@pytest.mark.parametrize(
    "wrong",
    [
        "postgresql//engineer:p4ss-w0rd@host/studies",
        "postgresql://engineer:p4ss-w0rd@host:port/studies",
        "postgresql://engineer:p4ss-w0rd@s3cret@host/studies",
        "postgres://engineer:p4ss-w0rd@host/studies",
        "oracle://engineer:p4ss-w0rd@host/studies",
    ],
)
def test_a_malformed_address_gets_one_sentence(wrong: str) -> None:
    with pytest.raises(InputError, match="storage: ") as refusal:
        Database.create(wrong)
    check_sentence(str(refusal.value))


def test_a_password_among_the_options_is_hidden_too(postgres: Server, beam: Problem, postgres_url: str) -> None:
    wrong = f"{postgres_url.replace(f':{PASSWORD}', '')}?password=s3cret"
    with pytest.raises(StorageError, match="password authentication failed") as refusal:
        Study.create(beam, wrong)
    check_sentence(str(refusal.value))
    right = f"{postgres_url.replace(f':{PASSWORD}', '')}?password={PASSWORD}"
    assert PASSWORD not in Database.create(right).label


def check_sentence(message: str) -> None:
    assert "\n" not in message
    for secret in (PASSWORD, "s3cret"):
        assert secret not in message


def test_somebody_without_rights_gets_one_sentence(postgres: Server, study: Study, postgres_url: str) -> None:
    postgres.execute("DROP ROLE IF EXISTS guest")
    postgres.execute("CREATE ROLE guest LOGIN PASSWORD 's3cret'")
    url = postgres.url(postgres_url.rpartition("/")[2], "guest", "s3cret")
    with pytest.raises(StorageError, match="permission denied") as refusal:
        Study.open(url, "beam")
    check_sentence(str(refusal.value))
    assert "damaged" not in str(refusal.value)


def test_a_server_that_was_started_anew_is_found_again(study: Study, postgres: Server) -> None:
    study.run(simulate_beam, budget=3)
    postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'studies%'")
    study.run(simulate_beam, budget=6)
    assert len(study.evaluations.complete) == 6


def test_connections_are_closed_with_their_study(postgres: Server, beam: Problem, postgres_url: str) -> None:
    name = postgres_url.rpartition("/")[2]
    count = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'"
    study = Study.create(beam, postgres_url)
    study.ask()
    assert postgres.execute(count)[0][0] >= 1
    del study
    wait_until(lambda: postgres.execute(count) == [(0,)], 5)


def test_somebody_elses_database_is_left_alone(postgres: Server, beam: Problem, postgres_url: str) -> None:
    postgres.execute("CREATE TABLE invoices (id INTEGER)", postgres_url)
    with pytest.raises(StorageError, match=r"belongs to something else \(it has a table 'invoices'\)"):
        Study.create(beam, postgres_url)


def test_an_empty_database_holds_no_studies(postgres_url: str) -> None:
    with pytest.raises(StorageError, match="holds no studies"):
        Study.open(postgres_url, "beam")


# ---- revisions


def test_a_newer_revision_is_refused(postgres: Server, study: Study, beam: Problem, postgres_url: str) -> None:
    postgres.execute("UPDATE alembic_version SET version_num = '9999'", postgres_url)
    for opening in (
        lambda: Study.open(postgres_url, "beam"),
        lambda: Study.create(beam, postgres_url),
        lambda: Database.existing(postgres_url).upgrade(),
    ):
        with pytest.raises(StorageError, match="newer version of cbabo"):
            opening()


def test_an_older_revision_is_upgraded_by_the_command(
    study: Study, postgres: Server, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cbabo.surfaces.cli import app

    study.run(simulate_beam, budget=3)
    (tmp_path / "r9998_note.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\nrevision = '9998'\ndown_revision = '0005'\n"
        "def upgrade():\n    op.add_column('studies', sa.Column('note', sa.Text))\n"
    )
    monkeypatch.setattr(schema, "REVISIONS", ("0001", "0002", "0003", "0004", "0005", "9998"))
    monkeypatch.setattr(module, "VERSIONS", [*module.VERSIONS, str(tmp_path)])
    with pytest.raises(StorageError, match="older revision 0005, expected 9998; run: cbabo storage upgrade") as refusal:
        Study.open(postgres_url, "beam")
    check_sentence(str(refusal.value))
    done = CliRunner().invoke(app, ["storage", "upgrade", postgres_url])
    assert done.exit_code == 0, done.output
    assert "upgraded from revision 0005 to revision 9998" in done.output
    assert len(Study.open(postgres_url, "beam").evaluations.complete) == 3
    assert postgres.execute("SELECT name, note FROM studies", postgres_url) == [("beam", None)]


def test_an_upgrade_that_fails_changes_nothing(
    study: Study, postgres: Server, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "r9998_note.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\nrevision = '9998'\ndown_revision = '0005'\n"
        "def upgrade():\n    op.add_column('studies', sa.Column('note', sa.Text))\n    op.drop_table('nowhere')\n"
    )
    monkeypatch.setattr(schema, "REVISIONS", ("0001", "0002", "0003", "0004", "0005", "9998"))
    monkeypatch.setattr(module, "VERSIONS", [*module.VERSIONS, str(tmp_path)])
    with pytest.raises(StorageError, match="nowhere"):
        Database.existing(postgres_url).upgrade()
    assert postgres.execute("SELECT version_num FROM alembic_version", postgres_url) == [("0005",)]
    with pytest.raises(psycopg.errors.UndefinedColumn):
        postgres.execute("SELECT note FROM studies", postgres_url)


# ---- outages and locks


class Restarting:
    """A server of its own, which can be stopped and started again."""

    def __init__(self, place: Path) -> None:
        self.programs = _find_programs()
        assert self.programs is not None
        self.place = place
        _initialise(self.programs, place)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    def start(self) -> None:
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._control("-w", "-t", "60", f"--options={options}", "--log=server.log", "start")

    def stop(self, mode: str = "fast") -> None:
        self._control(f"--mode={mode}", "-w", "stop")

    def restart(self, pause: float, mode: str) -> None:
        self.stop(mode)
        time.sleep(pause)
        self.start()

    def _control(self, *words: str) -> None:
        command = [f"{self.programs}/pg_ctl", "--pgdata=data", *words]
        subprocess.run(command, cwd=self.place, check=True, stdout=subprocess.DEVNULL, **_somebody())


@pytest.fixture
def restarting(postgres: Server) -> Iterator[Restarting]:
    with tempfile.TemporaryDirectory(prefix="cbabo-restart-", dir=_open_directory()) as folder:
        server = Restarting(Path(folder))
        try:
            yield server
        finally:
            server.stop("immediate")


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_run_survives_restarts_of_the_server(
    restarting: Restarting, beam: Problem, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = Server(restarting.port).new_database()
    study = Study.create(beam, url)
    calls: list[int] = []

    def evaluate(point: dict[str, float]) -> dict[str, float]:
        calls.append(current_evaluation.get() or 0)
        if len(calls) in (3, 6):
            threading.Thread(target=restarting.restart, args=(0.5, mode)).start()
        time.sleep(0.3)
        return simulate_beam(point)

    with caplog.at_level(logging.INFO, logger="cbabo"):
        study.run(evaluate, budget=10, in_process=True)
    assert calls == list(range(1, 11))
    assert [row.id for row in study.evaluations.complete] == calls
    assert study.optimiser is None
    said = [record.levelname for record in caplog.records if record.name.endswith("outages")]
    assert said[:2] == ["WARNING", "INFO"]
    assert PASSWORD not in caplog.text


def test_reading_fails_fast_while_the_server_is_away(restarting: Restarting, beam: Problem) -> None:
    url = Server(restarting.port).new_database()
    study = Study.create(beam, url)
    restarting.stop()
    try:
        began = time.monotonic()
        with pytest.raises(StorageError, match="does not answer"):
            study.evaluations.to_frame()
        assert time.monotonic() - began < 20
    finally:
        restarting.start()
    assert len(study.evaluations) == 0


def leave_lock(url: str, age: float) -> None:
    """Let a process of another machine hold the lock, with a heartbeat of this age by the database's clock."""
    here = dataclasses.replace(Holder.here(), machine="boot:another|pid:[1]")  # of the same name as this one
    with Database.open(url).writing() as connection:
        write_holder(connection, 1, here)
        connection.execute(sa.text(f"UPDATE locks SET heartbeat = heartbeat - {age}"))


def test_a_host_of_the_same_name_is_another_host(
    study: Study, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "WATCH_SECONDS", 0.3)
    leave_lock(postgres_url, 5.0)
    with pytest.raises(StudyLockedError, match="being optimised by process"):
        study.ask()


@pytest.mark.parametrize("step", [-3600.0, -1.0, 1.0, 3600.0])
def test_a_step_of_the_hosts_clock_neither_frees_nor_keeps_a_lock(
    study: Study, postgres_url: str, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "WATCH_SECONDS", 0.3)
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + step)
    leave_lock(postgres_url, 5.0)
    with pytest.raises(StudyLockedError):
        study.ask()
    leave_lock(postgres_url, STALE_SECONDS + 5.0)
    study.ask()


@pytest.mark.parametrize("age", [-3600.0, STALE_SECONDS + 5.0])
def test_an_uncertain_holder_is_watched(
    study: Study, postgres_url: str, age: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a step of the database's own clock only a heartbeat that changes tells a live holder from a dead one."""
    monkeypatch.setattr(transactions, "WATCH_SECONDS", 1.0)
    monkeypatch.setattr(transactions, "_LOOK_SECONDS", 0.1)
    leave_lock(postgres_url, age)
    stop = threading.Event()

    def beat() -> None:
        database = Database.open(postgres_url)
        while not stop.wait(0.2):
            with database.writing() as connection:
                connection.execute(sa.text("UPDATE locks SET heartbeat = heartbeat + 0.2"))

    heart = threading.Thread(target=beat)
    heart.start()
    try:
        with pytest.raises(StudyLockedError):
            study.ask()
    finally:
        stop.set()
        heart.join()
    study.ask()


def test_a_live_session_keeps_the_lock_while_the_heartbeat_is_late(
    study: Study, postgres: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "WATCH_SECONDS", 0.3)
    holding = Study.open(postgres_url, "beam")
    late = "UPDATE locks SET machine = 'boot:another|', heartbeat = heartbeat - 1000"
    with holding._store.locked():
        postgres.execute(late, postgres_url)
        with pytest.raises(StudyLockedError):
            study.ask()
        assert study.optimiser is not None
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        assert postgres.execute(held, postgres_url) == [(1,)]
        postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()",
            postgres_url,
        )
        wait_until(lambda: postgres.execute(held, postgres_url) == [(0,)], 5)
        assert Study.open(postgres_url, "beam").optimiser is None
    assert postgres.execute(held, postgres_url) == [(0,)]


def test_the_session_is_taken_again_after_it_was_lost(
    study: Study, postgres: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "HEARTBEAT_SECONDS", 0.05)
    held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    with study._store.locked():
        first = postgres.execute("SELECT pid FROM pg_locks WHERE locktype = 'advisory'", postgres_url)
        postgres.execute(f"SELECT pg_terminate_backend({first[0][0]})", postgres_url)
        wait_until(
            lambda: (
                postgres.execute("SELECT pid FROM pg_locks WHERE locktype = 'advisory'", postgres_url)
                not in ([], first)
            ),
            10,
        )
    assert postgres.execute(held, postgres_url) == [(0,)]


@pytest.mark.parametrize("revision", ["0001", "0002"])
def test_older_revisions_are_upgraded_with_their_rows(postgres_url: str, revision: str) -> None:
    check_upgrade(postgres_url, revision)


def test_damage_is_found_in_postgresql_too(study: Study, postgres: Server, postgres_url: str) -> None:
    study.run(simulate_awkward, budget=8, in_process=True)
    study.forget([2], "why \x00 not")
    assert find_damage(Database.open(postgres_url)) == []
    before = {row.id: row for row in study.evaluations}
    postgres.execute("UPDATE evaluations SET outputs = replace(outputs, '1', '2') WHERE number = 3", postgres_url)
    postgres.execute("DELETE FROM evaluations WHERE number = 8", postgres_url)
    assert {row.id: row for row in study.evaluations} == {i: row for i, row in before.items() if i not in (3, 8)}
    assert [(damage.id, damage.what) for damage in find_damage(Database.open(postgres_url))] == [
        (3, "is damaged and left out"),
        (8, "is missing"),
    ]
    assert study.ask()[0].id == 9


# ---- without the driver


def test_without_psycopg_it_is_said_what_to_install() -> None:
    code = "import sys; sys.modules['psycopg'] = None; from cbabo.surfaces.cli import main; main()"
    words = [sys.executable, "-c", code, "status", f"postgresql://engineer:{PASSWORD}@127.0.0.1/studies::beam"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert (
        done.stderr
        == "cbabo: storage: PostgreSQL needs the psycopg driver; install it by: pip install 'cbabo[postgres]'\n"
    )
