from __future__ import annotations

import importlib
import json
import logging
import sqlite3
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from cbabo.errors import InputError, StorageError
from cbabo.storage import database as module
from cbabo.storage import place, schema
from cbabo.storage.database import Database
from cbabo.storage.place import on_network
from cbabo.storage.rows import checksum
from upgrades import check_upgrade, create_old

Mount = namedtuple("Mount", "mountpoint fstype")


def pragma(database: Database, name: str) -> object:
    with database.reading() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


def test_sqlite_is_durable_and_lets_readers_in(database: Database) -> None:
    assert pragma(database, "journal_mode") == "wal"
    assert pragma(database, "synchronous") == 2  # FULL
    assert pragma(database, "foreign_keys") == 1


def test_a_reader_is_not_stopped_by_a_writer(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(sa.text("INSERT INTO studies VALUES (1, 'a', '{}', '0', '{}', NULL, '{}', 0.0, NULL)"))
        with Database.open(str(database.url)).reading() as other:
            assert other.execute(sa.text("SELECT count(*) FROM studies")).scalar() == 0
    with database.reading() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM studies")).scalar() == 1


def test_a_failed_transaction_leaves_nothing(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.writing() as connection:
        connection.execute(sa.text("INSERT INTO studies VALUES (1, 'a', '{}', '0', '{}', NULL, '{}', 0.0, NULL)"))
        raise ZeroDivisionError
    with database.reading() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM studies")).scalar() == 0


def test_the_revisions_listed_are_those_shipped() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(module.VERSIONS[0]).parent))
    scripts = ScriptDirectory.from_config(config)
    shipped = [script.revision for script in scripts.walk_revisions()][::-1]
    assert tuple(shipped) == schema.REVISIONS


def test_the_migrations_end_in_the_tables_that_the_code_uses(database: Database) -> None:
    with database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.METADATA) == []


def test_opening_never_creates(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such database"):
        Database.open(f"sqlite:///{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_holds_no_studies(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with pytest.raises(StorageError, match="holds no studies"):
        Database.open(f"sqlite:///{tmp_path}/empty.db")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("study.db", "expected a URL such as"),
        ("mysql://host/name", "only sqlite and postgresql"),
        ("sqlite://study.db", "takes three slashes"),
        ("sqlite:////nowhere/at/all/study.db", "folder /nowhere/at/all does not exist"),
    ],
)
def test_a_wrong_url_gets_one_sentence(url: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Database.create(url)
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StorageError, match="damaged or not one"):
        Database.open(f"sqlite:///{tmp_path}/bad.db")


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE invoices (id INTEGER)")
    other.commit()
    other.close()
    with pytest.raises(StorageError, match="belongs to something else"):
        Database.create(f"sqlite:///{tmp_path}/other.db")


