"""Tabular files as Dakota writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbabo import Constraint, Objective, Problem, Real, Study
from cbabo.adapters.dakota import is_dakota, read_dakota
from cbabo.errors import InputError

TABLE = """\
%eval_id interface             x1             x2         obj_fn nln_ineq_con_1
1            NO_ID            0.9            1.1         0.0002           0.26
2            NO_ID        0.90009            1.1     0.00020012     0.26017
3            NO_ID           -0.5            1.3         13.252          -0.40
"""


def test_variables_and_responses_become_evaluations(tmp_path: Path) -> None:
    path = tmp_path / "dakota_tabular.dat"
    path.write_text(TABLE)
    assert is_dakota(path)
    table = read_dakota(path)
    assert list(table.columns) == ["x1", "x2", "obj_fn", "nln_ineq_con_1"]
    problem = Problem(
        "textbook",
        [Real("x1", -1.0, 2.0), Real("x2", -1.0, 2.0)],
        Objective("f"),
        [Constraint("c", "<=", low=-0.5, high=0.5)],
    )
    study = Study.create(problem, "sqlite://")
    report = study.add(table, columns={"obj_fn": "f", "nln_ineq_con_1": "c"})
    assert len(report.added) == 3
    assert study.evaluations[2].outputs == {"f": 13.252, "c": -0.4}


def test_other_files_are_not_taken_for_dakotas(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("x1,x2\n1,2\n")
    assert not is_dakota(path)
    assert not is_dakota(tmp_path / "missing.dat")


def test_a_damaged_file_gets_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "damaged.dat"
    path.write_text(TABLE + "4 NO_ID 1 2 3 4 5 6 7\n")
    with pytest.raises(InputError, match="this is no tabular file of Dakota"):
        read_dakota(path)
