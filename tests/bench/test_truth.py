from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import differential_evolution
from scipy.sparse.csgraph import connected_components
from scipy.stats import qmc

from cbabo.bench import truth as module
from cbabo.bench.landscape import Landscape
from cbabo.bench.optima import Optimum
from cbabo.bench.truth import Truth, main, solve, truth, write
from cbabo.errors import InputError
from cbabo.problems import ShippedProblem, get, names
from cbabo.problems.basins import BASINS

OWN = tuple(name for name in names() if not get(name).optima_of)
ALL = pytest.mark.parametrize("name", OWN)


def rows(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds, f and x of the numbered rows and of both ends, where f is finite."""
    known, box = truth(name), get(name).problem.box
    ends = box.from_theta(np.array([[0.0], [1.0]]) * np.ones(len(box.names)))
    thresholds = np.vstack([known.thresholds, ends])
    f = np.array([*known.f, known.strictest.f, known.relaxed.f])
    x = np.vstack([known.x, known.strictest.x, known.relaxed.x])
    finite = np.isfinite(f)
    return thresholds[finite], f[finite], x[finite]


def limits_obeyed(shipped: ShippedProblem, x: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f of designs, n, and whether each obeys each row of thresholds, n x rows."""
    with np.errstate(all="ignore"):
        f, c = shipped.evaluate_many(x)
    return f, np.column_stack([(c <= row).all(axis=1) for row in output_limits(shipped, thresholds)])


def output_limits(shipped: ShippedProblem, thresholds: np.ndarray) -> np.ndarray:
    """The limit of every output but the objective at each row of thresholds."""
    return Landscape(shipped, shipped.whole).limits(thresholds)


@ALL
def test_every_problem_has_a_hundred_rows_inside_its_box(name: str) -> None:
    known, problem = truth(name), get(name).problem
    assert known.thresholds.shape == (100, len(problem.constraints))
    assert known.f.shape == (100,)
    assert known.x.shape == (100, len(problem.variables))
    theta = problem.box.to_theta(known.thresholds)
    assert ((theta >= 0.0) & (theta <= 1.0)).all()
    assert truth(name) is known


@ALL
def test_the_designs_are_legal_feasible_and_reach_the_optimum(name: str) -> None:
    shipped = get(name)
    thresholds, f, x = rows(name)
    space = shipped.problem.space
    for point in x:
        assert space.array([space.check(space.named([point])[0])])[0].tolist() == point.tolist()
    reached, c = shipped.evaluate_many(x)
    assert reached == pytest.approx(f, rel=1e-12, abs=1e-12)
    # Linear systems are solved with another rounding on other machines.
    rounding = 1e-9 * Landscape(shipped, shipped.whole).widths if shipped.suite == "rough" else 0.0
    assert (c <= output_limits(shipped, thresholds) + rounding).all()


@ALL
def test_no_other_row_knows_better(name: str) -> None:
    thresholds, f, x = rows(name)
    reached, obeyed = limits_obeyed(get(name), x, thresholds)
    best = np.where(obeyed, reached[:, None], np.inf).min(axis=0)
    assert (best >= f - 1e-8 * np.maximum(1.0, np.abs(f))).all()


@ALL
def test_relaxing_never_worsens(name: str) -> None:
    thresholds, f, _ = rows(name)
    relaxed = (thresholds[:, None] <= thresholds[None]).all(axis=2)
    assert (f[None] - f[:, None] <= 1e-8 * np.maximum(1.0, np.abs(f)))[relaxed].all()


@ALL
def test_no_design_at_random_or_near_an_optimum_is_better(name: str) -> None:
    shipped = get(name)
    space = shipped.problem.space
    thresholds, f, x = rows(name)
    generator = np.random.default_rng(1)
    cube = qmc.Sobol(space.dimension, rng=1).random_base2(13)
    near = space.unit(np.repeat(x, 40, axis=0)) + generator.normal(0, 0.01, (40 * len(x), space.dimension))
    reached, obeyed = limits_obeyed(shipped, space.natural(np.vstack([cube, np.clip(near, 0, 1)])), thresholds)
    best = np.where(obeyed, reached[:, None], np.inf).min(axis=0)
    assert (best >= f - 1e-8 * np.maximum(1.0, np.abs(f))).all()


@pytest.mark.parametrize("name", [n for n in OWN if get(n).optimum and not names("active").count(n)])
def test_the_strictest_end_is_the_best_on_record(name: str) -> None:
    optimum = get(name).optimum
    assert optimum is not None
    assert truth(name).strictest.f == pytest.approx(optimum.value, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        *[("three_truss", 7), ("g04_active", 3), ("g10_active", 12), ("g07", 23), ("gkxwc2_active", 45)],
        *[("pressure_vessel_active", 50), ("pressure_vessel_mixed", 8), ("rc_beam_mixed", 8), ("speed_reducer11", 1)],
        *[("car_active", 11), ("ackley6_active", 20)],
        *[("truss10_members", 5), ("cantilever20_members", 9), ("stop", 4), ("bridge21_members", 3)],
        *[("tower40_members", 6), ("frame21_members", 12)],
        *[("wells4", 6), ("wells8", 2), ("ripples5", 7), ("absorbers6", 8)],
    ],
)
def test_one_threshold_alone_comes_to_the_same(name: str, row: int) -> None:
    known = truth(name)
    found = solve(get(name), known.thresholds[row])
    assert found.f == pytest.approx(known.f[row], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", [n for n in names("rough") if get(n).optima_of and get(n).noise is None])
def test_the_largest_of_all_members_has_the_optima_of_the_members(name: str) -> None:
    shipped, known = get(name), truth(name)
    f, c = shipped.evaluate_many(known.x)
    assert f == pytest.approx(known.f, rel=1e-12)
    assert (c <= known.thresholds + 1e-9 * Landscape(shipped, shipped.whole).widths).all()
    assert (np.abs(c - known.thresholds) < 1e-6 * known.thresholds).any(axis=1).all()  # A limit binds in every row.


@pytest.mark.parametrize("name", [s.name for s in BASINS])
def test_evolution_finds_nothing_better(name: str) -> None:
    shipped, known = get(name), truth(name)
    land = Landscape(shipped, shipped.whole)

    def penalised(u: np.ndarray) -> np.ndarray:
        f, c = shipped.function(land.low + u.T * (land.high - land.low))
        excess = np.maximum(c - known.thresholds[17], 0.0) / land.widths
        worse = f + 10.0 * known.span * excess.sum(axis=1)
        return np.where(np.isfinite(worse), worse, 1e6)

    bounds = [(0.0, 1.0)] * len(land.low)
    found = differential_evolution(
        penalised, bounds, maxiter=150, popsize=12, rng=0, vectorized=True, polish=False, updating="deferred"
    )
    assert found.fun >= known.f[17] - 1e-6 * known.span


@pytest.mark.parametrize("name", [s.name for s in BASINS])
def test_the_best_basin_changes_with_the_limits_and_limits_bind(name: str) -> None:
    shipped, known = get(name), truth(name)
    c = shipped.evaluate_many(known.x)[1]
    assert (np.abs(c - known.thresholds) < 1e-6).any(axis=1).mean() > 0.6
    unit = shipped.problem.space.unit(known.x)
    near = np.linalg.norm(unit[:, None] - unit[None], axis=2) < 0.15
    _, labels = connected_components(near)
    assert len(np.unique(labels)) >= 2


def test_limits_may_be_given_by_name() -> None:
    found = solve(get("gkxwc1"), {"c1": 0.3})
    assert found.f == pytest.approx(-2.0)
    assert found.x == pytest.approx([1.5 * np.pi, 0.0], abs=1e-6)


def test_a_limit_too_few_is_refused() -> None:
    with pytest.raises(InputError, match="expected n rows and 2 columns"):
        solve(get("g06"), np.array([1.0]))


def test_keane_has_no_optimum_where_it_is_unbounded() -> None:
    known = truth("keane18")
    unbounded = known.thresholds[:, 0] >= 0.75
    assert np.array_equal(known.f == -np.inf, unbounded)
    assert np.isnan(known.x[unbounded]).all()
    assert known.relaxed.f == -np.inf
    assert known.span == known.strictest.f - known.f[~unbounded].min()
    assert solve(get("keane18"), [[0.75, 10.0]]).f == -np.inf


def test_nothing_feasible_is_plus_infinity() -> None:
    found = solve(get("gkxwc2"), [[-1.0]])
    assert found.f == np.inf
    assert np.isnan(found.x).all()


@ALL
def test_every_span_is_positive(name: str) -> None:
    assert np.isfinite(truth(name).span)
    assert truth(name).span > 0.0


def test_the_span_is_how_far_the_optimum_moves() -> None:
    known = truth("three_truss")
    assert known.span == known.strictest.f - known.relaxed.f


def test_the_span_of_an_unmoved_optimum_reaches_to_an_ordinary_design() -> None:
    known = truth("gkxwc1")
    assert known.strictest.f == pytest.approx(known.relaxed.f)
    x = np.random.default_rng(0).uniform(0.0, 6.0, (100_000, 2))
    ordinary = np.median(get("gkxwc1").evaluate_many(x)[0])
    assert known.span == pytest.approx(ordinary + 2.0, abs=0.02)


def test_arrays_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        truth("g06").f[0] = 0.0


def test_an_unknown_problem_is_named() -> None:
    with pytest.raises(InputError, match="did you mean"):
        truth("three_trus")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def solved(shipped: ShippedProblem, thresholds: np.ndarray) -> list[Optimum]:
        return [Optimum(float(limits[0]), np.array([limits[1], 0.1 + 0.2])) for limits in thresholds]

    monkeypatch.setattr(module, "solve_all", solved)
    yield
    module._read.cache_clear()


@pytest.mark.usefixtures("quick")
def test_what_is_written_is_read_to_the_last_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = truth("g06")
    path = write("g06", tmp_path)
    lines = path.read_text().splitlines()
    assert lines[0] == "row,theta1,theta2,f_star,x1,x2"
    assert [line.split(",")[0] for line in lines[1:]] == [*map(str, range(100)), "strictest", "relaxed"]
    (tmp_path / "truths").mkdir()
    path.rename(tmp_path / "truths" / path.name)
    monkeypatch.setattr(module.resources, "files", lambda package: tmp_path)
    after: Truth = truth("g06")
    assert np.array_equal(after.thresholds, before.thresholds)
    assert np.array_equal(after.f, before.thresholds[:, 0])
    assert (after.x[:, 1] == 0.1 + 0.2).all()
    assert (after.strictest.f, after.relaxed.f) == (0.0, 15.0)


@pytest.mark.usefixtures("quick")
def test_a_damaged_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "truths").mkdir()
    (tmp_path / "truths" / "g06.csv").write_text("row,theta1,f_star\n0,1,2\n")
    monkeypatch.setattr(module.resources, "files", lambda package: tmp_path)
    module._read.cache_clear()
    with pytest.raises(InputError, match=r"truth of 'g06': expected the columns row, theta1.*restore the file"):
        truth("g06")


@pytest.mark.usefixtures("quick")
def test_the_command_writes_the_files_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written: list[str] = []
    monkeypatch.setattr(module, "write", lambda name, directory: written.append(name) or directory / f"{name}.csv")
    main(["g06", "car"])
    assert written == ["g06", "car"]
    assert "g06.csv: 0 s" in capsys.readouterr().out


def test_reading_the_truth_imports_nothing_heavy() -> None:
    check = "import sys\nfrom cbabo.bench.truth import truth\ntruth('g06').span\nsys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
