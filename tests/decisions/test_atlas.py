"""Which limits bind where: against prices, and against what predict says."""

from __future__ import annotations

import numpy as np
import pytest

from cbabo import Model, Settings
from cbabo.errors import InputError
from learned import model_of
from simulators import simulate_valley, valley


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(valley(), simulate_valley, 40, Settings.default().replace(library=64))


def test_shares_add_up(model: Model) -> None:
    atlas = model.atlas()
    assert sum(atlas.shares.values()) + atlas.unreachable == pytest.approx(1.0)
    assert list(atlas.shares.values()) == sorted(atlas.shares.values(), reverse=True)
    for name, share in atlas.binds.items():
        assert share == pytest.approx(sum(v for found, v in atlas.shares.items() if name in found))
    assert 0.0 < atlas.unreachable < 0.5


def test_the_map_says_what_prices_say(model: Model) -> None:
    found = model.atlas(limits=("g", "c"), count=7).map
    assert found is not None
    assert found.names == ("g", "c")
    g, c = np.meshgrid(*found.limits, indexing="ij")
    answers = model.predict_many(np.column_stack([c.ravel(), g.ravel()]), fast=True)
    np.testing.assert_array_equal(found.binding.ravel() == -1, ~answers.reachable)
    np.testing.assert_allclose(found.mean.ravel(), answers.moments[0][:, 0])
    same = []
    for i in np.flatnonzero(answers.reachable).tolist():
        binding = {name for name, price in answers.answer(i).prices.items() if price.binds}
        same.append(set(found.sets[found.binding.ravel()[i]]) == binding)
    assert np.mean(same) >= 0.95


def test_limits_that_can_be_given_away_cost_nothing(model: Model) -> None:
    at = {"c": 1.0, "g": -1.0}
    atlas = model.atlas(at)
    assert list(atlas.free) == ["g"]
    assert atlas.free["g"] > -0.9
    before, after = model.predict(at), model.predict({**at, **atlas.free})
    assert after.status != "unreachable"
    assert after.objective.mean == pytest.approx(before.objective.mean, abs=2e-3)
    assert atlas.thresholds == at
    assert atlas.most_important == ("c", "g")


def test_where_limits_cannot_be_met_nothing_can_be_given_away(model: Model) -> None:
    atlas = model.atlas({"c": 0.0, "g": 1.0})
    assert atlas.free == {}
    assert set(atlas.most_important) == {"c", "g"}
    assert atlas.map is not None
    assert (atlas.map.binding == -1).any()


def test_the_same_atlas_twice(model: Model) -> None:
    one, two = model.atlas(), model.atlas()
    assert one.shares == two.shares
    assert one.map is not None
    assert two.map is not None
    np.testing.assert_array_equal(one.map.binding, two.map.binding)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (("c", "x"), "unknown limit 'x'; expected one of c, g"),
        (("c", "c"), "expected two different limits for the map"),
        (("c",), "expected two different limits for the map"),
        ("c", "expected two different limits for the map"),
    ],
)
def test_wrong_limits_get_one_sentence(model: Model, limits: tuple[str, ...], words: str) -> None:
    with pytest.raises(InputError, match=r"^atlas: ") as caught:
        model.atlas(limits=limits)
    assert words in str(caught.value)


def test_its_representation_leaves_out_arrays(model: Model) -> None:
    assert len(repr(model.atlas(count=15))) < 1000
