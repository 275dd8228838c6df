"""The file of a database: deleted, moved or replaced while it is in use, or on a medium that cannot be written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cbabo import Problem, Study
from cbabo.errors import StorageError, StudyLockedError
from cbabo.storage import place
from cbabo.storage.checking import find_damage
from cbabo.storage.database import Database
from simulators import simulate_beam

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not delete a file that is open")


def delete(file: Path) -> None:
    file.unlink()


def delete_all(file: Path) -> None:
    for part in file.parent.glob(f"{file.name}*"):
        part.unlink()


def delete_log(file: Path) -> None:
    Path(f"{file}-wal").unlink()


def delete_index(file: Path) -> None:
    Path(f"{file}-shm").unlink()


def move(file: Path) -> None:
    file.rename(file.with_name("elsewhere.db"))


def replace(file: Path) -> None:
    shutil.copy(file, file.with_name("older.db"))
    file.with_name("older.db").replace(file)


def remove_folder(file: Path) -> None:
    shutil.rmtree(file.parent)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "studies").mkdir()
    return tmp_path / "studies" / "study.db"


@pytest.mark.parametrize("lose", [delete, delete_all, delete_log, delete_index, move, replace, remove_folder])
def test_a_run_whose_file_is_gone_stops_at_once_and_keeps_everything(
    beam: Problem, file: Path, lose: Callable[[Path], None]
) -> None:
    study = Study.create(beam, f"sqlite:///{file}")
    calls: list[dict[str, float]] = []

    def evaluate(point: dict[str, float]) -> dict[str, float]:
        calls.append(point)
        if len(calls) == 7:
            lose(file)
        return simulate_beam(point)

    with pytest.raises(StorageError, match="the file was deleted, moved or replaced while it was in use") as stop:
        study.run(evaluate, budget=20, in_process=True)
    assert "\n" not in str(stop.value)
    assert len(calls) == 7
    copy = (file.parent if file.parent.exists() else file.parent.parent) / "study.db.recovered"
    assert f"is in {copy}; bring it back by: rm -f {file}-wal {file}-shm && mv {copy} {file}" in str(stop.value)
    assert not list(copy.parent.glob("*.part*"))

    file.parent.mkdir(exist_ok=True)
    subprocess.run(str(stop.value).rpartition("bring it back by: ")[2], shell=True, check=True)
    assert find_damage(Database.open(f"sqlite:///{file}")) == []
    again = Study.open(f"sqlite:///{file}", "beam")
    assert [dict(row.point) for row in again.evaluations.complete] == calls  # the last one included
    again.run(simulate_beam, budget=9)
    assert [row.id for row in again.evaluations.complete] == list(range(1, 10))


def test_with_a_rollback_journal_the_last_result_is_kept_too(
    beam: Problem, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "on_network", lambda path: "nfs4")
    study = Study.create(beam, f"sqlite:///{file}")
    (trial,) = study.ask()
    file.rename(file.with_name("elsewhere.db"))
    with pytest.raises(StorageError, match="the last result included, is in .*study.db.recovered; bring it back"):
        study.tell(trial.id, simulate_beam(trial.point))
    copy = Study.open(f"sqlite:///{file}.recovered", "beam")
    assert copy.evaluations.complete[0].outputs == simulate_beam(trial.point)


def test_a_file_that_is_put_back_in_time_is_no_matter(beam: Problem, file: Path) -> None:
    study = Study.create(beam, f"sqlite:///{file}")

    def evaluate(point: dict[str, float]) -> dict[str, float]:
        file.rename(file.with_name("elsewhere.db"))
        file.with_name("elsewhere.db").rename(file)
        return simulate_beam(point)

    study.run(evaluate, budget=3, in_process=True)
    assert len(study.evaluations.complete) == 3


def test_an_older_copy_is_never_overwritten(beam: Problem, file: Path) -> None:
    study = Study.create(beam, f"sqlite:///{file}")
    Path(f"{file}.recovered").write_text("somebody's")
    file.unlink()
    with pytest.raises(StorageError, match=r"is in .*study.db.recovered-2;"):
        study.ask()
    assert Path(f"{file}.recovered").read_text() == "somebody's"


def test_a_database_that_is_gone_is_not_created_anew(beam: Problem, file: Path) -> None:
    study = Study.create(beam, f"sqlite:///{file}")
    study._store.database.dispose()
    file.unlink()
    with pytest.raises(StorageError):
        study.evaluations.to_frame()
    assert not file.exists()


# ---- media that cannot be written


@pytest.fixture
def medium(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, which `seal` makes read-only."""
    folder = tmp_path / "medium"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", folder], capture_output=True).returncode != 0:
        pytest.skip("only root may mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def seal(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)


@pytest.mark.parametrize("left", [("",), ("", "-wal"), ("", "-wal", "-shm")])
def test_a_study_on_a_read_only_medium_can_be_read(
    beam: Problem, file: Path, medium: Path, left: tuple[str, ...]
) -> None:
    study = Study.create(beam, f"sqlite:///{file}")
    study.run(simulate_beam, budget=34, in_process=True)
    if left == ("",):
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for part in left:
        shutil.copy(f"{file}{part}", medium)
    seal(medium)
    url = f"sqlite:///{medium}/study.db"
    copy = Study.open(url, "beam")
    assert copy.evaluations.rows == study.evaluations.rows
    assert copy.optimiser is None
    assert find_damage(Database.open(url)) == []
    for write in (lambda: copy.ask(), lambda: copy.forget([1]), lambda: copy.run(simulate_beam, budget=40)):
        with pytest.raises(StorageError, match="cannot be written, its file or folder is read-only"):
            write()
    if left == ("", "-wal"):
        predicted = copy.model().predict({})
        assert predicted.point == study.model().predict({}).point


def test_somebody_without_rights_to_the_folder_can_read(beam: Problem) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may become somebody else")
    file = Path("/tmp") / f"cbabo-{os.getpid()}" / "study.db"
    file.parent.mkdir()
    try:
        Study.create(beam, f"sqlite:///{file}").ask()
        code = (
            "import os\n"
            "from cbabo.storage.database import Database; from cbabo.storage.store import StudyStore\n"
            f"count = lambda: len(StudyStore.open(Database.open('sqlite:///{file}'), 'beam').evaluations())\n"
            "count()  # imports everything, which nobody may not\n"
            "os.setgid(65534); os.setuid(65534); print(count())"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr
    finally:
        shutil.rmtree(file.parent)


def test_a_live_lock_does_not_matter_to_a_reader(beam: Problem, file: Path) -> None:
    study = Study.create(beam, f"sqlite:///{file}")
    with study._store.locked():
        assert len(Study.open(f"sqlite:///{file}", "beam").evaluations) == 0
        with pytest.raises(StudyLockedError):
            Study.open(f"sqlite:///{file}", "beam").ask()
