from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from handmade_rows import answered, joined, unit

from cbabo import problems
from cbabo.bench.campaign import Row
from cbabo.bench.methods import METHODS
from cbabo.bench.printed import printed
from cbabo.bench.tables import TABLES
from cbabo.bench.tables.answers import STAGES, answers, pairs, samples, units, with_losses
from cbabo.bench.tables.win_rates import BASELINES
from cbabo.bench.truth import truth
from cbabo.errors import InputError

ROWLESS = {"vacuous"}
"""Tables that can be made of the truth alone."""


def line(table: pd.DataFrame, **cells: object) -> pd.Series:
    """Return the one line with these cells; underscores in names stand for spaces."""
    for name, value in cells.items():
        table = table[table[name.replace("_", " ")] == value]
    assert len(table) == 1
    return table.iloc[0]


class TestAnswers:
    def test_every_answer_is_a_line(self) -> None:
        row = answered("car", "paper", "direct", [0.0, 50.0, None], seed=2, direct_probability=[0.9, 0.8, 0.7])
        table = answers([row])
        assert table["row"].tolist() == [0, 1, 2]
        assert table["feasible"].tolist() == [1.0, 1.0, 0.0]
        assert table["probability"].tolist() == [0.9, 0.8, 0.7]
        assert set(table["seed"]) == {2}
        assert set(table["stage"]) == {"direct"}
        assert with_losses(table)["loss"].tolist() == pytest.approx([0.0, 50.0, 100.0])

    def test_stages_are_told_apart(self) -> None:
        row = joined(*(answered("car", "paper", stage, [1.0]) for stage in STAGES))
        assert answers([row])["stage"].tolist() == list(STAGES)
        assert answers([row], "refined")["stage"].tolist() == ["refined"]
        assert answers([row], "direct", after=60).empty

    def test_answers_meet_at_the_same_problem_seed_and_row(self) -> None:
        mine = answers([answered("car", "paper", "direct", [1.0] * 4, seed=seed) for seed in (0, 1)])
        theirs = answers([answered("car", "cEI", "best", [1.0] * 2, seed=1, n=2, first=2)])
        met = pairs(mine, theirs)
        assert met["row"].tolist() == [2, 3]
        assert set(met["seed"]) == {1}
        assert set(met["n_theirs"]) == {2}

    def test_unbounded_thresholds_are_left_out(self) -> None:
        bounded = np.isfinite(truth("keane18").f)
        assert 0 < bounded.sum() < 100
        objective = np.where(bounded, truth("keane18").f, -1.0).tolist()
        row = unit("keane18", "paper", row=list(range(100)), direct_objective=objective, direct_feasible=[1.0] * 100)
        found = with_losses(answers([row]))
        assert found["row"].tolist() == np.flatnonzero(bounded).tolist()
        assert found["loss"].max() == pytest.approx(0.0)

    def test_measures_of_a_unit_are_numbers_and_lists_are_averaged(self) -> None:
        table = units(
            [unit("car", "paper", direct_share=0.5, refined_feasible=[1.0, 0.0, 0.0, 0.0])], "direct share", "x"
        )
        assert table["direct share"].tolist() == [0.5]
        assert table["x"].isna().all()
        assert units([unit("car", "paper", refined_feasible=[1.0, 0.0])], "refined feasible").iloc[0, -1] == 0.5

    def test_samples_are_one_array_a_seed(self) -> None:
        rows = [answered("car", "paper", "direct", [float(seed)] * 3, seed=seed) for seed in (0, 1)]
        assert [values.tolist() for values in samples(with_losses(answers(rows)).round(9), "loss")] == [
            [0.0] * 3,
            [1.0] * 3,
        ]


def test_the_names_are_those_of_the_methods() -> None:
    others = {
        "LogcEI exact",
        "BoTorch LogcEI",
        "Optuna",
    }  # Of benchmarks/focus.py; the paper's tables do not have them.
    assert {name for name, method in METHODS.items() if method.per_threshold} == {
        *BASELINES,
        *others,
        "default focused",
    }
    for table in ("ablation", "beta", "inner_steps", "alpha"):
        assert set(printed(table)["variant"]) <= set(METHODS)


