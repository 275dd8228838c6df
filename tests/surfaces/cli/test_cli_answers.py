"""predict, refine and recommend, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cbabo import Study
from cbabo.study.modelcache import cached_model


def test_predict_answers_in_every_format(cli: Any, learned: str) -> None:
    table = cli("predict", learned, "--at", "stress=4").out
    assert "predicted" in table
    assert "probability feasible" in table
    answer = json.loads(cli("predict", learned, "--at", "stress=4", "--format", "json").out)
    assert answer["limits"]["stress"] == 4.0
    assert 0.0 <= answer["probability_feasible"] <= 1.0
    assert set(answer["design"]) == {"width", "ribs"}
    assert answer["warnings"] == []
    assert "limits.stress" in cli("predict", learned, "--format", "csv").out.splitlines()[0]


def test_an_answer_shows_the_room_and_the_price_of_every_limit_with_units(cli: Any, learned: str) -> None:
    answer = json.loads(cli("predict", learned, "--at", "stress=4", "--format", "json").out)
    outputs = {row["output"]: row for row in answer["outputs"]}
    cells = cli("predict", learned, "--at", "stress=4", "--format", "csv").out.splitlines()
    row = dict(zip(*(line.split(",") for line in cells), strict=True))
    assert row["status"] == "predicted"
    assert float(row["room.stress"]) == pytest.approx(4.0 - outputs["stress"]["mean"])
    assert float(row["room.frequency"]) == pytest.approx(outputs["frequency"]["mean"] - answer["limits"]["frequency"])
    assert max(float(row["price.stress"]), float(row["price.frequency"])) > 0.0
    table = [line.split() for line in cli("predict", learned, "--at", "stress=4").out.splitlines()]
    stress = next(words for words in table if words[:3] == ["stress", "<=", "4"])
    assert float(stress[3]) == pytest.approx(outputs["stress"]["mean"], abs=3.0 * outputs["stress"]["std"] + 1e-6)
    assert ["variable", "value", "unit"] in table


def test_many_answers_state_their_status(cli: Any, learned: str, folder: Path) -> None:
    (folder / "limits.csv").write_text("stress,frequency\n4,3\n1,3\n")
    rows = json.loads(cli("predict", learned, "--file", "limits.csv", "--format", "json").out)
    assert [row["status"] for row in rows] == ["predicted", "unreachable"]


def test_a_recommendation_as_csv_has_its_limits_prices_and_design(cli: Any, learned: str) -> None:
    words = ("recommend", learned, "--at", "stress=4", "--loosen", "stress")
    found = json.loads(cli(*words, "--format", "json").out)
    lines = cli(*words, "--format", "csv").out.splitlines()
    row = dict(zip(*(line.split(",") for line in lines), strict=True))
    after = {change["limit"]: change["after"] for change in found["changes"]}
    assert float(row["limits.stress"]) == pytest.approx(after["stress"])
    assert float(row["design.width"]) == pytest.approx(found["design"]["width"])
    assert row["status"] in ("predicted", "verified")
    assert {"price.stress", "room.stress"} <= set(row)
    assert "room after" in cli(*words).out


@pytest.mark.parametrize("words", [("--at", "stress=4"), ("--file", "limits.csv")])
def test_what_predict_has_solved_is_kept(cli: Any, learned: str, folder: Path, words: tuple[str, ...]) -> None:
    (folder / "limits.csv").write_text("stress,frequency\n4,3\n")
    for kept in folder.glob("beam.db.model-*"):
        kept.unlink()
    cli("predict", learned, *words)
    assert cached_model(Study.open(*learned.split("::"))).library is not None


def test_predict_says_what_can_be_met_where_limits_cannot(cli: Any, learned: str) -> None:
    """The stress is never below 1.27."""
    answer = json.loads(cli("predict", learned, "--at", "stress=1", "--format", "json").out)
    assert answer["status"] == "unreachable"
    assert answer["probability_feasible"] < 0.01
    assert 1.2 < answer["closest_limits"]["stress"] < 2.0
    assert "closest limits" in cli("predict", learned, "--at", "stress=1").out
    reachable = json.loads(cli("predict", learned, "--at", "stress=4", "--format", "json").out)
    assert reachable["closest_limits"] == {}
    assert reachable["probability_feasible"] >= 0.97


def test_predict_aims_at_the_probability_asked_for(cli: Any, learned: str, folder: Path) -> None:
    """What is reachable half of the time need not be so nearly always."""
    (folder / "limits.csv").write_text("stress,frequency\n1.28,2\n")
    chances = []
    for wanted in ("0.5", "0.999"):
        cautious = ("--probability", wanted, "--format", "json")
        one = json.loads(cli("predict", learned, "--at", "stress=1.28", "--at", "frequency=2", *cautious).out)
        rows = json.loads(cli("predict", learned, "--file", "limits.csv", *cautious).out)
        assert rows[0]["probability feasible"] == pytest.approx(one["probability_feasible"], abs=1e-9)
        assert (one["status"] == "unreachable") == (one["probability_feasible"] < float(wanted) - 1e-3)
        chances.append(one["probability_feasible"])
    assert chances[0] <= chances[1]


def test_predict_is_true_with_the_default_settings(cli: Any, learned: str) -> None:
    answer = json.loads(cli("predict", learned, "--at", "stress=4", "--at", "frequency=3", "--format", "json").out)
    width, ribs = answer["design"]["width"], answer["design"]["ribs"]
    assert 12.0 / (width**2 + 0.1 * ribs) <= 4.0 + 1e-6
    assert 1.5 * width + 0.2 * ribs >= 3.0 - 1e-6
    assert answer["objective"] == pytest.approx(width**2 + 0.3 * ribs, abs=1e-2)
    assert answer["objective"] < 4.1  # the best is 4: a width of 2, no ribs


def test_refine_stops_where_nothing_is_left_to_gain(cli: Any, learned: str) -> None:
    words = ("refine", learned, "--evaluator", "beamsim:evaluate", "--evaluations", "9", "--format", "json")
    answer = json.loads(cli(*words).out)
    assert answer["status"] == "verified"
    spent = json.loads(cli("status", learned, "--format", "json").out)["complete"] - 35
    assert spent < 9
    assert any("stopped after" in w["warning"] for w in answer["warnings"])


def test_predict_reads_many_questions_from_a_file(cli: Any, learned: str, folder: Path) -> None:
    names = list(json.loads(cli("predict", learned, "--format", "json").out)["limits"])
    values = ",".join("4" for _ in names)
    (folder / "limits.csv").write_text(",".join(names) + f"\n{values}\n{values}\n")
    rows = json.loads(cli("predict", learned, "--file", "limits.csv", "--format", "json").out)
    assert len(rows) == 2
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--at", "stres=4"], "--at: unknown constraint 'stres'; expected stress, frequency"),
        (["--at", "stress=high"], "stress must be a number"),
        (["--at", "stress"], "expected name=value"),
        (["--file", "nothing.csv"], "expected a CSV file of limits"),
        (["--file", "study.yaml", "--at", "stress=4"], "got both"),
        (["--probability", "1.5"], "probability must be a number between 0 and 1, got 1.5"),
    ],
)
def test_a_wrong_question_gets_one_sentence(cli: Any, learned: str, arguments: list[str], said: str) -> None:
    error = cli("predict", learned, *arguments, code=2).err
    assert said in error
    assert error.count("\n") == 1


def test_refine_spends_what_it_is_given(cli: Any, learned: str) -> None:
    answer = json.loads(
        cli("refine", learned, "--evaluator", "beamsim:evaluate", "--evaluations", "1", "--format", "json").out
    )
    assert answer["status"] == "verified"
    assert all(output["std"] == 0.0 for output in answer["outputs"])
    assert json.loads(cli("status", learned, "--format", "json").out)["complete"] == 36
    assert "never taken from the database" in cli("refine", learned, code=2).err


def test_recommend_follows_what_it_is_told(cli: Any, learned: str) -> None:
    found = json.loads(cli("recommend", learned, "--tighten", "stress", "--format", "json").out)
    change = next(row for row in found["changes"] if row["limit"] == "stress")
    assert change["intent"] == "tighten"
    assert {row["intent"] for row in found["changes"] if row["limit"] != "stress"} <= {"lock"}
    assert "name it once" in cli("recommend", learned, "--tighten", "stress", "--loosen", "stress", code=2).err
    assert "unknown limit" in cli("recommend", learned, "--tighten", "nothing", code=2).err


def test_a_study_without_data_says_so(cli: Any, folder: Path) -> None:
    cli("ask", "study.yaml")
    assert "a model needs at least 2 measured designs" in cli("predict", "study.yaml", code=1).err


def test_ctrl_c_in_a_refinement_exits_with_130_and_the_next_run_measures_it(
    cli: Any, learned: str, folder: Path
) -> None:
    (folder / "stopped.py").write_text(
        "import os, signal, time\ndef evaluate(point):\n    os.kill(os.getppid(), signal.SIGINT)\n    time.sleep(60)\n"
    )
    error = cli("refine", learned, "--evaluator", "stopped:evaluate", "--at", "stress=4", code=130).err
    assert error.splitlines()[-1].startswith("cbabo: interrupted; everything told so far is stored")
    assert json.loads(cli("status", learned, "--format", "json").out)["to_run_again"] == 1
    cli("run", learned, "--evaluator", "beamsim:evaluate", "--budget", "35")
    assert json.loads(cli("status", learned, "--format", "json").out)["to_run_again"] == 0


def test_the_time_limit_of_a_python_simulator_holds_in_refine_and_in_a_trial(cli: Any, folder: Path) -> None:
    file = folder / "study.yaml"
    cli("run", "study.yaml", "--budget", "12")
    file.write_text(file.read_text().replace("python: beamsim:evaluate", "python: beamsim:hanging\n  timeout: 0.5"))
    assert "within 0.5 s" in cli("check", "study.yaml", "--try", code=1).err
    refined = cli("refine", "study.yaml", "--evaluations", "1", "--format", "json")
    assert "no answer within 0.5 s" in json.loads(refined.out)["warnings"][0]["warning"]


def test_a_refined_design_that_breaks_a_limit_is_said_and_exits_with_one(cli: Any, learned: str) -> None:
    limits = ("--at", "stress=1", "--at", "frequency=6")
    found = cli(
        "refine", learned, *limits, "--evaluations", "1", "--evaluator", "beamsim:evaluate", "--format", "json", code=1
    )
    answer = json.loads(found.out)
    assert answer["status"] == "measured"
    assert any("the measured design breaks stress <= 1" in w["warning"] for w in answer["warnings"])
    assert found.err.splitlines()[-1].startswith("cbabo: not verified: the measured design breaks ")


def test_the_second_prediction_uses_the_model_that_was_kept(
    cli: Any, learned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cli("predict", learned, "--at", "stress=4", "--format", "json").out
    monkeypatch.setattr("cbabo.study.study.Study.model", None)
    assert cli("predict", learned, "--at", "stress=4", "--format", "json").out == first


def test_explain_says_what_limits_cost(cli: Any, learned: str) -> None:
    """The beam's mass is width^2 + 0.3 ribs, its stress 12 / (width^2 + 0.1 ribs): at 4 the price is 12 / 16."""
    at = ("--at", "stress=4", "--at", "frequency=2")
    said = cli("explain", learned, *at).out.splitlines()
    assert said[0] == "stress binds"
    assert said[1].startswith("relaxing stress by 1 MPa saves 0.7")
    assert " +- " in said[1]
    assert " kg, from " in said[1]
    assert "it could be as strict as " in said[1]
    assert said[2].startswith("relaxing frequency gains nothing, from 2 to ")
    record = json.loads(cli("explain", learned, *at, "--format", "json").out)
    assert record["binding"] == ["stress"]
    assert record["prices"][0]["price"] == pytest.approx(0.75, rel=0.05)
    assert record["conflict"] is None
    assert record["ways_out"] == []
    assert cli("explain", learned, *at, "--format", "csv").out.startswith("limit,unit,at,price,std,low,high,strictest,")


