from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from handmade_rows import answered, joined

from cbabo import problems
from cbabo.bench.campaign import Row
from cbabo.bench.figures import FIGURES, planes
from cbabo.bench.figures.planes import grid_optima
from cbabo.bench.truth import truth
from cbabo.errors import InputError

CHARTS = ("win_rates", "loss", "budget", "calibration")


@pytest.fixture
def rows() -> list[Row]:
    """A campaign that has hardly begun: two problems, one of them alone in its suite."""
    whole = [
        joined(
            answered(problem, "paper", "direct", [10.0, None, 30.0], direct_probability=[0.9, 0.4, 1.0]),
            answered(problem, "paper", "refined", [1.0, 5.0, 3.0]),
            answered(problem, "paper", "direct", [50.0, None, None], suffix="@60"),
        )
        for problem in ("car", "car_active")
    ]
    return [*whole, answered("car", "SCBO", "best", [2.0, 2.0], n=10), answered("car", "cEI", "best", [2.0], n=1)]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the figures that run studies run a small one."""
    monkeypatch.setattr(planes, "PROBLEMS", ("gkxwc2", "gkxwc1"))
    monkeypatch.setattr(planes, "BUDGET", 35)
    monkeypatch.setattr(planes, "DISTRIBUTION", 20)
    monkeypatch.setattr(planes, "MOVES", 2)


def check(path: Path) -> None:
    assert 5_000 < path.stat().st_size < 2_000_000


@pytest.mark.parametrize(("name", "form"), list(zip(CHARTS, ("png", "svg") * 2, strict=True)))
def test_charts_are_drawn_of_few_rows(name: str, form: str, rows: list[Row], tmp_path: Path) -> None:
    path = tmp_path / f"{name}.{form}"
    FIGURES[name](rows, path)
    check(path)


def test_an_svg_is_the_same_every_time(rows: list[Row], tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        FIGURES["loss"](rows, tmp_path / name)
    assert (tmp_path / "a.svg").read_text() == (tmp_path / "b.svg").read_text()


@pytest.mark.parametrize("name", CHARTS)
def test_nothing_to_draw_gets_one_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected .* found none"):
        FIGURES[name]([], tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_wrong_file_is_told_before_any_work(name: str, rows: list[Row], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a file name that ends in .png, .svg, .pdf, got 'x.docx'"):
        FIGURES[name](rows, tmp_path / "x.docx")
    with pytest.raises(InputError, match="does not exist; make it first"):
        FIGURES[name](rows, tmp_path / "nowhere" / "x.png")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ["distributions", "refinements"])
def test_figures_of_designs_run_their_own_studies(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.png"
    FIGURES[name]([], path)
    check(path)


@pytest.mark.parametrize("name", ["distributions", "refinements"])
def test_figures_of_designs_know_the_presets_only(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="preset must be one of"):
        FIGURES[name]([], tmp_path / "x.png", "LogcEI")


@pytest.mark.parametrize("problem", planes.PROBLEMS)
def test_the_grid_comes_close_to_the_true_optima(problem: str) -> None:
    shipped, known = problems.get(problem), truth(problem)
    found = grid_optima(shipped, known.thresholds)
    f, c = shipped.evaluate_many(found)
    assert (c <= known.thresholds).all()
    gap = (f - known.f) / known.span
    assert gap.min() > -1e-6
    assert gap.max() < 0.02


def test_the_grid_admits_that_nothing_is_feasible() -> None:
    shipped = problems.get("gkxwc2")
    assert np.isnan(grid_optima(shipped, np.array([[-9.0]]))).all()