@pytest.mark.parametrize("name", sorted(set(TABLES) - ROWLESS))
def test_nothing_at_all_gets_one_sentence(name: str) -> None:
    for rows in ([], [unit("car", "some other method", something=1.0)]):
        with pytest.raises(InputError, match=f"table {name}: expected .* found none; compute them by") as caught:
            TABLES[name](rows)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(set(TABLES) - ROWLESS - {"case_study", "loss", "loss_by_problem"}))
def test_settings_without_results_get_one_sentence(name: str) -> None:
    with pytest.raises(InputError, match=f"table {name}: expected .* found none"):
        TABLES[name]([answered("car", "paper", "direct", [1.0])], "defualt")


def test_feasibility_stands_beside_the_paper() -> None:
    shares = ((0.70, [1.0, 1.0, 1.0, 0.0]), (0.74, [1.0] * 4))
    rows = [
        unit("car", "paper", seed, direct_share=direct, refined_feasible=refined)
        for seed, (direct, refined) in enumerate(shares)
    ]
    rows += [unit("car", "plain", direct_share=0.6), unit("car", "default", direct_share=0.9)]
    rows += [unit("g07", "paper", direct_share=0.58)]
    table = TABLES["feasibility"](rows)
    assert table["problem"].tolist() == [*problems.names("paper"), "mean of these 2"]
    car = line(table, problem="car")
    assert car["seeds"] == 2
    assert (car["direct %"], car["direct sd"]) == (72.0, 2.8)  # sqrt(2) x 2
    assert (car["paper direct %"], car["paper direct sd"], car["direct within"]) == (72.1, 0.9, "yes")
    assert (car["refined %"], car["refined sd"]) == (87.5, 17.7)  # sqrt(2) x 12.5
    assert (car["paper refined %"], car["refined within"]) == (98.3, "no")
    assert car["plain direct %"] == 60.0
    g07 = line(table, problem="g07")
    assert g07["direct within"] == "no"  # 11.2 from 69.2, and 5.5 + 5 are allowed
    assert pd.isna(g07["direct sd"])
    assert g07["refined within"] == ""
    g01 = line(table, problem="g01")
    assert (g01["seeds"], g01["direct within"], g01["paper direct %"]) == (0, "", 39.5)
    assert line(table, problem="mean of these 2")[["direct %", "refined %"]].tolist() == [65.0, 87.5]
    table = TABLES["feasibility"]([*rows, unit("car_active", "default", direct_share=0.7)], "default")
    assert line(table, problem="car")["direct %"] == 90.0
    assert line(table, problem="car_active")[["direct %", "direct within"]].tolist() == [70.0, ""]
    assert table.iloc[-1][["problem", "direct %"]].tolist() == ["mean of these 2", 80.0]


@pytest.fixture
def duel() -> list[Row]:
    """Ours against LogcEI on car at N = 2: seed 0 a win and a tie, seed 1 a loss by feasibility and a win by it."""
    return [
        answered("car", "paper", "direct", [1.0, 5.0, 90.0, 90.0], seed=0),
        answered("car", "paper", "direct", [9.0, 9.0, None, 80.0], seed=1),
        answered("car", "LogcEI", "best", [2.0, 5.0], seed=0, n=2, first=0),
        answered("car", "LogcEI", "best", [99.0, None], seed=1, n=2, first=2),
        answered("car_active", "paper", "direct", [None]),
        answered("car_active", "SCBO", "best", [1.0], n=1),
    ]


def test_win_rates_count_wins_ties_and_losses(duel: list[Row]) -> None:
    table = TABLES["win_rate_direct"](duel)
    found = line(table, problem="car", n=2, baseline="LogcEI")
    assert found[["seeds", "compared", "wins", "ties", "losses"]].tolist() == [2, 4, 2, 1, 1]
    assert found["win rate %"] == 62.5
    assert 0.0 <= found["low"] < 62.5 < found["high"] <= 100.0
    assert pd.isna(found["paper %"])  # it has no N = 2
    active = line(table, problem="car_active")
    assert active[["wins", "losses", "win rate %"]].tolist() == [0, 1, 0.0]
    empty = line(table, problem="car", n=10, baseline="SCBO")
    assert empty["paper %"] == 74.0
    assert empty[["compared", "win rate %", "low"]].isna().all()
    assert len(table) == 16 * 5 * 5 + 2 + 2  # the printed grid, two more lines and two averages


