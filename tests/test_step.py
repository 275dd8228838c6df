from __future__ import annotations

import numpy as np
import pytest

from cbabo import Discrete, Integer, Objective, Problem, Real, Settings
from cbabo.evaluations import Evaluation, Evaluations
from cbabo.step import step


def table(problem: Problem, count: int, state: str = "complete") -> Evaluations:
    outputs = dict.fromkeys(problem.outputs, 1.0) if state == "complete" else {}
    rows = [
        Evaluation(i + 1, state, "import", problem.space.points([[i / count, 0.5]])[0], outputs)  # type: ignore[arg-type]
        for i in range(count)
    ]
    return Evaluations(problem, tuple(rows))


def propose(
    evaluations: Evaluations, state: bytes | None = None, seed: int = 0
) -> tuple[list[dict[str, float]], bytes]:
    return step(evaluations, evaluations.running, state, Settings.default(), seed)


def test_the_first_batch_is_a_latin_hypercube_of_thirty(beam: Problem) -> None:
    batch, _ = propose(table(beam, 0))
    assert len(batch) == 30
    width = np.sort([(point["width"] - 1.0) / 2.0 for point in batch])
    assert (np.floor(width * 30) == np.arange(30)).all()  # one in each of thirty slices
    counts = np.bincount([int(point["ribs"]) for point in batch], minlength=5)
    assert (counts == 6).all()  # every whole number has the same share


@pytest.mark.parametrize(("imported", "size"), [(1, 29), (29, 1), (30, 5), (100, 5)])
def test_imported_rows_are_topped_up(beam: Problem, imported: int, size: int) -> None:
    assert len(propose(table(beam, imported))[0]) == size


def test_failed_rows_do_not_count_as_imported(beam: Problem) -> None:
    assert len(propose(table(beam, 10, "failed"))[0]) == 30


def test_later_batches_have_five_and_depend_on_seed_and_state_only(beam: Problem) -> None:
    evaluations = table(beam, 30)
    first, state = propose(evaluations)
    second, later = propose(evaluations, state)
    assert len(second) == 5
    assert second != first
    assert propose(evaluations, state) == (second, later)
    assert propose(evaluations, state, seed=1)[0] != second


def test_points_are_legal_whatever_the_variables() -> None:
    values = [0.192, 0.345, 7.0]
    variables = [Real("r", -1e-9, 1e12), Real("l", 1e-6, 1e6, log=True), Integer("i", -3, 40), Discrete("d", values)]
    problem = Problem("legal", variables, Objective("f"), ["c <= [0..1]"])
    batch, _ = propose(Evaluations(problem, ()))
    for point in batch:
        assert -1e-9 <= point["r"] <= 1e12
        assert 1e-6 <= point["l"] <= 1e6
        assert isinstance(point["i"], int)
        assert -3 <= point["i"] <= 40
        assert point["d"] in values