def test_explain_says_what_conflicts(cli: Any, learned: str) -> None:
    """The stress is never below 1.27."""
    said = cli("explain", learned, "--at", "stress=1", "--cost", "stress=2").out.splitlines()
    assert said[0].startswith("stress <= 1 MPa cannot be met: the most probable design obeys it with a probability of ")
    assert said[1].startswith("a way out at a cost of ")
    assert "relax stress from 1 to 1." in said[1]
    record = json.loads(cli("explain", learned, "--at", "stress=1", "--cost", "stress=2", "--format", "json").out)
    way = record["ways_out"][0]
    assert record["conflict"]["limits"] == way["moved"] == ["stress"]
    assert way["cost"] == pytest.approx(2.0 * (way["limits"]["stress"] - 1.0))
    assert 1.2 < way["limits"]["stress"] < 2.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--at", "stress=much"), "--at: stress must be a number, got 'much'"),
        (("--cost", "stress=much"), "--cost: stress must be a number, got 'much'"),
        (("--cost", "size=1"), "--cost: unknown limit 'size'; expected stress, frequency"),
        (("--cost", "stress"), "--cost: expected name=value, each name once, got 'stress'"),
    ],
)
def test_explain_refuses_in_one_sentence(cli_raw: Any, learned: str, words: tuple[str, ...], said: str) -> None:
    result = cli_raw("explain", learned, *words)
    assert result.code == 2
    assert said in result.err


def test_recommend_takes_values(cli: Any, learned: str) -> None:
    words = ("--at", "stress=4", "--at", "frequency=3", "--loosen", "stress=4.7", "--format", "json")
    changes = {row["limit"]: row for row in json.loads(cli("recommend", learned, *words).out)["changes"]}
    assert changes["stress"]["after"] <= 4.7
    assert changes["frequency"]["after"] == 3.0