def test_win_rates_are_averaged_over_each_suite(duel: list[Row]) -> None:
    rows = [
        *duel,
        answered("g07", "paper", "direct", [0.0]),
        answered("g07", "LogcEI", "best", [1.0], n=10),
        answered("g01", "paper", "direct", [1.0, 1.0]),
        answered("g01", "LogcEI", "best", [2.0, 0.0], n=10),
        answered("g01", "SCBO", "best", [0.0, 0.0], n=10),
    ]
    table = TABLES["win_rate_direct"](rows)
    found = line(table, problem="paper suite, 3 of 16", n=10, baseline="LogcEI")
    assert found[["compared", "wins", "losses"]].tolist() == [3, 2, 1]
    assert found["win rate %"] == 75.0  # 100 on g07 and 50 on g01, which weigh alike
    assert found["paper %"] == 33.5  # 67 and 0
    assert line(table, problem="active suite, 1 of 10")["win rate %"] == 0.0
    assert table["baseline"].tolist()[:4] == ["LogcEI", "SCBO", "LogcEI", "mean of these"]
    mean = table.iloc[3]
    assert mean[["n", "compared", "wins", "losses", "win rate %"]].tolist() == [10, 5, 2, 3, 37.5]
    assert mean["paper %"] == round((33.5 + line(table, problem="g01", n=10, baseline="SCBO")["paper %"]) / 2, 1)
    assert pd.isna(mean["low"])


def test_win_rates_of_refined_answers_are_another_table(duel: list[Row]) -> None:
    with pytest.raises(InputError, match="refined answers of 'paper' and of a baseline"):
        TABLES["win_rate_refined"](duel)
    rows = [answered("car", "paper", "refined", [0.0]), answered("car", "cEI", "best", [None], n=1)]
    found = line(TABLES["win_rate_refined"](rows), problem="car", n=1, baseline="cEI")
    assert found[["wins", "win rate %", "low", "high", "paper %"]].tolist() == [1, 100.0, 100.0, 100.0, 100.0]


@pytest.mark.parametrize(
    ("name", "variant", "paper"),
    [
        ("ablation", "all random", 99.3),
        ("beta", "beta 2.0", 69.5),
        ("inner_steps", "inner 20", 99.1),
        ("alpha", "alpha 0.5", 100),
    ],
)
def test_variants_are_compared_by_their_predictions(name: str, variant: str, paper: float) -> None:
    rows = [answered("g10", "paper", "direct", [1.0, 2.0, 3.0]), answered("g10", variant, "direct", [2.0, 2.0, 2.0])]
    table = TABLES[name](rows)
    found = line(table, problem="g10", variant=variant)
    assert found[["wins", "ties", "losses", "win rate %", "paper %"]].tolist() == [1, 1, 1, 50.0, paper]
    assert len(table) == len(printed(name))
    other = table[(table["variant"] == variant) & (table["problem"] != "g10")]
    assert other["paper %"].notna().all()
    assert other["win rate %"].isna().all()


def test_refinement_from_the_prediction_meets_refinement_from_anywhere() -> None:
    row = joined(
        answered("gkxwc2", "paper", "refined", [1.0, 1.0, None, None]),
        answered("gkxwc2", "paper", "random start", [2.0, 3.0, 1.0, None]),
    )
    found = line(TABLES["start"]([row]), problem="gkxwc2")
    assert found[["wins", "ties", "losses", "win rate %", "paper %"]].tolist() == [2, 1, 1, 62.5, 45.5]


def test_single_thresholds_are_written_as_in_the_paper() -> None:
    rows = [
        joined(answered("g10", "paper", "direct", [None, 0.0]), answered("g10", "paper", "refined", [0.0, 0.0])),
        answered("g10", "cEI", "best", [10.0], n=1),
        answered("g10", "cEI", "best", [0.0], seed=1, n=1, first=1),
    ]
    table = TABLES["single_threshold"](rows)
    best = truth("g10").f[0]
    mine = line(table, problem="g10", n=1, values="ours")
    assert mine["direct"] == f"{best:.2e} infeasible"
    assert mine["refined"] == mine["optimum"] == f"{best:.2e}"
    assert mine["cEI"] == f"{best + 0.1 * truth('g10').span:.2e}"
    assert mine["SCBO"] == ""
    paper = line(table, problem="three_truss", n=1, values="paper")
    assert (paper["direct"], paper["LogcEI"]) == ("2.37e+02 infeasible", "2.25e+02")
    assert line(table, problem="three_truss", n=1, values="ours")["direct"] == ""
    wins = line(table, problem="first places", n=1, values="ours")
    assert (wins["refined"], wins["cEI"]) == (1, 0)
    assert line(table, problem="first places", n=50, values="paper")["refined"] == 14


