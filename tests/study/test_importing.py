from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cbabo import Categorical, Constraint, Objective, Problem, Real
from cbabo.errors import InputError
from cbabo.study.importing import CheckedRows, check_rows

HEADER = "width,ribs,mass,stress,frequency,cost"
GOOD = "1.5,1,2,3,4,5"
POINT = {"width": 1.5, "ribs": 1}
OUTPUTS = {"mass": 2.0, "stress": 3.0, "frequency": 4.0, "cost": 5.0}


def read(beam: Problem, text: str | bytes, folder: Path, columns: Any = None, known: Any = ()) -> CheckedRows:
    path = folder / "runs.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return check_rows(beam, path, columns, known)


def test_a_row_becomes_a_point_and_outputs(beam: Problem, tmp_path: Path) -> None:
    checked = read(beam, f"{HEADER}\n{GOOD}\n", tmp_path)
    assert checked == CheckedRows(((POINT, OUTPUTS),), (), 0)
    assert isinstance(checked.rows[0][0]["ribs"], int)


def test_further_numbers_are_kept_and_other_columns_are_not(beam: Problem, tmp_path: Path) -> None:
    header = f"id,{HEADER},elements,note,empty,worker,"
    checked = read(beam, f"{header}\n7,{GOOD},1e3,fine,,vm:3,8\n", tmp_path)
    assert checked.rows == ((POINT, {**OUTPUTS, "elements": 1000.0}),)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends(beam: Problem, tmp_path: Path, delimiter: str, newline: str) -> None:
    text = f"{HEADER}\n{GOOD}\n".replace(",", delimiter).replace("\n", newline)
    assert read(beam, text, tmp_path).rows == ((POINT, OUTPUTS),)
    assert read(beam, b"\xef\xbb\xbf" + text.encode(), tmp_path).rows == ((POINT, OUTPUTS),)


def test_the_delimiter_is_not_taken_from_a_quoted_name(beam: Problem, tmp_path: Path) -> None:
    text = '"mass, dry, in kg";width;ribs;stress;frequency;cost\n2;1.5;1;3;4;5\n'
    assert read(beam, text, tmp_path, {"mass, dry, in kg": "mass"}).rows == ((POINT, OUTPUTS),)


def test_decimal_commas_in_a_semicolon_file(beam: Problem, tmp_path: Path) -> None:
    header = HEADER.replace(",", ";")
    assert read(beam, f"{header}\n1,5;1;2,0;3;4;,5e1\n", tmp_path).rows == ((POINT, {**OUTPUTS, "cost": 5.0}),)
    mixed = read(beam, f"{header}\n1.5;1;2,0;3;4;5\n", tmp_path)
    assert mixed.problems == ((2, "mass must be a finite number, got '2,0'"),), "1,000 may mean a thousand here"
    thousands = read(beam, f"{header}\n1,5;1;1,000,000;3;4;5\n", tmp_path)
    assert thousands.problems == ((2, "mass must be a finite number, got '1,000,000'"),)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("0.5,1,2,3,4,5", "width must lie between 1.0 and 3.0, got 0.5"),
        ("1.5,1.5,2,3,4,5", "ribs must be a whole number, got 1.5"),
        ("1.5,9,2,3,4,5", "ribs must lie between 0 and 4, got 9.0"),
        (",1,2,3,4,5", "width is empty; expected a number"),
        ("1.5,1, ,3,4,5", "mass is empty; expected a number"),
        ("1.5,1,inf,3,4,5", "mass must be a finite number, got 'inf'"),
        ("1.5,1,NaN,3,4,5", "mass must be a finite number, got 'NaN'"),
        ("1.5,1,1_0,3,4,5", "mass must be a finite number, got '1_0'"),
        ("1.5,1,2 kg,3,4,5", "mass must be a finite number, got '2 kg'"),
        ("1.5,1,2,3,4", "expected 6 cells, got 5"),
        ("1.5,1,2,3,4,5,6", "expected 6 cells, got 7"),
    ],
)
def test_a_bad_row_is_listed_by_its_line_and_the_rest_is_kept(
    beam: Problem, tmp_path: Path, row: str, said: str
) -> None:
    checked = read(beam, f"{HEADER}\n{GOOD}\n\n{row}\n{GOOD}\n", tmp_path)
    assert checked.problems == (
        (4, said.replace("0.0 and 4.0", f"{beam.variables[1].low!r} and {beam.variables[1].high!r}")),
    )
    assert len(checked.rows) == 2


def test_lines_are_counted_in_the_file(beam: Problem, tmp_path: Path) -> None:
    text = f'{HEADER},note\n{GOOD},"two\nlines"\n{GOOD},"three\nlong\nlines"\nx,1,2,3,4,5,\n'
    checked = read(beam, text, tmp_path)
    assert len(checked.rows) == 2
    assert [line for line, _ in checked.problems] == [7]


def test_empty_cells_at_the_end_of_a_line_are_forgiven(beam: Problem, tmp_path: Path) -> None:
    assert len(read(beam, f"{HEADER}\n{GOOD},,\n", tmp_path).rows) == 1


def test_failed_rows_of_an_export_are_no_measurements(beam: Problem, tmp_path: Path) -> None:
    text = f"state,{HEADER}\nfailed,1.5,1,,,,\ncomplete,{GOOD}\nrunning,1.5,1,,,,\n"
    checked = read(beam, text, tmp_path)
    assert len(checked.rows) == 1
    assert [why for _, why in checked.problems] == [
        "it is a failed evaluation, not a measurement",
        "it is a running evaluation, not a measurement",
    ]


