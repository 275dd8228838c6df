"""Plain values for JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO

import pandas as pd

from cbabo.surfaces.records import answer_record, csv_text, plain_names, recommendation_record
from learned import model_of
from simulators import simulate_valley, valley


def test_records_are_json() -> None:
    model = model_of(valley(), simulate_valley)
    at = {"c": 1.2, "g": 0.1}
    answer = answer_record(model.predict(at))
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert answer["limits"] == at
    assert [row["output"] for row in answer["outputs"]] == ["f", "c", "g"]
    found = recommendation_record(model.recommend(at, {"c": "loosen"}))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert [row["limit"] for row in found["changes"]] == ["c", "g"]
    assert all(set(row["limits"]) == {"c", "g"} for row in found["alternatives"])


def test_no_cell_of_a_csv_file_is_a_formula_and_numbers_stay_numbers() -> None:
    reasons = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "a=b", "", "'quoted", None]
    frame = pd.DataFrame({"-x": [-1.5] * 10, "count": [-3] * 10, "reason": reasons})
    read = pd.read_csv(StringIO(csv_text(frame)), keep_default_na=False)
    assert list(read.columns) == ["'-x", "count", "reason"]
    assert read["'-x"].tolist() == [-1.5] * 10
    assert read["count"].tolist() == [-3] * 10
    expected = ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", "'\nx", "a=b", "", "'quoted", ""]
    assert read["reason"].tolist() == expected
    assert plain_names(read.columns) == {"'-x": "-x"}


def test_csv_is_otherwise_that_of_pandas_and_can_always_be_encoded() -> None:
    now = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
    frame = pd.DataFrame({"a": [1.25, float("nan")], "at": [now, None], "b": ['x, "y"', "µm"], "c": [True, False]})
    assert csv_text(frame) == frame.to_csv(index=False)
    assert csv_text(pd.DataFrame({"a": ["lone \ud800"]})).splitlines() == ["a", "lone \\ud800"]