def test_monotonicity_is_shown_both_ways() -> None:
    rows = [unit("g07", "paper", s, monotonic_true=v, monotonic_mean=1.0) for s, v in enumerate((0.7, 0.8))]
    rows += [unit("g07", "no monotonic", monotonic_true=0.6, monotonic_mean=0.5)]
    found = line(TABLES["monotonicity"](rows), problem="g07")
    assert found[["with, true %", "with, mean %", "with, paper %"]].tolist() == [75.0, 100.0, 72.5]
    assert found[["without, true %", "without, mean %", "without, paper %"]].tolist() == [60.0, 50.0, 81.9]
    assert line(TABLES["monotonicity"](rows), problem="ackley2")[["with, true %", "with, paper %"]].isna().all()


def test_run_times_are_seconds_of_one_iteration_or_suggestion() -> None:
    rows = [
        unit("g10", "paper", run_seconds=34.0, predict_seconds=0.002, refine_seconds=0.5),
        unit("g10", "SCBO", n=1, suggest_seconds=0.25),
        unit("g10", "SCBO", n=10, suggest_seconds=0.75),
    ]
    table = TABLES["runtime"](rows)
    mine = line(table, problem="g10", seconds="ours")
    assert mine[["training", "prediction", "refinement", "SCBO"]].tolist() == [1.0, 0.002, 0.5, 0.5]
    assert pd.isna(mine["cEI"])
    assert line(table, problem="g10", seconds="paper")[["training", "ALBO"]].tolist() == [12.885, 47.601]
    assert line(table, problem="car", seconds="paper")[["training", "ALBO"]].isna().all()


def test_the_case_study_is_listed_by_seed_beside_the_paper() -> None:
    rows = [
        unit("car", "case study", seed, improvement_percent=12.5 + seed, objective_after=15.0, limit_c1=1.0)
        for seed in (1, 0)
    ]
    table = TABLES["case_study"](rows)
    assert table["run"].tolist() == ["seed 0", "seed 1", "paper"]
    assert table["improvement percent"].tolist() == [12.5, 13.5, 10.7]
    assert table["limit c1"].tolist() == [1.0, 1.0, 0.51]
    assert pd.isna(table["limit c7"].iloc[0])


def test_losses_are_averaged_over_problems_and_sorted() -> None:
    rows = [
        answered("car", "paper", "direct", [10.0, None]),  # 55
        answered("g07", "paper", "direct", [5.0]),
        answered("car", "LogcEI", "best", [1.0], n=1),
        answered("g07", "LogcEI", "best", [3.0], n=1),
        answered("car", "LogcEI", "best", [0.0], n=10),  # one problem only
        answered("car_active", "constant strictest", "direct", [40.0]),
    ]
    table = TABLES["loss"](rows)
    assert table["suite"].tolist() == ["paper"] * 3 + ["active"]
    assert table["method"].tolist() == ["LogcEI", "paper", "LogcEI", "constant strictest"]
    assert table["problems"].tolist() == [2, 2, 1, 1]
    assert table["loss %"].tolist() == [2.0, 30.0, 0.0, 40.0]
    assert table["feasible %"].tolist() == [100.0, 75.0, 100.0, 100.0]
    mine = line(table, method="paper")
    assert mine["low"] < 30.0 < mine["high"]


def test_losses_by_problem_put_the_best_first() -> None:
    rows = [answered("g07", m, "direct", [v] * 3) for m, v in (("paper", 7.0), ("lhs strong", 2.0))]
    rows += [answered("g01", "paper", "direct", [1.0, 3.0])]
    table = TABLES["loss_by_problem"](rows)
    assert table[["problem", "method", "loss %"]].to_numpy().tolist() == [
        ["g01", "paper", 2.0],
        ["g07", "lhs strong", 2.0],
        ["g07", "paper", 7.0],
    ]
    assert (table["low"] <= table["loss %"]).all()
    assert line(table, problem="g01")[["low", "high"]].tolist() == [1.0, 3.0]


