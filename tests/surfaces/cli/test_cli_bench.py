"""bench plan, run, table and figure, as a user calls them; a slice of the smoke campaign is run for real."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from distributed import LocalCluster

from cbabo.bench.campaign import Campaign, Unit, append, read_rows

SMOKE = Path(__file__).parents[3] / "benchmarks" / "campaigns" / "smoke.yaml"
SLICE = ["CMA-ES", "constant strictest", "constant relaxed"]


@pytest.fixture
def campaign(folder: Path) -> Path:
    """A slice of the smoke campaign that takes seconds."""
    stated = yaml.safe_load(SMOKE.read_text())
    assert set(stated["methods"]) >= set(SLICE)
    stated |= {"problems": stated["problems"][-1:], "methods": SLICE}
    (folder / "smoke.yaml").write_text(yaml.safe_dump(stated))
    return folder / "smoke.yaml"


def test_a_campaign_is_planned_run_and_shown(cli: Any, folder: Path, campaign: Path) -> None:
    planned = cli("bench", "plan", "smoke.yaml").out
    assert "smoke: 3 runs, 3 to do, 170 iterations, about 0.05 core-hours." in planned
    assert "no: 60 s a run" in planned
    done = cli("bench", "run", "smoke.yaml", "--workers", "1")
    assert "all 3 units are in smoke.csv" in done.out
    assert done.err.count("left\n") == 3
    assert "3/3 gkxwc2_active, constant relaxed, seed 0, N 100" in done.err
    assert {row.unit for row in read_rows([folder / "smoke.csv"])} == set(Campaign.read(campaign).units)
    table = json.loads(cli("bench", "table", "loss", "--folder", ".", "--format", "json").out)
    loss = {row["method"]: row["loss %"] for row in table}
    assert set(loss) == set(SLICE)
    assert loss["CMA-ES"] < loss["constant relaxed"]
    assert "3 runs, 0 to do, 0 iterations" in cli("bench", "plan", "smoke.yaml").out
    assert cli("bench", "run", "smoke.yaml").err == ""
    cli("bench", "figure", "loss", "--folder", ".", "--file", "loss.svg")
    assert (folder / "loss.svg").read_text().startswith("<?xml")


def test_a_campaign_runs_on_a_dask_cluster(cli: Any, folder: Path, campaign: Path) -> None:
    campaign.write_text(campaign.read_text().replace("- CMA-ES\n", ""))
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        done = cli("bench", "run", "smoke.yaml", "--dask", cluster.scheduler_address)
    assert "2/2" in done.err
    assert len(read_rows([folder / "smoke.csv"])) == 2


def test_estimates_come_from_rows_that_are_there(cli: Any, folder: Path, campaign: Path) -> None:
    append(folder / "other.csv", Unit("gkxwc2_active", "CMA-ES", 5, 50), 3600.0, {})
    lines = json.loads(cli("bench", "plan", "smoke.yaml", "--format", "json").out)
    assert lines[0]["core-hours"] == 1.0
    assert lines[0]["measured"] == "yes"


def test_rows_of_an_earlier_revision_are_told(cli: Any, folder: Path) -> None:
    append(folder / "rows.csv", Unit("gkxwc2", "constant strictest", 0, 100), 1.0, _answers())
    assert cli("bench", "table", "loss", "--folder", ".").err == ""
    text = (folder / "rows.csv").read_text().splitlines()
    cells = text[1].split(",", 5)
    (folder / "rows.csv").write_text("\n".join([text[0], ",".join([*cells[:4], "older", cells[5]])]) + "\n")
    assert "earlier revision are among these: constant strictest" in cli("bench", "table", "loss", "--folder", ".").err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("table", "best"), "unknown table 'best'; expected one of feasibility"),
        (("figure", "best"), "unknown figure 'best'; expected one of"),
        (("table", "feasibility", "--folder", "."), "no results there"),
        (("run", "none.yaml"), "none.yaml: the file cannot be read"),
        (("run", "smoke.yaml", "--dask", "nowhere"), "--dask"),
        (("run", "smoke.yaml", "--dask", "tcp://127.0.0.1:9", "--workers", "2"), "expected --workers or --dask"),
    ],
)
def test_wrong_words_get_one_sentence(cli: Any, campaign: Path, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in cli("bench", *words, code=2).err


def test_a_failing_unit_ends_in_one_sentence(cli: Any, folder: Path) -> None:
    (folder / "bad.yaml").write_text("name: bad\nproblems: [car]\nmethods: [qLogNEHVI]\nseeds: 1\n")
    result = cli("bench", "run", "bad.yaml", "--workers", "1", code=1)
    assert "at most 2 constraints" in result.err
    assert "1 of 1 units failed" in result.err


def test_ctrl_c_exits_with_130_and_says_how_to_resume(
    cli: Any, campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cbabo.bench.campaign.run", interrupted)
    error = cli("bench", "run", "smoke.yaml", code=130).err
    assert error == "cbabo: stopped; every finished unit is stored, resume by: cbabo bench run smoke.yaml\n"


def test_a_missing_extra_is_named(cli: Any, campaign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "cbabo.bench.figures":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "bench needs matplotlib" in cli("bench", "figure", "loss", code=2).err


def _answers() -> dict[str, float | list[float]]:
    return {"row": [0, 1], "direct objective": [0.0, 0.0], "direct feasible": [1, 0], "direct share": 0.5}
