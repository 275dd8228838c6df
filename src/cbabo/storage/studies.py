"""The studies of a database: what was fixed when each was created."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from cbabo.domain.problem import Problem
from cbabo.errors import ConflictError, StorageError, StudyError
from cbabo.methods.settings import MethodSettings, Settings
from cbabo.numerics.versions import versions
from cbabo.storage.database import Database
from cbabo.storage.rows import UNREADABLE, is_intact, sealed, utc
from cbabo.storage.schema import PROGRESS, STUDIES


@dataclass(frozen=True)
class StudyRecord:
    """What was fixed when a study was created, and its problem, which may be amended."""

    id: int
    name: str
    problem: Problem
    seed: int
    settings: MethodSettings
    versions: Mapping[str, str]
    created: datetime
    stated: str
    """The problem as it is stored."""


def add_study(database: Database, name: str, problem: Problem, seed: int, settings: MethodSettings) -> bool:
    """Store a new study; return False if there is one of that name."""
    if name in study_names(database):
        return False
    _refuse_damaged(database)
    values = {
        "name": name,
        "problem": json.dumps(problem.to_dict()),
        "seed": str(seed),
        "settings": json.dumps(settings.to_dict()),
        "versions": json.dumps(versions()),
        "created": time.time(),
    }
    try:
        with database.writing() as connection:
            number = connection.execute(sa.insert(STUDIES).values(values).returning(STUDIES.c.id)).scalar_one()
            row = sealed(STUDIES, {**values, "id": number})
            connection.execute(sa.update(STUDIES).where(STUDIES.c.id == number).values(checksum=row["checksum"]))
            progress = sealed(PROGRESS, {"study_id": number, "evaluations": 0, "steps": 0})
            connection.execute(sa.insert(PROGRESS).values(progress))
    except ConflictError:
        return False  # another process was quicker
    return True


def find_study(database: Database, name: str) -> StudyRecord:
    """Return the study of this name."""
    with database.reading() as connection:
        row = connection.execute(sa.select(STUDIES).where(STUDIES.c.name == name)).mappings().first()
    if row is None:
        _refuse_damaged(database)
        names = ", ".join(repr(n) for n in study_names(database)) or "none"
        raise StudyError(f"there is no study {name!r} in {database.label}; it holds: {names}")
    return read_study(database, row)


def study_names(database: Database) -> list[str]:
    """List the studies of a database."""
    with database.reading() as connection:
        return [str(name) for name in connection.execute(sa.select(STUDIES.c.name).order_by(STUDIES.c.id)).scalars()]


def read_study(database: Database, row: sa.RowMapping) -> StudyRecord:
    """Return the study of a row."""
    if not is_intact(STUDIES, row):
        raise StorageError(
            f"{database.label}: study {row['name']!r}: its problem, seed or settings are damaged; "
            "restore a copy of the database"
        )
    try:
        return StudyRecord(
            id=row["id"],
            name=row["name"],
            problem=Problem.from_dict(json.loads(row["problem"])),
            seed=int(row["seed"]),
            settings=Settings.from_dict(json.loads(row["settings"])),
            versions=json.loads(row["versions"]),
            created=utc(row["created"]),
            stated=row["problem"],
        )
    except UNREADABLE as error:  # of JSON, of the problem or of the settings
        raise StorageError(
            f"{database.label}: study {row['name']!r} states a problem or settings that this version does not know; "
            "use the version of cbabo that created it, or a newer one"
        ) from error


def _refuse_damaged(database: Database) -> None:
    """Refuse where a study was not found, but a damaged one may be it."""
    with database.reading() as connection:
        rows = connection.execute(sa.select(STUDIES).order_by(STUDIES.c.id)).mappings().all()
    for row in rows:
        if not is_intact(STUDIES, row):
            raise StorageError(
                f"{database.label}: a study of this database is damaged (it is called {str(row['name'])!r} now); "
                "see: cbabo storage check, and restore a copy of the database"
            )
