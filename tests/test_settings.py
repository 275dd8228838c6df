"""Every hyperparameter of the method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from cbabo.errors import InputError
from cbabo.settings import PRESETS, Settings


def test_the_presets_have_the_papers_design_and_batch() -> None:
    assert (Settings.paper().initial_evaluations, Settings.paper().batch_size) == (30, 5)
    assert Settings.default() == Settings()


@pytest.mark.parametrize("preset", PRESETS)
def test_from_dict_starts_from_the_preset(preset: str) -> None:
    base = getattr(Settings, preset)()
    assert Settings.from_dict({"preset": preset}) == base
    assert Settings.from_dict({"preset": preset, "batch_size": 7}) == base.replace(batch_size=7)


def test_from_dict_without_a_preset_is_the_default() -> None:
    assert Settings.from_dict({}) == Settings.default()


def test_from_dict_leaves_what_it_was_given_alone() -> None:
    given = {"preset": "paper", "batch_size": 2}
    Settings.from_dict(given)
    assert given == {"preset": "paper", "batch_size": 2}


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_stored_reads_back_the_same(preset: str) -> None:
    settings = getattr(Settings, preset)().replace(batch_size=3)
    assert Settings.from_dict(settings.model_dump(mode="json")) == settings
    assert Settings.model_validate_json(settings.model_dump_json()) == settings


def test_replace_returns_another_one_and_leaves_the_first() -> None:
    before = Settings()
    after = before.replace(batch_size=9)
    assert (before.batch_size, after.batch_size) == (5, 9)
    assert after.initial_evaluations == before.initial_evaluations
    assert before.replace() == before


def test_settings_are_frozen_and_hashable() -> None:
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.batch_size = 3  # type: ignore[misc]
    assert settings.batch_size == 5
    assert hash(settings) == hash(Settings())


@pytest.mark.parametrize("value", [4, 4.0, "4", "4e0", np.int64(4), np.float64(4.0)])
def test_a_whole_number_is_accepted_however_a_file_or_numpy_writes_it(value: object) -> None:
    settings = Settings.from_dict({"batch_size": value})
    assert settings.batch_size == 4
    assert type(settings.batch_size) is int


WRONG = [
    ({"batch_size": 0}, "batch_size"),
    ({"batch_size": -5}, "batch_size"),
    ({"initial_evaluations": 1}, "initial_evaluations"),
    ({"batch_size": 2.5}, "batch_size"),
    ({"batch_size": "many"}, "batch_size"),
    ({"batch_size": True}, "batch_size"),
    ({"batch_size": None}, "batch_size"),
    ({"batch_size": [5]}, "batch_size"),
    ({"batch_size": float("nan")}, "batch_size"),
    ({"batch_size": float("inf")}, "batch_size"),
    ({"batchsize": 5}, "batchsize"),
    ({"Batch_Size": 5}, "Batch_Size"),
    ({"self": 5}, "self"),
]


@pytest.mark.parametrize(("values", "field"), WRONG)
@pytest.mark.parametrize(
    "make",
    [
        Settings.from_dict,
        lambda values: Settings(**values),
        lambda values: Settings.paper().replace(**values),
    ],
    ids=["from_dict", "constructor", "replace"],
)
def test_a_wrong_value_or_name_gets_one_sentence_naming_it(
    make: Callable[[dict[str, Any]], Settings], values: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputError) as caught:
        make(values)
    assert str(caught.value).startswith(f"settings: {field}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("preset", ["papers", "", None, 3, ["paper"], "from_dict", "replace"])
def test_an_unknown_preset_gets_one_sentence_naming_the_known(preset: object) -> None:
    with pytest.raises(InputError, match=r"^settings: preset must be one of default, paper, got .*$"):
        Settings.from_dict({"preset": preset})


@pytest.mark.parametrize("given", [None, 3, "paper", [], [("batch_size", 3)], {3: 4}, {None: 1}])
def test_settings_that_are_no_mapping_of_names_get_one_sentence(given: object) -> None:
    with pytest.raises(InputError, match=r"^settings: expected a mapping of names to values, got .*$"):
        Settings.from_dict(given)  # type: ignore[arg-type]
