from __future__ import annotations

import json
from pathlib import Path

from cli.conftest import Command

from cbabo import Study
from cbabo.study.modelcache import cached_model


def test_decide_and_decisions(cli: Command, learned: str) -> None:
    assert "Nothing was decided" in cli("decisions", learned).out
    words = (
        "decide",
        learned,
        "--at",
        "stress=4",
        "--note",
        "agreed with supplier",
        "--by",
        "hk",
        "--loosen",
        "stress",
    )
    made = json.loads(cli(*words, "--format", "json").out)
    assert (made["number"], made["by"], made["limits"]["stress"]) == (1, "hk", 4.0)
    assert made["intents"] == {"stress": "loosen"}
    cli("decide", learned, "--proposal")
    table = cli("decisions", learned).out
    assert "agreed with supplier" in table
    assert "proposal" in table
    assert [row["kind"] for row in json.loads(cli("decisions", learned, "--format", "json").out)] == [
        "decision",
        "proposal",
    ]
    assert cli("decisions", learned, "--format", "csv").out.startswith("number,kind,made,by,note")
    assert "no damage" in cli("storage", "check", learned.rpartition("::")[0]).out
    cli("decide", learned, "--at", "strain=4", code=2)


def test_an_audit_is_shown_by_status(cli: Command, folder: Path, learned: str) -> None:
    del learned
    assert json.loads(cli("status", "study.yaml", "--format", "json").out)["last_audit"] is None
    said = json.loads(cli("audit", "study.yaml", "--evaluations", "3", "--format", "json").out)
    assert said["shares"][0]["count"] == 3
    assert said["rejected"] is False
    assert "3 of 3 answers obey all limits" in cli("status", "study.yaml").out
    cli("audit", "sqlite:///beam.db::beam", code=2)
    wrong = (folder / "beamsim.py").read_text().replace("12.0 /", "30.0 /")
    (folder / "beamsim.py").write_text(wrong)
    found = cli_code(cli, "audit", "study.yaml", "--evaluations", "4")
    assert "the claim is rejected" in found
    (note,) = cached_model(Study.open("sqlite:///beam.db", "beam")).notes
    assert "rejects the stated probabilities" in note
    page = cli("export", "report", "study.yaml", "report.html")
    assert page.code == 0
    report = (folder / "report.html").read_text()
    assert "rejects the stated probabilities" in report
    assert "the claim is rejected" in report


def cli_code(cli: Command, *words: str) -> str:
    """A rejected audit is printed, and its exit code is 1."""
    result = cli(*words, code=1)
    assert "shares" in result.out
    return result.err