def test_a_mended_file_may_be_imported_again(beam: Problem, tmp_path: Path) -> None:
    first = read(beam, f"{HEADER}\n{GOOD}\n9,1,2,3,4,5\n", tmp_path)
    again = read(beam, f"{HEADER}\n{GOOD}\n2.5,1,2,3,4,5\n", tmp_path, known=first.rows)
    assert (len(again.rows), again.known, again.problems) == (1, 1, ())
    with_more = read(beam, f"{HEADER},elements\n{GOOD},8\n", tmp_path, known=first.rows)
    assert (len(with_more.rows), with_more.known) == (0, 1), "a further column makes no new measurement"
    other = read(beam, f"{HEADER}\n1.5,1,2,3,4,5.5\n", tmp_path, known=first.rows)
    assert (len(other.rows), other.known) == (1, 0), "another measurement of the same design is one more"


def test_a_frame(beam: Problem) -> None:
    frame = pd.DataFrame([{**POINT, **OUTPUTS, "elements": 8, "note": "x"}, {**POINT, **OUTPUTS, "mass": np.nan}])
    checked = check_rows(beam, frame, None, ())
    assert checked.rows == ((POINT, {**OUTPUTS, "elements": 8.0}),)
    assert checked.problems == ((2, "mass must be a finite number, got nan"),)
    renamed = frame.rename(columns={"mass": 17})
    assert len(check_rows(beam, renamed, {"17": "mass"}, ()).rows) == 1
    missing = frame.astype({"ribs": "Int64"})
    missing.loc[1, "ribs"] = pd.NA
    assert check_rows(beam, missing, None, ()).problems[0][0] == 2
    empty = check_rows(beam, frame[:0], None, ())
    assert empty == CheckedRows((), (), 0)


def test_columns_may_change_places(beam: Problem, tmp_path: Path) -> None:
    text = "ribs,width,mass,stress,frequency,cost\n1.5,1,2,3,4,5\n"
    assert read(beam, text, tmp_path, {"ribs": "width", "width": "ribs"}).rows == ((POINT, OUTPUTS),)


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        (HEADER.replace("mass", "Mass"), None, "expected a column 'mass', found none among 'width', 'ribs', 'Mass'"),
        (HEADER.replace("width", "breadth"), None, "expected a column 'width', found none"),
        (HEADER, {"Mass": "mass"}, "there is no column 'Mass' to rename"),
        (HEADER + ",m", {"m": "mass"}, "expected one column 'mass', found 2"),
        (HEADER + ",mass", None, "expected one column 'mass', found 2"),
        (HEADER + ",extra,extra", None, "expected one column 'extra', found 2"),
        ("", None, "expected a CSV file with a header line, got an empty file"),
        (" \n\n", None, "got an empty file"),
        (b"PK\x03\x04\0\0", None, "got a file of another kind"),
        (b"\xff\xfew\0", None, "expected a CSV file in UTF-8, got other bytes"),
        ("a" * 200_000, None, "the file cannot be read as CSV (field larger than field limit (131072))"),
    ],
)
def test_a_table_that_is_refused(beam: Problem, tmp_path: Path, text: Any, columns: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        read(beam, text, tmp_path, columns)
    assert said in str(error.value)


def test_files_that_are_not_there(beam: Problem, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nosuch.csv: the file cannot be read"):
        check_rows(beam, tmp_path / "nosuch.csv", None, ())
    with pytest.raises(InputError, match="Is a directory"):
        check_rows(beam, str(tmp_path), None, ())


# --- labels


def materials() -> Problem:
    return Problem(
        "bar",
        [Real("width", 1.0, 3.0), Categorical("alloy", ("316", "304", "duplex"))],
        Objective("mass"),
        [Constraint("stress", low=1.0, high=9.0)],
    )


def test_labels_are_read_from_files_and_frames(tmp_path: Path) -> None:
    expected = ({"width": 1.5, "alloy": "316"}, {"mass": 2.0, "stress": 3.0})
    text = "width,alloy,mass,stress\n1.5, 316 ,2,3\n"
    assert read(materials(), text, tmp_path).rows == (expected,)
    assert read(materials(), text, tmp_path, known=[expected]).known == 1
    frame = pd.DataFrame({"width": [1.5], "alloy": [316], "mass": [2.0], "stress": [3.0]})
    assert check_rows(materials(), frame, None, ()).rows == (expected,)


def test_a_label_that_is_unknown_or_missing_is_listed_by_its_line(tmp_path: Path) -> None:
    text = "width,alloy,mass,stress\n1.5,duplx,2,3\n1.5,,2,3\n1.5,duplex,2,3\n"
    checked = read(materials(), text, tmp_path)
    assert len(checked.rows) == 1
    (first, wrong), (second, empty) = checked.problems
    assert (first, second) == (2, 3)
    assert wrong == "alloy must be one of ['316', '304', 'duplex'], got 'duplx'; did you mean 'duplex'?"
    assert empty == "alloy is empty; expected a label"
    frame = pd.DataFrame({"width": [1.5], "alloy": [np.nan], "mass": [2.0], "stress": [3.0]})
    assert check_rows(materials(), frame, None, ()).problems == ((1, "alloy is empty; expected a label"),)