def test_a_newer_database_is_refused(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    for opening in (Database.open, Database.create, lambda url: Database.existing(url).upgrade()):
        with pytest.raises(StorageError, match="newer version of cbabo"):
            opening(str(database.url))


def test_an_older_database_is_refused_until_it_is_upgraded(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.writing() as connection:
        connection.execute(sa.text("INSERT INTO studies VALUES (1, 'kept', '{}', '0', '{}', NULL, '{}', 0.0, NULL)"))
    (tmp_path / "later").mkdir()
    newest = schema.REVISIONS[-1]
    (tmp_path / "later" / "r9998_note.py").write_text(
        f"import sqlalchemy as sa\nfrom alembic import op\nrevision = '9998'\ndown_revision = '{newest}'\n"
        "def upgrade():\n    op.add_column('studies', sa.Column('note', sa.Text))\n"
    )
    monkeypatch.setattr(schema, "REVISIONS", (*schema.REVISIONS, "9998"))
    monkeypatch.setattr(module, "VERSIONS", [*module.VERSIONS, str(tmp_path / "later")])
    said = rf"older revision {newest}, expected 9998; run: cbabo storage upgrade sqlite:///"
    with pytest.raises(StorageError, match=said):
        Database.open(str(database.url))
    assert Database.existing(str(database.url)).upgrade() == (newest, "9998")
    with Database.open(str(database.url)).reading() as connection:
        assert connection.execute(sa.text("SELECT name, note FROM studies")).all() == [("kept", None)]


DEFAULT_0001 = {
    "initial_evaluations": 30, "batch_size": 4, "horizon": 34, "inner_steps": 50, "thresholds_per_step": 64,
    "hidden_layers": 3, "hidden_width": 256, "learning_rate": 0.001, "least_learning_rate": 1e-05, "beta": 0.5,
    "alpha": 0.1, "candidates": 1000, "candidate_source": "solver", "surrogates": "warped", "answer": "solver",
    "probability": 0.9, "answers_per_batch": 3, "batch_thresholds": 12, "library": 256, "similarity": 0.05,
    "refine_radius": 0.25, "recommend_candidates": 2000, "recommend_rounds": 16, "recommend_guided": 0.8,
    "recommend_range": 0.2, "recommend_tolerance": 0.0001, "objective_weight": 100.0, "barrier_weight": 10000.0,
    "reward_weight": 50.0,
}  # fmt: skip
"""Settings as revision 0001 has stored them."""
SHARED = {
    "initial_evaluations": 30, "batch_size": 4, "hidden_layers": 3, "hidden_width": 256, "recommend_candidates": 2000,
    "recommend_rounds": 16, "recommend_guided": 0.8, "recommend_range": 0.2, "objective_weight": 100.0,
    "barrier_weight": 10000.0, "reward_weight": 50.0,
}  # fmt: skip
PAPER = {
    "horizon": 34, "inner_steps": 50, "thresholds_per_step": 64, "learning_rate": 0.001, "least_learning_rate": 1e-05,
    "beta": 0.5, "alpha": 0.1, "candidates": 1000, "similarity": 0.05, "refine_radius": 0.25,
    "recommend_tolerance": 0.0001,
}  # fmt: skip
FAILURES_0001 = {
    "no answer within 1.5 s": "set-up",
    "the executor lost it (KilledWorker: attempt)": "set-up",
    "interrupted: the run that had started it ended": "set-up",
    "the worker process died during the task (it was killed by signal 9); the machine may be short of memory": "set-up",
    "the worker gave no answer within 2 s and was killed; allow for more time": "design",
    "ValueError: no answer within reach": "design",
    "the output 'stress' must be a finite number, but is nan": "design",
}


@pytest.fixture
def old(tmp_path: Path) -> Database:
    """A database of revision 0001 with three studies and failures of every kind."""
    (tmp_path / "old.db").touch()
    database = Database(f"sqlite:///{tmp_path}/old.db")
    config = Config()
    config.set_main_option("script_location", str(Path(module.VERSIONS[0]).parent))
    with database.writing() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        for number, source in enumerate(("solver", "network", "random"), start=1):
            settings = json.dumps(DEFAULT_0001 | {"candidate_source": source})
            connection.execute(
                sa.text("INSERT INTO studies VALUES (:id, :name, '{}', '0', :settings, NULL, '{}', 0.0)"),
                {"id": number, "name": source, "settings": settings},
            )
        row = "INSERT INTO evaluations (study_id, number, state, kind, point, failure) VALUES (1, :n, :state, 'run', '{}', :why)"
        for number, why in enumerate((*FAILURES_0001, None), start=1):
            state = "complete" if why is None else "failed"
            connection.execute(sa.text(row), {"n": number, "state": state, "why": why})
    return database


def test_a_database_of_revision_0001_is_upgraded(old: Database) -> None:
    assert Database.existing(str(old.url)).upgrade() == ("0001", schema.REVISIONS[-1])
    with Database.open(str(old.url)).reading() as connection:
        rows = connection.execute(sa.text("SELECT failure, cause, thresholds FROM evaluations ORDER BY number")).all()
        settings = connection.execute(sa.text("SELECT name, settings FROM studies ORDER BY id")).all()
        assert compare_metadata(MigrationContext.configure(connection), schema.METADATA) == []
    assert {why: cause for why, cause, _ in rows} == {**FAILURES_0001, None: None}
    assert {thresholds for _, _, thresholds in rows} == {None}
    answers = {"probability": 0.9, "answers_per_batch": 3, "batch_thresholds": 12, "library": 256}
    assert {name: json.loads(text) for name, text in settings} == {
        "solver": {"preset": "default"} | SHARED | answers,
        "network": {"preset": "paper", "candidate_source": "network"} | SHARED | PAPER,
        "random": {"preset": "paper", "candidate_source": "random"} | SHARED | PAPER,
    }


@pytest.mark.parametrize("revision", ["0001", "0002"])
def test_older_revisions_are_upgraded_with_their_rows(url: str, revision: str) -> None:
    check_upgrade(url, revision)


def test_a_database_in_use_by_an_older_version_is_not_upgraded(url: str) -> None:
    old = create_old(url, "0002")
    with old.writing() as connection:
        connection.execute(sa.text("UPDATE locks SET heartbeat = :now"), {"now": time.time()})
    with pytest.raises(StorageError, match="is being optimised, or was within the last minute"):
        Database.existing(url).upgrade()
    assert old.revision() == "0002"


def test_the_newest_migration_and_the_code_agree_on_checksums() -> None:
    third, fourth = (
        importlib.import_module(f"cbabo.storage.migrations.versions.{name}")
        for name in ("r0003_checksums", "r0005_decisions")
    )
    for table in (schema.STUDIES, schema.EVALUATIONS, schema.PLANNED, schema.LEARNERS, schema.PROGRESS):
        values = {column.name: b"1" if column.name == "state" else 1.5 for column in table.columns}
        found = fourth.checksum(values) if table is schema.PROGRESS else third.checksum(table.name, values)
        assert checksum(table, values) == found


def test_two_processes_may_create_at_once(tmp_path: Path) -> None:
    code = "import sys; from cbabo.storage.database import Database; print(Database.create(sys.argv[1]).revision())"
    words = [sys.executable, "-c", code, f"sqlite:///{tmp_path}/both.db"]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0].strip() for process in both] == [schema.REVISIONS[-1]] * 2


def test_a_network_file_system_is_recognised(tmp_path: Path) -> None:
    mounts = [Mount("/", "ext4"), Mount(str(tmp_path.parent), "ext4"), Mount(str(tmp_path), "nfs4")]
    assert on_network(tmp_path / "deep" / "study.db", mounts) == "nfs4"
    assert on_network(tmp_path.parent / "study.db", mounts) is None
    assert on_network(Path("/elsewhere"), mounts[1:]) is None


def test_on_a_network_file_system_a_rollback_journal_is_used_and_said(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(place, "on_network", lambda path: "nfs4")
    with caplog.at_level(logging.WARNING):
        database = Database.create(url)
    assert pragma(database, "journal_mode") == "delete"
    assert "network file system (nfs4)" in caplog.text


def test_a_database_that_stays_locked_gets_a_sentence(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "BUSY_SECONDS", 0.1)
    impatient = Database.open(str(database.url))
    with database.writing(), pytest.raises(StorageError, match="does not answer .*locked"), impatient.writing():
        pass
