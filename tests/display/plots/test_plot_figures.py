"""Figures show what the model answers, and say what is wrong with what they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cbabo import Categorical, Constraint, Integer, Model, Objective, Problem, Real, Settings
from cbabo.answering.answers import Answer, Estimate
from cbabo.errors import InputError
from learned import QUICK, model_of
from simulators import bar, make_beam, simulate_bar, simulate_beam


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(make_beam(), simulate_beam, 30, Settings.default().replace(library=32))


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.fixture
def ax() -> Axes:
    return Figure().add_subplot()


def words(ax: Axes) -> str:
    legend = ax.get_legend()
    texts = [*ax.texts, *(legend.get_texts() if legend else [])]
    return "\n".join([ax.get_title(), ax.get_title("left"), *(text.get_text() for text in texts)])


def line(ax: Axes, label: str) -> Any:
    return next(found for found in ax.lines if found.get_label() == label)


def test_a_tradeoff_is_the_fast_answers_with_their_deviations(model: Model, ax: Axes) -> None:
    assert model.plot_tradeoff("frequency", {"stress": 3.0}, count=9, ax=ax) is ax
    x, y = line(ax, "best design").get_data()
    assert x.max() < 5.5  # The curve ends where the limits that can be met end.
    asked = model.predict_many([{"stress": 3.0, "frequency": v} for v in x], fast=True)
    assert y == pytest.approx(asked.moments[0][:, 0])
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(float((asked.moments[0] + 2.0 * asked.moments[1])[:, 0].max()))
    assert ax.get_xlabel() == "limit of frequency (≥)"
    assert ax.get_ylabel() == "mass [kg]"
    assert "at stress ≤ 3" in words(ax)
    assert "cannot be met" in words(ax)


def test_the_limit_asked_for_lies_on_its_curve_with_its_price(model: Model, ax: Axes) -> None:
    at = {"stress": 3.0, "frequency": 4.13}  # between two of the curve's limits
    model.plot_tradeoff("frequency", at, count=9, ax=ax)
    mark = next(found for found in ax.lines if found.get_marker() == "D")
    x, y = line(ax, "best design").get_data()
    assert mark.get_xdata()[0] == 4.13
    assert mark.get_ydata()[0] == y[list(x).index(4.13)]
    assert np.all(np.diff(x) != 0.0)
    price = model.predict_many(at, fast=True).answer(0).prices["frequency"]
    assert f"{price.value:.4g}" in words(ax)
    assert "kg per unit" in words(ax)


def test_limits_that_cannot_be_met_are_told_so(model: Model, ax: Axes) -> None:
    model.plot_tradeoff("stress", {"stress": 1.1}, count=9, ax=ax)
    assert "asked for: cannot be met" in words(ax)
    assert all(found.get_marker() != "D" for found in ax.lines)


def test_a_curve_that_can_nowhere_be_met_is_no_curve(model: Model, ax: Axes) -> None:
    model.plot_tradeoff("frequency", {"stress": 1.05}, count=5, ax=ax)
    assert all(found.get_label() != "best design" for found in ax.lines)
    assert "cannot be met" in words(ax)


def test_a_map_tells_what_binds_where(model: Model, ax: Axes) -> None:
    assert model.plot_map("frequency", "stress", count=9, ax=ax) is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("limit of frequency (≥)", "limit of stress (≤)")
    for text in ("mass [kg]", "frequency binds", "stress binds", "cannot be met", "asked for"):
        assert text in words(ax), text
    assert (ax.get_xlim(), ax.get_ylim()) == ((2.0, 6.0), (1.0, 9.0))
    labels = [text.get_text() for text in ax.texts]
    assert labels
    assert all(float(text) > 0.0 for text in labels)  # of the contours


def test_a_map_opens_on_the_limits_that_matter_most(model: Model, ax: Axes) -> None:
    found = model.plot_map(count=5, ax=ax)
    assert (found.get_xlabel(), found.get_ylabel()) == ("limit of frequency (≥)", "limit of stress (≤)")


def test_the_networks_map_has_no_binding_limits(ax: Axes) -> None:
    model = model_of(make_beam(), simulate_beam, 20, QUICK)
    model.plot_map(count=5, ax=ax)
    assert "binds" not in words(ax)
    model.plot_tradeoff("stress", count=5)


def test_quality_has_a_panel_for_each_output_or_is_one_of_them(model: Model, ax: Axes) -> None:
    figure = model.plot_quality()
    assert isinstance(figure, Figure)
    assert [panel.get_title() for panel in figure.axes] == ["mass [kg]", "stress", "frequency", "cost"]
    assert model.plot_quality("stress", ax=ax) is ax
    measured = ax.lines[-1].get_xdata()
    assert measured == pytest.approx(model.evaluations.complete.y[:, 1])
    assert "inside 95 %" in words(ax)


def test_an_answer_shows_every_variable_and_limit(model: Model, ax: Axes) -> None:
    answer = model.predict({"stress": 5.0})
    assert answer.plot(ax) is ax
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == ["width", "ribs", "stress", "frequency", "cost"]
    assert answer.status in ax.get_title("left")
    assert "binds: " in words(ax)
    assert "≥ 4" in words(ax)
    assert "D" in [found.get_marker() for found in ax.lines]


def test_labels_fixed_limits_and_outputs_out_of_range_are_drawn(model: Model) -> None:
    found = model_of(bar(), simulate_bar, 20, Settings.default().replace(library=16)).predict()
    assert found.point["material"] in words(found.plot())
    ax = model.predict({"stress": 1.05, "frequency": 6.0}).plot()
    assert "X" in [mark.get_marker() for mark in ax.lines]


def test_names_and_units_are_shown_as_they_are(ax: Axes) -> None:
    """A dollar sign would begin mathematics, and an unknown command in it would be an error."""
    problem = Problem(
        "p", [Categorical("sort", ("a", "b")), Real("x", 0.0, 1.0)], Objective("cost", unit="$"),
        [Constraint("c", low=0.0, high=1.0, unit=r"$\frac$")],
    )  # fmt: skip
    outputs = {"cost": Estimate(1.0, 0.1), "c": Estimate(7.0, 0.1)}
    answer = Answer({"c": 0.5}, {"sort": "b", "x": 0.2}, outputs["cost"], outputs, 0.1, "unreachable", problem=problem)
    answer.plot(ax)
    ax.figure.draw_without_rendering()
    assert r"\$\frac\$" in words(ax)
    assert ">" in [mark.get_marker() for mark in ax.lines]  # The output lies beyond the range that is drawn.


def test_long_names_stay_inside_the_figure() -> None:
    def long(name: str) -> str:
        return f"{name} of the front left assembly"[:30]

    problem = Problem(
        "long",
        [Real(long("thickness"), 1.0, 3.0, unit="micrometre"), Integer(long("ribs"), 0, 4)],
        Objective(long("mass"), unit="kilogrammm"),
        [
            Constraint(long("stress"), low=1.0, high=9.0, unit="N/mm2mm2mm"),
            Constraint(long("frequency"), ">=", low=2.0, high=6.0, unit="hertzhertz"),
        ],
    )

    def simulate(point: dict[str, float]) -> dict[str, float]:
        width, ribs = point.values()
        found = simulate_beam({"width": width, "ribs": ribs})
        return {long(name): found[name] for name in ("mass", "stress", "frequency")}

    model = model_of(problem, simulate, 20, Settings.default().replace(library=16))
    axes = (model.plot_tradeoff(long("stress"), count=5), model.plot_map(count=5), model.predict().plot())
    for figure in (*(ax.figure for ax in axes), model.plot_quality()):
        figure.draw_without_rendering()
        used, size = figure.get_tightbbox(), figure.get_size_inches()
        assert used.x0 >= 0.0
        assert used.y0 >= 0.0
        assert used.x1 <= size[0]
        assert used.y1 <= size[1]


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (lambda m: m.plot_tradeoff("mass"), "unknown limit 'mass'; expected one of stress, frequency"),
        (lambda m: m.plot_tradeoff("stress", count=1), "expected a whole number of limits from 2 on"),
        (lambda m: m.plot_tradeoff("stress", ax="figure"), "expected matplotlib Axes as ax, got 'figure'"),
        (lambda m: m.plot_map("stress"), "expected two limits or none, got one"),
        (lambda m: m.plot_map("stress", "stress"), "expected two different limits"),
        (lambda m: m.plot_quality("weight"), "unknown simulated output 'weight'"),
        (lambda m: m.plot_quality(ax=Figure().add_subplot()), "state which, one of mass, stress"),
    ],
)
def test_what_cannot_be_drawn_gets_a_sentence(model: Model, draw: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        draw(model)


def test_what_needs_a_model_or_two_limits_says_so() -> None:
    model = model_of(bar(), simulate_bar, 20, Settings.default().replace(library=16))
    with pytest.raises(InputError, match="expected a problem with two movable limits, got one, stress"):
        model.plot_map()
    mass = Estimate(1.0, 0.0)
    with pytest.raises(InputError, match="made by hand"):
        Answer({}, {}, mass, {"mass": mass}, 1.0, "verified").plot()
