"""init, check, export, storage upgrade and demo, as a user calls them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import cbabo.storage.database
import cbabo.storage.schema
import cbabo.surfaces.cli.demo
from cbabo import Settings
from cbabo.surfaces.studyfile import json_schema


def test_init_writes_a_study_that_checks_and_runs(cli: Any, folder: Path) -> None:
    result = cli("init", "new/beam.yaml")
    assert "Next: cbabo check new/beam.yaml" in result.out
    assert "cbabo check beam.yaml" in (folder / "new" / "beam.yaml").read_text()
    out = cli("check", "new/beam.yaml", "--try").out
    assert "outputs at width=60, height=120, wall=6, ribs=2" in out
    assert "new/beam.yaml is valid. Next: cbabo run new/beam.yaml" in out
    assert (
        cli("run", "new/beam.yaml", "--budget", 3, "--format", "csv").out.splitlines()[1].startswith("cantilever,3,3")
    )


def test_init_overwrites_nothing(cli: Any, folder: Path) -> None:
    before = (folder / "study.yaml").read_text()
    assert "study.yaml exists already" in cli("init", code=2).err
    (folder / "simulator.py").write_text("mine")
    assert "simulator.py exists already" in cli("init", "other.yaml", code=2).err
    assert (folder / "study.yaml").read_text() == before
    assert (folder / "simulator.py").read_text() == "mine"
    assert not (folder / "other.yaml").exists()


def test_init_where_nothing_can_be_written(cli: Any) -> None:
    assert "cannot be written" in cli("init", "study.yaml/sub/x.yaml", code=2).err


def test_check_says_what_the_file_states(cli: Any, folder: Path) -> None:
    out = cli("check", "study.yaml").out
    for fragment in (
        "width",
        "real",
        "MPa",
        "1 to 9",
        "minimize",
        ">=",
        "study.yaml is valid. Next: cbabo run study.yaml",
    ):
        assert fragment in out
    assert not (folder / "beam.db").exists()


def test_check_lists_labels_and_refuses_others(cli: Any) -> None:
    words = ("check", "study.yaml", "--set")
    out = cli(*words, "problem.variables.1={name: ribs, type: categorical, values: [one, 'two three']}").out
    assert "categorical" in out
    assert "one, two three" in out
    wrong = cli(*words, "problem.variables.1={name: ribs, type: categorical, values: [1, 2]}", code=2)
    assert "variable 'ribs': a label must be text, got 1; write it in quotes" in wrong.err


def test_check_tries_the_simulator(cli: Any) -> None:
    out = cli("check", "study.yaml", "--try").out
    assert "outputs at width=2, ribs=2" in out
    assert "elements" in out
    failed = cli("check", "study.yaml", "--try", "--set", "evaluator.python=beamsim:broken", code=1)
    assert failed.err.splitlines()[-1].endswith(
        "the evaluator failed at width=2, ribs=2: ValueError: no convergence [red]at all[/red]"
    )
    assert "is right" not in failed.out


def test_check_without_an_evaluator(cli: Any) -> None:
    assert "use cbabo ask and cbabo tell" in cli("check", "study.yaml", "--set", "evaluator=null").out
    words = ("check", "study.yaml", "--set", "evaluator=null", "--try")
    assert "--try needs an 'evaluator:' section" in _refused(cli, *words)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("problem.variables.0.low=5", "'width': low must be below high, got low=5.0, high=3.0"),
        ("problem.variables.0.hihg=5", "problem.variables.0.hihg: unknown key"),
        (
            "problem.variables.0.type=category",
            "the type must be real, integer, discrete or categorical, got 'category'",
        ),
        ("problem.objective=[a, b]", "several objectives are not supported"),
        ("problem.constraints.0.sense='='", "equality constraints are not supported"),
        ("problem.constraints.1=frequency > [2..6]", "only <= and >= are supported"),
        ("problem.variables=3", "variables: expected a list, got 3"),
        ("problem=3", "problem: expected a mapping"),
        ("problm.name=x", "problm: unknown key"),
        ("study.sed=3", "study.sed: unknown key"),
        ("study.seed=-1", "study.seed: input should be greater than or equal to 0, got -1"),
        ("study.seed=true", "study.seed: expected a whole number"),
        ("study.name='a::b'", "study.name: expected a text of 1 to 255 characters without '::'"),
        ("study.storage=beam.db", 'storage: expected a URL such as "sqlite:///study.db"'),
        ("study.storage=mysql://x/y", "only sqlite and postgresql are supported"),
        ("study.storage=sqlite://beam.db", "sqlite takes three slashes"),
        ("study.storage='sqlite:///:memory:'", "a database in memory that would be lost"),
        ("study.settings.preset=papper", "preset must be one of default, paper, got 'papper'"),
        ("study.settings.bathc_size=3", "bathc_size: unknown key"),
        ("study.settings.batch_size=0", "batch_size: input should be greater than or equal to 1"),
        ("study.focus=[{stress: 3}]", "study.focus.0: thresholds: 'frequency' is missing"),
        ("study.focus=[{stress: 99, frequency: 3}]", "study.focus.0: stress must lie between 1.0 and 9.0, got 99.0"),
        ("study.focus=[{stress: 3, frequency: 3, weight: 0}]", "study.focus.0: weights must be positive"),
        ("evaluator.python=nonsense", "a function must be named as module:function"),
        ("evaluator.python=nosuch:evaluate", "there is no module 'nosuch'"),
        ("evaluator.python=beamsim:nosuch", "has no function 'nosuch'"),
        ("evaluator.python=beamsim:number", "must be a function of one point"),
        ("evaluator.command=ls", "must have python or command, but both came"),
        ("evaluator={command: ls, templates: {a.inp: nosuch.inp}}", "nosuch.inp is not there"),
        ("evaluator={command: ls, timeout: 0}", "the timeout must be more than 0 s"),
        ('evaluator={command: "ls \'"}', "cannot be split into words"),
        ("study.seed", "--set: expected path=value such as study.seed=1, got 'study.seed'"),
        ("study..seed=1", "--set: expected path=value"),
        ("=1", "--set: expected path=value"),
        ("study.seed=[1", "--set: the value of 'study.seed' is not valid YAML"),
        ("study.name=2024-99-99", "--set: the value of 'study.name' is not valid YAML"),
        ("problem.variables.7.low=1", "--set: there is no place 'problem.variables.7.low'"),
        ("problem.variables.low=1", "--set: there is no place 'problem.variables.low'"),
        ("problem.name.x=1", "--set: there is no place 'problem.name.x'"),
    ],
)
def test_check_names_what_is_wrong(cli: Any, change: str, said: str) -> None:
    assert said in _refused(cli, "check", "study.yaml", "--set", change)


def _refused(cli: Any, *words: Any) -> str:
    return str(cli(*words, code=2).err)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "expected a YAML mapping with a 'problem:' section, got an empty file"),
        (b"- a\n- b\n", "got a list"),
        (b"just words", "got just 'just words'"),
        (b"a: [1", "bad.yaml, line 1: the file is not valid YAML"),
        (b"a: 1\na: 2\n", "the key 'a' is stated twice"),
        (b"\xff\xfe\x00", "expected a YAML text file in UTF-8"),
        (b"study: {seed: 1}\n", "expected a 'problem:' section, got 'study'; cbabo init writes an example"),
        (b"problem:\n", "problem: expected a mapping of name, variables, objective and constraints, got None"),
    ],
)
def test_check_of_files_that_are_something_else(cli: Any, folder: Path, content: bytes, said: str) -> None:
    (folder / "bad.yaml").write_bytes(content)
    assert said in _refused(cli, "check", "bad.yaml")


def test_check_of_what_is_no_file(cli: Any, folder: Path) -> None:
    assert "nosuch.yaml: the file cannot be read (No such file or directory)" in _refused(cli, "check", "nosuch.yaml")
    assert "Is a directory" in _refused(cli, "check", folder)
    assert "expected a study file; or give --schema" in _refused(cli, "check")
    assert "without '::name'" in _refused(cli, "check", "sqlite:///beam.db")


def test_sections_may_be_empty(cli: Any, folder: Path) -> None:
    text = (folder / "study.yaml").read_text().replace("  storage: sqlite:///beam.db\n", "  settings:\n")
    (folder / "study.yaml").write_text(text)
    cli("check", "study.yaml")
    (folder / "study.yaml").write_text(text.replace("  settings:\n", "").replace("  python: beamsim:evaluate\n", ""))
    assert "names no evaluator" in cli("check", "study.yaml").out


def test_check_points_at_misspelt_placeholders(cli: Any) -> None:
    command = '["sim", "{widht}", "{width:.3f}", "{here}", "{workdir}", "{\\"a\\": 1}"]'
    result = cli("check", "study.yaml", "--set", f"evaluator={{command: {command}}}")
    assert result.err.count("\n") == 1
    assert "evaluator.command holds {widht}, which is no variable" in result.err


def test_the_schema_is_json_and_published(cli: Any) -> None:
    printed = json.loads(cli("check", "--schema").out)
    assert printed == json_schema()
    published = Path(__file__).parents[3] / "docs" / "study.schema.json"
    assert json.loads(published.read_text()) == printed, (
        "the study file has changed; publish its schema by: cbabo check --schema > docs/study.schema.json"
    )


def test_names_with_markup_are_shown_as_they_are(cli: Any, folder: Path) -> None:
    content = yaml.safe_load((folder / "study.yaml").read_text())
    content["problem"]["name"] = "[red]beam[/red]"
    content["problem"]["variables"][0]["unit"] = "[link=x]mm"
    content["problem"]["constraints"][0] = {"name": "[bold]s", "low": 1, "high": 9, "outputs": "stress", "unit": "[/]"}
    (folder / "study.yaml").write_text(yaml.safe_dump(content))
    out = cli("check", "study.yaml").out
    for text in ("[red]beam[/red]: variables", "[link=x]mm", "[bold]s", "[/]"):
        assert text in out
    out = cli("run", "study.yaml", "--budget", 3).out
    assert "[bold]s <= 5 [/]" in out
    assert "[red]beam[/red]" in out


def test_export_csv(cli: Any, folder: Path) -> None:
    cli("run", "study.yaml", "--budget", 4)
    assert cli("export", "csv", "study.yaml", "all.csv").out == "Wrote 4 evaluations to all.csv.\n"
    frame = pd.read_csv(folder / "all.csv")
    assert list(frame["id"]) == [1, 2, 3, 4]
    assert {"state", "kind", "width", "ribs", "mass", "stress", "frequency", "elements", "failure"} <= set(frame)
    cli("export", "csv", f"sqlite:///{folder}/beam.db::beam", "all.csv")
    assert pd.read_csv(folder / "all.csv").equals(frame)


def test_export_never_overwrites_a_study(cli: Any, folder: Path) -> None:
    cli("run", "study.yaml", "--budget", 1)
    for name in ("study.yaml", "beam.db"):
        before = (folder / name).read_bytes()
        assert "is a study and is left as it is" in _refused(cli, "export", "csv", "study.yaml", name)
        assert (folder / name).read_bytes() == before
    assert "cannot be written" in _refused(cli, "export", "csv", "study.yaml", "nosuch/all.csv")
    assert "cannot be written (Is a directory)" in _refused(cli, "export", "csv", "study.yaml", folder)


REVISION = """\
import sqlalchemy as sa
from alembic import op

