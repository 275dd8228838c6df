"""The shipped problems as a catalogue: suites, names, boxes, known optima."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from cbabo import problems
from cbabo.domain.categorical import Categorical
from cbabo.domain.space import Discrete, Integer, Real
from cbabo.errors import InputError

SHAPES = {
    "paper": "g01 13 9, g04 5 6, g07 10 8, g10 8 6, c13 10 3, ackley2 2 2, ackley6 6 2, ackley10 10 2, "
    "gkxwc1 2 1, gkxwc2 2 1, keane18 18 2, pressure_vessel 4 4, rc_beam 3 2, speed_reducer 7 9, "
    "three_truss 2 3, car 11 10",
    "variant": "g06 2 2, keane18_bounded 18 2, pressure_vessel_mixed 4 4, pressure_vessel_cont 4 4, "
    "rc_beam_mixed 3 2, speed_reducer11 7 11, car_mixed 11 10",
    "active": "g04_active 5 6, g10_active 8 6, ackley2_active 2 2, ackley6_active 6 2, ackley10_active 10 2, "
    "gkxwc1_active 2 1, gkxwc2_active 2 1, pressure_vessel_active 4 4, speed_reducer_active 7 9, "
    "car_active 11 10",
}
BEST = {
    "g01": -15.0,
    "g04": -30665.53867178332,
    "g06": -6961.813875580138,
    "g07": 24.30620906818,
    "g10": 7049.24802052867,
    "c13": -68.4293648,
    "ackley2": 0.0,
    "ackley6": 0.0,
    "ackley10": 0.0,
    "gkxwc1": -2.0,
    "gkxwc2": 0.25323589750337505,
    "three_truss": 263.8958433764684,
    "pressure_vessel_mixed": 6059.714335,
    "pressure_vessel_cont": 5885.3327736,
    "rc_beam_mixed": 359.208,
    "speed_reducer11": 2994.471066,
    "car_mixed": 22.84298,
    "g04_active": -30665.53867178332,
    "g10_active": 7049.24802052867,
    "gkxwc1_active": -2.0,
    "gkxwc2_active": 0.25323589750337505,
}


def _lattice(name):
    variables = problems.get(name).problem.variables
    return {v.name: v for v in variables if not isinstance(v, Real)}


OWN = tuple(name for name in problems.names() if not problems.get(name).optima_of)
"""Problems with optima of their own: noisy ones share those of others."""


def test_the_suites_hold_16_and_7_and_10_problems_and_the_rough_and_categorical_ones():
    assert [len(problems.names(s)) for s in ("paper", "variant", "active")] == [16, 7, 10]
    assert len(problems.names()) == len(set(problems.names()))
    assert problems.names() == (
        *problems.names("paper"),
        *problems.names("variant"),
        *problems.names("active"),
        *problems.names("rough"),
        *problems.names("categorical"),
    )


@pytest.mark.parametrize("suite", SHAPES)
def test_every_problem_has_its_variables_and_constraints(suite):
    expected = [line.split() for line in SHAPES[suite].split(", ")]
    assert problems.names(suite) == tuple(name for name, _, _ in expected)
    for name, d, m in expected:
        shipped = problems.get(name)
        assert (shipped.name, shipped.suite) == (name, suite)
        assert shipped.problem.space.names == tuple(f"x{i}" for i in range(1, int(d) + 1))
        assert shipped.problem.outputs == ("f", *(f"c{j}" for j in range(1, int(m) + 1)))
        assert shipped.problem.box.names == shipped.problem.outputs[1:]
        assert shipped.problem.objective.direction == "minimize"
        assert all(c.sense == "<=" for c in shipped.problem.constraints)
        assert shipped.source


def test_bounds_and_boxes_are_as_stated():
    vessel = problems.get("pressure_vessel_active").problem
    assert [(v.low, v.high) for v in vessel.variables] == [(0.0625, 6.1875)] * 2 + [
        (10.0, 200.0),
        (0.0, 190.0),
    ]
    assert [(c.low, c.high) for c in vessel.constraints] == [(0, 0.8), (0, 0.4), (0, 800000), (-120, -20)]
    g01 = problems.get("g01").problem
    assert [v.high for v in g01.variables] == [1.0] * 9 + [100.0] * 3 + [1.0]
    assert [c.high for c in g01.constraints] == [210.0] * 3 + [110.0] * 6


@pytest.mark.parametrize("name", problems.names("active"))
def test_an_active_problem_shares_everything_but_its_box_with_the_papers(name):
    active, paper = problems.get(name), problems.get(name.removesuffix("_active"))
    assert active.function is paper.function
    assert active.problem.variables == paper.problem.variables
    assert active.problem.constraints != paper.problem.constraints
    assert paper.suite == "paper"


def test_the_paper_and_active_suites_are_continuous():
    assert not any(_lattice(name) for name in (*problems.names("paper"), *problems.names("active")))


def test_discrete_variables_have_their_legal_values():
    assert {n: list(_lattice(n)) for n in problems.names("variant") if _lattice(n)} == {
        "pressure_vessel_mixed": ["x1", "x2"],
        "rc_beam_mixed": ["x1", "x2"],
        "speed_reducer11": ["x3"],
        "car_mixed": ["x8", "x9"],
    }
    thickness = _lattice("pressure_vessel_mixed")["x1"]
    assert np.array_equal(np.array(thickness.values) / 0.0625, np.arange(1, 100))
    steel, depth = _lattice("rc_beam_mixed").values()
    assert isinstance(steel, Discrete)
    assert (len(steel.values), steel.low, steel.high, sum(steel.values)) == (
        72,
        0.2,
        15.0,
        pytest.approx(326.25),
    )
    assert isinstance(depth, Integer)
    assert (depth.low, depth.high) == (28, 40)
    assert _lattice("speed_reducer11")["x3"].values == tuple(range(17, 29))
    assert _lattice("car_mixed")["x8"].values == _lattice("car_mixed")["x9"].values == (0.192, 0.345)


@pytest.mark.parametrize("name", OWN)
def test_the_known_optimum_is_a_feasible_design_that_reaches_its_value(name):
    shipped = problems.get(name)
    if name not in BEST:
        assert shipped.optimum is None
        return
    problem = shipped.problem
    assert shipped.optimum.value == BEST[name]
    point = dict(zip(problem.space.names, shipped.optimum.design, strict=True))
    assert problem.space.check(point) == point
    outputs = shipped.evaluate(point)
    assert abs(outputs["f"] - BEST[name]) <= 1e-6 * max(1.0, abs(BEST[name]))
    y = np.array([list(outputs.values())])
    assert problem.box.feasible(y, np.zeros((1, len(problem.constraints)))).all()


def test_a_problem_is_frozen_and_shared():
    shipped = problems.get("three_truss")
    assert problems.get("three_truss") is shipped
    with pytest.raises(FrozenInstanceError):
        shipped.suite = "active"
    with pytest.raises(FrozenInstanceError):
        shipped.optimum.value = 0.0


@pytest.mark.parametrize("name", problems.names())
def test_a_problem_survives_being_sent_to_another_process(name):
    shipped = problems.get(name)
    assert pickle.loads(pickle.dumps(shipped)) == shipped
    assert type(shipped.problem).from_dict(shipped.problem.to_dict()) == shipped.problem


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ("three_trus", "did you mean three_truss or"),
        ("G04", "did you mean g04"),
        ("ackley", "ackley2"),
        ("zzzz", "cbabo.problems.names() lists them"),
        ("", "cbabo.problems.names() lists them"),
        (None, "cbabo.problems.names() lists them"),
        (["g01"], "did you mean g01?"),
    ],
)
def test_an_unknown_name_gets_a_sentence_with_near_matches(given, advice):
    with pytest.raises(InputError) as caught:
        problems.get(given)
    assert str(caught.value).startswith("problem: expected the name of a shipped problem, got ")
    assert repr(given) in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize(("given", "advice"), [("papers", "did you mean paper?"), ("zzzz", "leave it out")])
def test_an_unknown_suite_gets_a_sentence(given, advice):
    with pytest.raises(InputError, match="suite: expected paper, variant, active, rough or categorical, got") as caught:
        problems.names(given)
    assert advice in str(caught.value)


def test_an_illegal_point_is_refused():
    truss = problems.get("three_truss")
    with pytest.raises(InputError, match="x1 must lie between"):
        truss.evaluate({"x1": 2.0, "x2": 0.5})
    with pytest.raises(InputError, match="'x2' is missing"):
        truss.evaluate({"x1": 0.5})
    beam = problems.get("rc_beam_mixed")
    with pytest.raises(InputError, match="x1 must be one of"):
        beam.evaluate({"x1": 0.3, "x2": 30, "x3": 6.0})
    with pytest.raises(InputError, match="x2 must be a whole number"):
        beam.evaluate({"x1": 0.2, "x2": 30.5, "x3": 6.0})


@pytest.mark.parametrize("wrong", [[0.5, 0.5], [[0.5, 0.5, 0.5]], 0.5])
def test_designs_of_another_shape_are_refused(wrong):
    with pytest.raises(InputError, match="expected designs as n rows and 2 columns, got shape"):
        problems.get("three_truss").evaluate_many(wrong)


@pytest.mark.parametrize("name", problems.names("categorical"))
def test_every_material_is_another_function(name):
    shipped = problems.get(name)
    space = shipped.problem.space
    (at,) = [i for i, v in enumerate(shipped.problem.variables) if isinstance(v, Categorical)]
    labels = shipped.problem.variables[at].values
    x = np.repeat(space.natural([[0.5] * space.dimension]), len(labels), axis=0)
    x[:, at] = np.arange(len(labels))
    f, c = shipped.evaluate_many(x)
    assert len(set(f.tolist())) == len(labels)
    for point, objective, row in zip(space.named(x), f, c, strict=True):
        assert list(shipped.evaluate(point).values()) == pytest.approx([objective, *row], rel=1e-12)
    assert [point["material"] for point in space.named(x)] == list(labels)


def test_the_car_of_mild_steel_is_the_papers():
    car, material = problems.get("car"), problems.get("car_material")
    x = np.random.default_rng(0).uniform(0.6, 1.3, (20, 7))
    barrier = np.random.default_rng(1).uniform(-20, 0, (20, 2))
    f, c = material.evaluate_many(np.column_stack([x, np.zeros(20), barrier]))
    known = car.evaluate_many(np.column_stack([x, np.full((20, 2), 0.192), barrier]))
    assert f == pytest.approx(known[0], rel=1e-12)
    assert c == pytest.approx(known[1], rel=1e-12)


def test_the_welded_beam_of_steel_is_the_literatures():
    """At the printed optimum of the classical problem the printed cost is reached, and its limits are met or nearly so."""
    h, weld, height, width = 0.205730, 3.470489, 9.036624, 0.205730
    f, c = problems.get("welded_beam_material").evaluate_many([[h / width, weld, height, width, 0.0]])
    assert c[0, 1] == pytest.approx(1.0, abs=1e-3)
    assert c[0, 3] == pytest.approx(1.0, abs=1e-2)
    assert f[0] == pytest.approx(1.7249 - 1.10471 * h**2 * weld + 1.10471 * 1.0481 * h**2 * weld, abs=2e-3)
