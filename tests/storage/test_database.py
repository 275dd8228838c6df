from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from cbabo.errors import InputError, StorageError
from cbabo.storage import database as module
from cbabo.storage import schema
from cbabo.storage.database import Database, on_network

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
        connection.execute(sa.text("INSERT INTO studies VALUES (1, 'a', '{}', '0', '{}', NULL, '{}', 0.0)"))
        with Database.open(str(database.url)).reading() as other:
            assert other.execute(sa.text("SELECT count(*) FROM studies")).scalar() == 0
    with database.reading() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM studies")).scalar() == 1


def test_a_failed_transaction_leaves_nothing(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.writing() as connection:
        connection.execute(sa.text("INSERT INTO studies VALUES (1, 'a', '{}', '0', '{}', NULL, '{}', 0.0)"))
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
        connection.execute(sa.text("INSERT INTO studies VALUES (1, 'kept', '{}', '0', '{}', NULL, '{}', 0.0)"))
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "r0002_note.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\nrevision = '0002'\ndown_revision = '0001'\n"
        "def upgrade():\n    op.add_column('studies', sa.Column('note', sa.Text))\n"
    )
    monkeypatch.setattr(schema, "REVISIONS", ("0001", "0002"))
    monkeypatch.setattr(module, "VERSIONS", [*module.VERSIONS, str(tmp_path / "later")])
    with pytest.raises(
        StorageError, match=r"older revision 0001, expected 0002; run: cbabo storage upgrade sqlite:///"
    ):
        Database.open(str(database.url))
    assert Database.existing(str(database.url)).upgrade() == ("0001", "0002")
    with Database.open(str(database.url)).reading() as connection:
        assert connection.execute(sa.text("SELECT name, note FROM studies")).all() == [("kept", None)]


def test_two_processes_may_create_at_once(tmp_path: Path) -> None:
    code = "import sys; from cbabo.storage.database import Database; print(Database.create(sys.argv[1]).revision())"
    command = [sys.executable, "-c", code, f"sqlite:///{tmp_path}/both.db"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0].strip() for process in both] == ["0001", "0001"]


def test_a_network_file_system_is_recognised(tmp_path: Path) -> None:
    mounts = [Mount("/", "ext4"), Mount(str(tmp_path.parent), "ext4"), Mount(str(tmp_path), "nfs4")]
    assert on_network(tmp_path / "deep" / "study.db", mounts) == "nfs4"
    assert on_network(tmp_path.parent / "study.db", mounts) is None
    assert on_network(Path("/elsewhere"), mounts[1:]) is None


def test_on_a_network_file_system_a_rollback_journal_is_used_and_said(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "on_network", lambda path: "nfs4")
    with caplog.at_level(logging.WARNING):
        database = Database.create(url)
    assert pragma(database, "journal_mode") == "delete"
    assert "network file system (nfs4)" in caplog.text


def test_a_database_that_stays_locked_gets_a_sentence(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BUSY_SECONDS", 0.1)
    impatient = Database.open(str(database.url))
    with database.writing(), pytest.raises(StorageError, match="does not answer .*locked"), impatient.writing():
        pass