def test_losses_over_the_budget() -> None:
    row = joined(
        answered("car", "paper", "direct", [None, 10.0], suffix="@60"),
        answered("car", "paper", "direct", [20.0, 10.0], suffix="@150"),
        answered("car", "paper", "direct", [4.0, 2.0]),
    )
    table = TABLES["budget"]([row, answered("g07", "paper", "direct", [5.0])])
    car = table[table["problem"] == "car"]
    assert car["evaluations"].tolist() == [60, 150, 200]
    assert car["loss %"].tolist() == [55.0, 15.0, 3.0]
    assert car["feasible %"].tolist() == [50.0, 100.0, 100.0]
    assert line(table, problem="paper suite, 2 of 16", evaluations=200)["loss %"] == 4.0
    assert line(table, problem="paper suite, 1 of 16", evaluations=60)["loss %"] == 55.0


def test_stated_probabilities_meet_what_came_true() -> None:
    rows = [
        answered("car", "paper", "direct", [1.0] * 5 + [None] * 5, seed=seed, direct_probability=[0.9] * 10)
        for seed in range(3)
    ]
    rows += [answered("g07", "paper", "direct", [1.0, 1.0], direct_probability=[1.0, 0.8])]
    rows += [answered("car", "lhs plain", "direct", [1.0])]
    table = TABLES["calibration"](rows)
    assert set(table["method"]) == {"paper"}
    sure = line(table, problem="car")
    assert sure[["stated %", "feasible %", "too sure by", "within"]].tolist() == [90.0, 50.0, 40.0, "no"]
    assert line(table, problem="g07")["too sure by"] == -10.0
    assert line(table, problem="paper suite, 2 of 16, mean distance")["too sure by"] == 25.0
    assert not table["problem"].str.startswith("all suites").any()
    rows += [answered("car_active", "paper", "direct", [None], direct_probability=[1.0])]
    table = TABLES["calibration"](rows)
    assert line(table, problem="all suites, 3 problems, mean distance")["too sure by"] == 50.0


def test_what_aims_at_a_probability_is_compared_target_by_target() -> None:
    row = answered("car", "default", "direct", [1.0, 1.0], direct_probability=[1.0, 1.0])
    row.measures.update({"stated at 0.5": [0.5, 0.6], "true at 0.5": [1.0, 0.0]})
    row.measures.update({"stated at 0.9": [0.9, 0.9, 0.9], "true at 0.9": [1.0, 1.0, 1.0]})
    row.measures.update({"stated at 0.98": [], "true at 0.98": []})
    table = TABLES["calibration"]([row])
    assert line(table, problem="car", target=0.5)[["answers", "stated %", "feasible %"]].tolist() == [2, 55.0, 50.0]
    assert line(table, problem="car", target=0.9)[["answers", "too sure by"]].tolist() == [3, -10.0]
    assert line(table, problem="paper suite, 1 of 16, mean distance", target=0.9)["too sure by"] == 10.0
    assert len(table) == 4


def test_hypervolume_improvement_is_compared_where_it_ran() -> None:
    rows = [
        answered("gkxwc2", "qLogNEHVI", "best", [20.0]),
        answered("gkxwc2", "paper", "direct", [10.0]),
        answered("gkxwc2", "LogcEI", "best", [0.0], n=1),
        answered("car", "paper", "direct", [0.0]),
    ]
    table = TABLES["nehvi"](rows)
    assert table[["problem", "m", "method", "loss %"]].to_numpy().tolist() == [
        ["gkxwc2", 1, "paper", 10.0],
        ["gkxwc2", 1, "qLogNEHVI", 20.0],
    ]


def test_problems_that_cannot_test_a_map_are_told() -> None:
    table = TABLES["vacuous"]([answered("ackley2", "paper", "direct", [3.0, 5.0])])
    assert sorted(table["problem"]) == sorted(
        {*problems.names()} - {*problems.names("rough"), *problems.names("categorical")}
    )
    verdicts = table.set_index("problem")["tests a map"]
    assert set(verdicts[["ackley2", "ackley6", "ackley10", "gkxwc1", "g10"]]) == {"no"}
    assert set(verdicts[["g04", "speed_reducer"]]) == {"hardly"}
    assert set(verdicts[list(problems.names("active"))]) == {"yes"}
    ackley = line(table, problem="ackley2")
    assert ackley[["moved %", "strictest loss %", "relaxed loss %", "best loss %"]].tolist() == [0.0] * 4
    assert ackley["our loss %"] == 4.0
    keane = line(table, problem="keane18")
    assert 0.0 < keane["bounded %"] < 100.0
    assert pd.isna(keane["relaxed loss %"])
    assert np.isfinite(keane["best loss %"])
    assert (table["strictest feasible %"] == 100.0).all()
    ends = table[["strictest loss %", "relaxed loss %"]].min(axis=1)
    assert (table["best loss %"] <= ends).all()


