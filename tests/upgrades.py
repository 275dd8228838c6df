"""Databases of older revisions, for tests of the upgrade on SQLite and PostgreSQL."""

from __future__ import annotations

import json
import time
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from cbabo import Study
from cbabo.storage import database as module
from cbabo.storage import schema
from cbabo.storage.checking import find_damage
from cbabo.storage.database import Database
from simulators import make_beam, simulate_beam

POINT = {"width": 1.5, "ribs": 2}


def create_old(url: str, revision: str) -> Database:
    """Lay out the tables of an older revision, with one study in them."""
    database = Database(url)
    if database.file is not None:
        database.file.touch()
    config = Config()
    config.set_main_option("script_location", str(Path(module.VERSIONS[0]).parent))
    with database.writing() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        study = {"problem": json.dumps(make_beam().to_dict()), "settings": '{"preset": "default"}'}
        insert = "INSERT INTO studies VALUES (1, 'beam', :problem, '7', :settings, NULL, '{}', 12.5)"
        connection.execute(sa.text(insert), study)
        row = (
            "INSERT INTO evaluations (study_id, number, state, kind, point, outputs, failure, started, seconds) "
            "VALUES (1, :number, :state, 'run', :point, :outputs, :failure, 1700000000.123, 0.1)"
        )
        complete = {"state": "complete", "outputs": json.dumps(simulate_beam(POINT)), "failure": None}
        failed = {"state": "failed", "outputs": None, "failure": "interrupted: caf\u00e9"}
        for number, outcome in enumerate((complete, failed, complete), start=1):
            connection.execute(sa.text(row), {"number": number, "point": json.dumps(POINT), **outcome})
        connection.execute(sa.text("INSERT INTO planned VALUES (1, 4, :point)"), {"point": json.dumps(POINT)})
        connection.execute(
            sa.text("INSERT INTO locks VALUES (1, 'old', 'host|pid:[1]', 1, 1.0, :beat)"), {"beat": time.time() - 3600}
        )
    return database


def check_upgrade(url: str, revision: str) -> None:
    """Upgrade, and find everything again with its checksums."""
    create_old(url, revision)
    assert Database.existing(url).upgrade() == (revision, schema.REVISIONS[-1])
    database = Database.open(url)
    assert find_damage(database) == []
    study = Study.open(url, "beam")
    assert [(row.id, row.state, row.excluded) for row in study.evaluations] == [
        (1, "complete", None),
        (2, "failed", None),
        (3, "complete", None),
    ]
    assert study.evaluations[0].outputs == simulate_beam(POINT)
    assert study.ask()[0].id == 4
    assert study.optimiser is None
    assert find_damage(database) == []
