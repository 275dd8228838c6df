"""Plain values for JSON."""

from __future__ import annotations

import json

import pytest

from cbabo.surfaces.records import answer_record, recommendation_record, standing
from learned import model_of, simulate_valley, valley


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


@pytest.mark.parametrize(
    ("room", "std", "expected"),
    [
        (1.0, 0.1, "slack"),
        (0.15, 0.1, "active"),
        (-0.05, 0.1, "active"),
        (-0.15, 0.1, "violated"),
        (0.05, 0.0, "active"),  # within 1 % of the range
        (0.15, 0.0, "slack"),
        (-1e-6, 0.0, "violated"),  # measured
        (-1e-12, 0.0, "active"),
    ],
)
def test_standing_is_told_by_room_and_deviation(room: float, std: float, expected: str) -> None:
    assert standing(room, std, 10.0) == expected