def test_where_we_lose_is_listed_worst_first() -> None:
    rows = [
        answered("car", "paper", "direct", [30.0, 30.0, 32.0]),
        answered("car", "lhs strong", "direct", [10.0, 10.0, 10.0]),  # better everywhere
        answered("car", "lhs plain", "direct", [0.0, 60.0, 31.0]),  # better on average only now and then
        answered("car", "constant strictest", "direct", [90.0, 90.0, 90.0]),
        answered("g07", "paper", "direct", [8.0, 8.0]),
        answered("g07", "SCBO", "best", [3.0, 3.0], n=2),
    ]
    table = TABLES["losses_to"](rows)
    assert table[["problem", "baseline", "n"]].to_numpy().tolist() == [["car", "lhs strong", 100], ["g07", "SCBO", 2]]
    worst = table.iloc[0]
    assert worst[["ours", "compared", "our loss %", "its loss %"]].tolist() == ["direct", 3, 30.67, 10.0]
    assert worst[["difference", "low", "high"]].tolist() == [20.67, 20.0, 22.0]


def test_losing_nowhere_is_an_empty_table_with_its_columns() -> None:
    rows = [answered("car", "paper", "direct", [1.0]), answered("car", "lhs plain", "direct", [2.0])]
    table = TABLES["losses_to"](rows)
    assert table.empty
    assert "baseline" in table.columns


def test_maps_meet_their_rivals_problem_by_problem_and_on_average() -> None:
    rows = [
        answered("g07", "default", "direct", [1.0, 3.0]),
        answered("g07", "paper", "direct", [None, 20.0]),
        answered("g07", "lhs plain", "direct", [30.0, 40.0]),
        answered("c13", "default", "direct", [10.0, None]),
        answered("car", "default", "direct", [50.0]),
    ]
    table = TABLES["maps"](rows, "default")
    assert table["problem"].tolist() == ["g07", "c13", "mean of these 2", "of the 1 smooth ones"]
    smooth = line(table, problem="g07")
    assert smooth[["loss %", "paper", "lhs plain", "difference", "feasible %"]].tolist() == [
        2.0,
        60.0,
        35.0,
        -33.0,
        100.0,
    ]
    assert smooth["low"] <= -33.0 <= smooth["high"]
    assert line(table, problem="mean of these 2")["loss %"] == 28.5
    assert line(table, problem="of the 1 smooth ones")["loss %"] == 2.0


def test_the_network_alone_meets_the_papers() -> None:
    rows = [
        answered("g07", "default", "network", [1.0, 3.0]),
        answered("g07", "default", "direct", [0.0, 0.0]),
        answered("g07", "paper", "direct", [None, 20.0]),
    ]
    table = TABLES["network"](rows, "default")
    shares = line(table, problem="g07")[["feasible %", "paper's feasible %", "points", "loss %", "paper's loss %"]]
    assert shares.tolist() == [100.0, 50.0, 50.0, 2.0, 60.0]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_tables_print_in_every_format(name: str, duel: list[Row], capsys: pytest.CaptureFixture[str]) -> None:
    from cbabo.surfaces.cli.printing import print_frame

    whole = joined(
        *(answered("gkxwc2", "paper", stage, [1.0, 2.0]) for stage in STAGES[:-1]),
        unit("gkxwc2", "paper", direct_share=0.5, monotonic_true=0.5, run_seconds=1.0, direct_probability=[0.5, 0.5]),
    )
    others = [answered("gkxwc2", m, "direct", [3.0, 1.0]) for m in ("all random", "beta 1.0", "inner 20", "alpha 0.5")]
    others += [answered("gkxwc2", m, "best", [3.0, 1.0], n=2) for m in ("cEI", "qLogNEHVI")]
    others += [answered("g07", "paper", "direct", [3.0, 1.0])]
    table = TABLES[name]([whole, *others, unit("car", "case study", feasible=1.0)])
    for form in ("table", "json", "csv"):
        print_frame(table, form, name)  # type: ignore[arg-type]
        assert "NA" not in capsys.readouterr().out