revision = "test0002"
down_revision = "0001"

def upgrade():
    with op.batch_alter_table("evaluations") as batch:
        batch.add_column(sa.Column("mesh", sa.Text))
"""


def test_storage_upgrade(cli: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{folder}/beam.db"
    cli("run", "study.yaml", "--budget", 3)
    newest = cbabo.storage.schema.REVISIONS[-1]
    assert cli("storage", "upgrade", url).out == f"{url}: already at revision {newest}.\n"
    before = json.loads(cli("status", "study.yaml", "--format", "json").out)

    (folder / "later").mkdir()
    (folder / "later" / "test0002.py").write_text(REVISION.replace("0001", newest))
    revisions = (*cbabo.storage.schema.REVISIONS, "test0002")
    monkeypatch.setattr(cbabo.storage.schema, "REVISIONS", revisions)
    monkeypatch.setattr(cbabo.storage.database, "VERSIONS", [*cbabo.storage.database.VERSIONS, str(folder / "later")])
    for words in (["status", "study.yaml"], ["run", "study.yaml"], ["status", f"{url}::beam"]):
        error = cli(*words, code=1).err
        assert f"this database has the older revision {newest}, expected test0002" in error
        assert f"run: cbabo storage upgrade {url}" in error
    assert cli("storage", "upgrade", url).out == f"{url}: upgraded from revision {newest} to revision test0002.\n"
    assert json.loads(cli("status", "study.yaml", "--format", "json").out) == before
    with sqlite3.connect(folder / "beam.db") as connection:
        assert "mesh" in [row[1] for row in connection.execute("PRAGMA table_info(evaluations)")]
    connection.close()
    cli("run", "study.yaml", "--budget", 4)

    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert "was written by a newer version of cbabo" in cli("status", "study.yaml", code=1).err


def test_storage_upgrade_of_other_things(cli: Any, folder: Path) -> None:
    assert "there is no such database" in _refused(cli, "storage", "upgrade", "sqlite:///nosuch.db")
    assert not (folder / "nosuch.db").exists()
    assert "expected a URL such as" in _refused(cli, "storage", "upgrade", "beam.db")
    assert "three slashes" in _refused(cli, "storage", "upgrade", "sqlite://beam.db")
    (folder / "junk.db").write_text("these are not the bytes of a database, whatever their name says")
    assert "damaged or not one" in cli("storage", "upgrade", "sqlite:///junk.db", code=1).err
    with sqlite3.connect(folder / "other.db") as connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    assert "belongs to something else" in cli("storage", "upgrade", "sqlite:///other.db", code=1).err


def test_check_shows_scales_and_nominal_limits(cli: Any, folder: Path) -> None:
    cli("init", "new.yaml")
    file = folder / "new.yaml"
    text = file.read_text().replace(
        "name: width, type: real, low: 20, high: 100,", "name: width, type: real, low: 20, high: 100, log: true,"
    )
    file.write_text(text)
    table = [line.split() for line in cli("check", "new.yaml").out.splitlines()]
    assert ["width", "real", "20", "100", "mm", "log"] in table
    assert ["height", "real", "40", "200", "mm", "linear"] in table
    assert ["stress", "<=", "80", "to", "250", "165", "MPa", "stress"] in table
    assert ["deflection", "<=", "2", "to", "10", "5", "mm", "deflection"] in table


def test_the_help_lists_commands_in_the_order_of_work(cli: Any) -> None:
    lines = cli("--help").out.partition("Commands:")[2].splitlines()
    commands = [line.split()[0] for line in lines if line.strip()]
    wanted = ["init", "check", "run", "status", "predict", "explain", "refine", "recommend", "decide", "serve"]
    assert [name for name in commands if name in wanted] == wanted


def test_a_shell_gets_completion(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert "complete" in cli("--show-completion", "bash").out


def test_demo_ends_by_itself_and_leaves_something_to_look_at(
    cli: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cbabo.surfaces.cli.demo, "_BUDGET", 20)
    monkeypatch.setattr(Settings, "default", lambda: Settings(library=16))
    result = cli("demo", "shown")
    assert "20/20 evaluations, 0 failed" in result.err
    assert max(map(len, result.out.splitlines()[:-1])) <= 100
    assert "stress <=" in result.out
    assert "With stress <= 165 MPa, deflection <= 5 mm and frequency >= 40 Hz, the lowest mass is " in " ".join(
        result.out.split()
    )
    assert len(pd.read_csv(folder / "shown" / "evaluations.csv")) == 21  # and one for the answer that was verified
    ask = next(line for line in result.out.splitlines() if line.startswith("Ask it yourself: "))
    assert "relaxing stress" in cli(*ask.partition("cbabo ")[2].split()).out
    page = folder / "shown" / "explorer.html"
    assert result.out.splitlines()[-1].endswith(page.as_uri())
    assert 'id="document"' in page.read_text()
    assert "Nothing was left to evaluate" in cli("demo", "shown").err
    assert "no folder can be made there" in _refused(cli, "demo", "study.yaml")
    (folder / "shown" / "evaluations.csv").unlink()
    (folder / "shown" / "evaluations.csv").mkdir()
    assert "evaluations.csv: Is a directory; check the path" in cli("demo", "shown", code=1).err
