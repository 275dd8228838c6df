"""Every hyperparameter of the method."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from cbabo.errors import InputError
from cbabo.methods.settings import PRESETS, Settings


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
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    assert type(settings).model_validate_json(settings.model_dump_json()) == settings


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


def test_the_papers_numbers() -> None:
    paper = Settings.paper()
    assert (paper.horizon, paper.inner_steps, paper.training_steps, paper.thresholds_per_step) == (34, 50, 1700, 64)
    assert (paper.hidden_layers, paper.hidden_width) == (3, 256)
    assert (paper.learning_rate, paper.least_learning_rate, paper.beta, paper.alpha) == (1e-3, 1e-5, 0.5, 0.1)
    assert (paper.candidates, paper.candidate_source, paper.similarity, paper.refine_radius) == (
        1000,
        "network",
        0.05,
        0.25,
    )
    assert (paper.recommend_candidates, paper.recommend_guided, paper.recommend_tolerance) == (50_000, 0.8, 1e-4)
    assert (paper.objective_weight, paper.barrier_weight, paper.reward_weight) == (100.0, 10_000.0, 50.0)


def test_every_setting_says_what_it_means() -> None:
    for kind in PRESETS.values():
        for name, field in kind.model_fields.items():
            assert field.description, name
            assert field.description.endswith("."), name


def test_a_setting_of_the_other_method_is_refused_by_name() -> None:
    """Whatever would have no effect under a method is not one of its settings."""
    both = set(Settings.model_fields) | {"initial_evaluations"}  # Both have it, with defaults of their own.
    only = {m: set(kind.model_fields) - both for m, kind in PRESETS.items()}
    assert only["default"] == {
        "probability",
        "noise",
        "feasible_as",
        "answers_per_batch",
        "batch_thresholds",
        "library",
    }
    assert len(only["paper"]) == 12
    for method, other in (("default", "paper"), ("paper", "default")):
        for name in only[other] - only[method]:
            value = getattr(PRESETS[other](), name)
            expected = rf"^settings: {name}: has no effect under the {method} method; .* \(preset: {other}\), "
            with pytest.raises(InputError, match=expected):
                Settings.from_dict({"preset": method, name: value})
            with pytest.raises(InputError, match=expected):
                PRESETS[method]().replace(**{name: value})


def test_no_flag_chooses_between_the_methods() -> None:
    for name in ("surrogates", "answer"):
        with pytest.raises(InputError, match=rf"^settings: {name}: unknown key"):
            Settings.from_dict({name: "solver"})


@pytest.mark.parametrize(
    "change",
    [
        {"thresholds_per_step": 3},
        {"learning_rate": 0},
        {"beta": -0.1},
        {"alpha": float("nan")},
        {"candidate_source": "sobol"},
        {"recommend_guided": 1.01},
        {"refine_radius": 0},
        {"hidden_layers": 0},
        {"candidates": 0},
    ],
    ids=str,
)
def test_values_outside_their_meaning_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=rf"^settings: {next(iter(change))}: .*$"):
        Settings.paper().replace(**change)
