from __future__ import annotations

import pytest

from cbabo import problems
from cbabo.bench.printed import CASE_STUDY, names, printed
from cbabo.errors import InputError

BASELINES = {"CMA-ES", "cEI", "ALBO", "SCBO", "LogcEI"}


def test_every_table_of_the_paper_is_there() -> None:
    assert set(names()) == {
        "ablation",
        "alpha",
        "beta",
        "case_study",
        "feasibility",
        "inner_steps",
        "monotonicity",
        "runtime",
        "single_threshold",
        "single_threshold_wins",
        "start",
        "win_rate_direct",
        "win_rate_refined",
    }


@pytest.mark.parametrize("name", sorted({*names()} - {"case_study", "single_threshold_wins"}))
def test_problems_go_by_our_names(name: str) -> None:
    table = printed(name)
    assert set(table["problem"]) <= set(problems.names("paper"))
    assert not table.isna().any().any()


@pytest.mark.parametrize("name", ["win_rate_direct", "win_rate_refined"])
def test_win_rates_are_a_full_grid(name: str) -> None:
    table = printed(name)
    assert not table.duplicated(["problem", "n", "baseline"]).any()
    assert len(table) == 16 * 5 * 5
    assert set(table["n"]) == {1, 5, 10, 20, 50}
    assert set(table["baseline"]) == BASELINES
    assert table["win rate"].between(0.0, 100.0).all()


def test_single_thresholds_are_a_full_grid_with_their_infeasible_ones() -> None:
    table = printed("single_threshold").set_index(["problem", "n", "method"])
    assert len(table) == 16 * 5 * 7
    assert table.index.is_unique
    assert (table["feasible"] == 0).sum() == 42
    assert table.loc[("three_truss", 1, "direct"), "objective"] == 237.0
    assert table.loc[("three_truss", 1, "direct"), "feasible"] == 0
    assert table.loc[("c13", 50, "refined")].tolist() == [-23.6, 1]


def test_first_places_at_single_thresholds_are_the_printed_ones() -> None:
    wins = printed("single_threshold_wins").set_index(["n", "method"])["wins"]
    assert wins[1].to_dict() == {"direct": 2, "refined": 5, "cEI": 0, "LogcEI": 4, "ALBO": 1, "SCBO": 4, "CMA-ES": 2}
    assert wins[50, "refined"] == 14


def test_numbers_are_the_printed_ones() -> None:
    assert printed("feasibility").set_index("problem").loc["car"].tolist() == [72.1, 0.9, 98.3, 0.3]
    refined = printed("win_rate_refined").set_index(["problem", "n", "baseline"])["win rate"]
    assert refined["g01", 50, "LogcEI"] == 46.0
    assert refined["car", 1, "ALBO"] == 80.0
    direct = printed("win_rate_direct").set_index(["problem", "n", "baseline"])["win rate"]
    assert direct["g04", 10, "CMA-ES"] == 97.0
    assert direct["three_truss", 50, "SCBO"] == 57.0
    assert printed("monotonicity").set_index("problem").loc["g07"].tolist() == [81.9, 72.5]
    assert printed("start").set_index("problem").loc["gkxwc2", "win rate"] == 45.5
    assert printed("runtime").set_index("problem").loc["g10", "ALBO"] == 47.601
    assert CASE_STUDY == (17.6, 15.7, 10.7)


@pytest.mark.parametrize(
    ("name", "variant", "problem", "value"),
    [
        ("ablation", "all random", "c13", 97.1),
        ("ablation", "no monotonic", "three_truss", 61.6),
        ("beta", "beta 0.01", "c13", 43.0),
        ("inner_steps", "inner 200", "g10", 0.2),
        ("alpha", "alpha 1.0", "pressure_vessel", 89.8),
    ],
)
def test_variants_are_the_printed_ones(name: str, variant: str, problem: str, value: float) -> None:
    assert printed(name).set_index(["variant", "problem"]).loc[(variant, problem), "win rate"] == value


def test_a_caller_may_change_its_copy() -> None:
    mine = printed("start")
    mine.loc[:, "win rate"] = 0.0
    assert printed("start")["win rate"].max() == 100.0


def test_an_unknown_table_gets_one_sentence() -> None:
    with pytest.raises(InputError, match="expected one of ablation"):
        printed("Table 1")
