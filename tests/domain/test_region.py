"""The designs that obey known relations: exact, sampled evenly, repaired by little, and refused where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbabo import Constraint, Discrete, Integer, Objective, Problem, Real
from cbabo.domain.region import Region
from cbabo.domain.relations import Relations
from cbabo.errors import InputError


def _problem(variables: list[Real | Integer | Discrete], relations: list[str], **more: object) -> Problem:
    return Problem("p", variables, Objective("f"), [Constraint("g", low=0, high=1)], relations=relations, **more)  # type: ignore[arg-type]


def _region(variables: list[Real | Integer | Discrete], relations: list[str]) -> Region:
    found = _problem(variables, relations).region
    assert found is not None
    return found


PLATE = [Real("inner", 1.0, 50.0), Real("outer", 2.0, 60.0)]
MIXED = [Real("width", 1.0, 10.0, log=True), Integer("teeth", 10, 40), Discrete("gauge", [0.2, 0.5, 1.0, 2.0])]


def _holds(point: dict[str, float], text: str) -> bool:
    return bool(eval(text, {"__builtins__": {}, "sqrt": np.sqrt, "min": min}, point))  # The texts are those below.


CASES = [
    (PLATE, ["inner <= outer - 2"]),
    (PLATE, ["outer - inner <= 3", "inner <= outer - 2"]),  # 1.7 % of the cube
    (PLATE, ["inner*outer <= 30", "inner >= sqrt(outer)"]),
    (MIXED, ["width*gauge <= 3", "teeth <= 12 + 2*gauge", "width >= gauge"]),
    (MIXED, ["teeth/10 <= min(width, 3)", "gauge >= 0.4"]),
]


@pytest.mark.parametrize(("variables", "relations"), CASES)
def test_samples_initial_designs_and_repairs_obey_exactly(
    variables: list[Real | Integer | Discrete], relations: list[str]
) -> None:
    region = _region(variables, relations)
    random = np.random.default_rng(0)
    anywhere = random.random((300, len(variables)))
    for designs in (region.sample(200, random), region.initial(15, random), region.repaired(anywhere)):
        for point in region.space.points(designs):
            assert all(_holds(point, text) for text in relations), point
    inside = anywhere[region.contains(region.legal(anywhere))]
    assert np.array_equal(region.repaired(region.legal(inside)), region.legal(inside))


@settings(max_examples=40, deadline=None)
@given(a=st.floats(-3, 3), b=st.floats(-3, 3), c=st.floats(0.1, 2.0), x=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_a_repair_obeys_any_linear_relation(a: float, b: float, c: float, x: tuple[float, float]) -> None:
    text = f"{a!r}*u + {b!r}*v <= {c!r}"  # It holds at the origin.
    region = _region([Real("u", 0, 1), Real("v", 0, 1)], [text])
    point = region.space.points(region.repaired(np.array([x])))[0]
    assert a * point["u"] + b * point["v"] <= c


def test_a_repair_moves_no_farther_than_needed() -> None:
    region = _region([Real("u", 0, 1), Real("v", 0, 1)], ["u + v <= 1"])
    found = region.repaired(np.array([[0.8, 0.6]]))[0]
    assert found == pytest.approx([0.6, 0.4], abs=1e-6)


def test_a_small_region_gets_designs_that_fill_it() -> None:
    region = _region(PLATE, ["outer - inner <= 2.5", "inner <= outer - 2"])
    designs = region.initial(20, np.random.default_rng(0))
    assert not region.wide
    assert np.ptp(designs[:, 0]) > 0.85  # The whole length of the strip,
    gaps = np.diff(np.sort(designs[:, 0]))
    assert gaps.max() < 0.15  # without holes.
    assert len(np.unique(designs, axis=0)) == 20


@pytest.mark.parametrize(
    "relations",
    [
        ["a + b + c + d + e <= 1.05"],  # 1 % of the cube, a corner
        ["abs(a - b) <= 0.1", "abs(c - d) <= 0.05", "e >= a*b + 0.3"],  # 1 %, curved, in the middle
        ["(a - 0.5)**2 + (b - 0.5)**2 + (c - 0.5)**2 <= 0.02", "d <= e"],  # 0.6 %, a ball
    ],
)
def test_a_hundredth_of_the_cube_gets_a_design_that_fills_it(relations: list[str]) -> None:
    region = _region([Real(name, 0, 1) for name in "abcde"], relations)
    designs = region.initial(20, np.random.default_rng(3))
    assert region.contains(designs).all()
    drawn = np.random.default_rng(4).random((400_000, 5))
    inside = drawn[region.contains(drawn)][:2000]
    nearest = np.sqrt(np.square(inside[:, None] - designs[None]).sum(-1).min(1))
    plain = np.sqrt(np.square(inside[:, None] - inside[None, :20]).sum(-1).min(1))
    assert nearest.max() < 1.15 * plain.max()  # At least as good as twenty designs drawn from the region itself,
    apart = np.square(designs[:, None] - designs[None]).sum(-1) + 9 * np.eye(20)
    drawn_apart = np.square(inside[:20, None] - inside[None, :20]).sum(-1) + 9 * np.eye(20)
    assert apart.min() > 2 * drawn_apart.min()  # and not as close to each other.


def test_samples_of_a_strip_are_even() -> None:
    region = _region([Real("u", 0, 1), Real("v", 0, 1)], ["u <= v <= u + 0.02"])
    found = region.sample(2000, np.random.default_rng(0))
    share, _ = np.histogram(found[:, 0], bins=5, range=(0, 1))
    assert share.min() > 0.6 * 400
    assert share.max() < 1.4 * 400


def test_derivatives_are_those_of_finite_differences() -> None:
    relations = _region(MIXED, ["width**2*gauge <= 30", "teeth <= 3*width + 30"]).relations
    x = np.array([[0.3, 0.6, 0.4]])
    g, J = relations.values_and_slopes(x)
    for i in range(3):
        step = 1e-6 * np.eye(3)[i]
        slope = (relations.values(x + step) - relations.values(x - step)) / 2e-6
        assert slope[0] == pytest.approx(J[0, :, i], rel=1e-6, abs=1e-8)
    assert g.shape == (1, 2)


def test_linear_relations_are_recognised_in_the_cube() -> None:
    relations = Relations(
        _problem([Real("a", 1, 3), Real("b", 1, 3, log=True), Integer("n", 0, 4)], []).space,
        _region(
            [Real("a", 1, 3), Real("b", 1, 3, log=True), Integer("n", 0, 4)], ["a + n <= 6", "a + b <= 5"]
        ).relations.expressions,
    )
    A, c, which = relations.linear
    assert which.tolist() == [True, False]  # b has a logarithmic scale.
    x = np.array([[0.2, 0.5, 0.25], [0.9, 0.1, 1.0]])
    assert (x @ A.T + c)[:, 0] == pytest.approx(relations.values(x)[:, 0])


@pytest.mark.parametrize(
    ("variables", "relations", "message"),
    [
        (PLATE, ["inner >= outer + 60"], "no design obeys them all"),
        (PLATE, ["inner <= outer", "outer <= inner"], "state an equality by leaving out the variable"),
        ([Integer("n", 0, 5), Integer("m", 0, 5)], ["n + m <= 3", "n*m >= 7"], "no design obeys them all"),
        ([Integer("n", 0, 5000), Integer("m", 0, 900)], ["n + m <= -1"], "no design obeys them all"),
        (PLATE, ["sqrt(inner) >= 8"], "no design was found"),
        (PLATE, ["log(-inner) <= 1"], "no design was found"),
        (PLATE, ["iner <= outer"], "did you mean inner"),
        (PLATE, ["inner <= g"], "names 'g', which it cannot depend on"),
        (PLATE, "inner <= outer", "expected a list"),
        (PLATE, [3], "expected text such as"),
        (PLATE, ["inner == outer"], "only <= and >= are supported"),
    ],
)
def test_relations_that_cannot_be_kept_are_refused(variables: list[Real], relations: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _problem(variables, relations)  # type: ignore[arg-type]


def test_a_single_legal_design_is_found_among_many() -> None:
    variables = [Integer(f"n{i}", 0, 9) for i in range(6)]
    every = " + ".join(f"n{i}" for i in range(6))
    region = _region(variables, [f"{every} >= 54"])  # type: ignore[arg-type]
    assert region.space.points(region.sample(1, np.random.default_rng(0))) == [{f"n{i}": 9 for i in range(6)}]


def test_a_division_by_zero_at_a_corner_is_kept_away_from() -> None:
    region = _region([Real("u", 0, 1), Real("v", 0, 1)], ["u/v <= 2"])
    assert not region.contains(np.array([[0.0, 0.0], [0.5, 0.0]])).any()
    points = region.space.points(region.repaired(np.array([[0.0, 0.0], [0.5, 0.0], [1.0, 0.1]])))
    assert all(p["u"] / p["v"] <= 2 for p in points)


def test_combinations_that_cannot_obey_are_told() -> None:
    relations = _region(MIXED, ["teeth <= 12 + 2*gauge", "width >= 4*gauge"]).relations
    held = np.array([False, True, True])
    x = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert relations.possible(x, held).tolist() == [True, False, True]
