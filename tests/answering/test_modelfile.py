"""A model in a file: the same answers after reading, and one sentence for everything that is not a sound model."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from benchmark_scripts import script
from cbabo import Model, Settings, Study
from cbabo.answering.modelfile import write_model
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.errors import InputError, ModelError
from cbabo.methods.learner import Learner
from cbabo.methods.paper import PaperMethod
from cbabo.model import make_model
from cbabo.numerics.codec import checksum, pack, unpack
from cbabo.solver.library import FastMap, Library
from learned import QUICK, evaluated
from simulators import make_beam, simulate_beam, simulate_valley, valley

AT = {"stress": 5.0, "frequency": 3.0}
FAILED = "failed; the reason is in the study"
TABLE = np.array([[5.0, 3.0], [1.0, 6.0], [9.0, 2.0], [2.5, 4.5]])


@pytest.fixture(scope="module")
def model() -> Model:
    rows = evaluated(make_beam(), simulate_beam, 12).rows
    now = datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=UTC)
    rest = (
        Evaluation(
            90,
            "failed",
            "refine",
            rows[0].point,
            {},
            failure="mesh „schief“",
            cause="design",
            log="log\nof it",
            started=now,
            seconds=1.25,
            worker="host:12",
            thresholds=AT,
        ),
        Evaluation(91, "running", "run", rows[1].point, {}),
    )
    return make_model(Evaluations(make_beam(), (*rows, *rest)), Learner(0), QUICK, 3)


@pytest.fixture
def path(model: Model, tmp_path: Path) -> Path:
    path = tmp_path / "beam.cbabo"
    model.save(path)
    return path


def refusal(path: Path) -> str:
    with pytest.raises((ModelError, InputError)) as caught:
        Model.load(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert "; " in text  # what to do about it
    return text


def rewritten(path: Path, **changes: Any) -> Path:
    """Change the header as another version of the package might have written it, with a sound checksum."""
    header, tensors = unpack(path.read_bytes())
    header.update(changes)
    path.write_bytes(pack({k: v for k, v in header.items() if v != "missing"}, tensors))
    return path


def test_the_same_answers_exactly(model: Model, path: Path) -> None:
    again = Model.load(path)
    assert again.predict(AT) == model.predict(AT)
    before, after = model.predict_many(TABLE), again.predict_many(TABLE)
    assert np.array_equal(before.points, after.points)
    assert before.to_frame().equals(after.to_frame())
    assert again.recommend(AT, {"stress": "loosen"}) == model.recommend(AT, {"stress": "loosen"})


def test_everything_comes_back(model: Model, path: Path) -> None:
    again = Model.load(str(path))
    assert (again.problem, again.settings, again.seed) == (model.problem, model.settings, model.seed)
    assert again.problem.digest == model.problem.digest
    reduced = [replace(row, log="", worker=None, failure=row.failure and FAILED) for row in model.evaluations]
    assert list(again.evaluations) == reduced
    assert [type(v) for v in again.evaluations[0].point.values()] == [float, int]
    assert again.pcm.sizes == model.pcm.sizes
    assert again.pcm.weights.equal(model.pcm.weights)
    h, g = again.surrogates.hyperparameters, model.surrogates.hyperparameters
    assert h.lengthscales.equal(g.lengthscales)
    assert h.noise.equal(g.noise)
    assert again.surrogates.factor.equal(model.surrogates.factor)


def test_saving_again_writes_the_same_bytes(path: Path, tmp_path: Path) -> None:
    Model.load(path).save(tmp_path / "second.cbabo")
    assert (tmp_path / "second.cbabo").read_bytes() == path.read_bytes()


def test_the_file_is_tensors_and_readable_json(path: Path) -> None:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    text = json.loads(content[8 : 8 + size])["__metadata__"]["cbabo"]
    header = json.loads(text.partition(" ")[2])
    assert header["format"] == 4
    assert header["versions"]["torch"]
    assert header["problem_digest"] == make_beam().digest
    assert header["settings"] == QUICK.to_dict()
    assert len(header["evaluations"]) == 14
    assert all(tensor.dtype == torch.float64 for tensor in load(content).values())
    assert list(path.parent.iterdir()) == [path]  # nothing else is left behind


def test_a_model_in_use_does_not_need_its_file(path: Path) -> None:
    again = Model.load(path)
    expected = again.predict(AT)
    path.write_bytes(b"\0" * 100)
    assert again.predict(AT) == expected


@pytest.mark.parametrize("kept", [0, 1, 8, 50, 3000, 0.5, 0.9, -8, -1])
def test_a_truncated_file_is_refused(path: Path, kept: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))] if isinstance(kept, float) else content[:kept])
    assert "damaged" in refusal(path)


def test_a_longer_file_is_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")
    assert "damaged" in refusal(path)


def test_a_flipped_bit_is_noticed_wherever_it_is(path: Path) -> None:
    content = path.read_bytes()
    for at in np.linspace(0, len(content) - 1, 60).astype(int):
        broken = bytearray(content)
        broken[at] ^= 2
        path.write_bytes(bytes(broken))
        refusal(path)


def test_a_newer_file_is_refused_by_its_format(path: Path) -> None:
    text = refusal(rewritten(path, format=5))
    assert text.endswith("(format 5, this one knows 4); install the newer version")


def test_an_older_file_is_refused_by_its_format(path: Path) -> None:
    text = refusal(rewritten(path, format=2))
    assert text.endswith(
        "written by an older version of cbabo (format 2, this one reads 4); save it again from its study"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "4"},
        {"format": None},
        {"format": "missing"},
        {"problem": {}},
        {"problem": None},
        {"problem_digest": "0"},
        {"settings": {"batch_size": 0}},
        {"settings": {"unheard_of": 1}},
        {"settings": None},
        {"parts": {"network": {"sizes": [2, 32, 32, 3]}}},
        {"parts": {"network": {"sizes": [3, 32, 32, 2]}}},
        {"parts": {"network": {"sizes": []}}},
        {"parts": 3},
        {"parts": "missing"},
        {"parts": {"surrogates": {}}},
        {"parts": []},
        {"evaluations": [{"id": 1}]},
        {"evaluations": "missing"},
        {"seed": "missing"},
    ],
    ids=str,
)
def test_a_header_that_does_not_fit_is_refused(path: Path, changes: dict[str, Any]) -> None:
    assert "damaged" in refusal(rewritten(path, **changes))


def changed_tensor(path: Path, name: str, value: Any) -> Path:
    """Set a tensor, or one of its numbers, with a sound checksum."""
    header, tensors = unpack(path.read_bytes())
    if isinstance(value, torch.Tensor):
        tensors[name] = value
    else:
        tensors[name].view(-1)[0] = value
    path.write_bytes(pack(header, tensors))
    return path


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0, 1e300])
@pytest.mark.parametrize("name", ["noise", "lengthscales"])
def test_hyperparameters_that_no_fit_makes_are_refused(path: Path, name: str, value: float) -> None:
    said = refusal(changed_tensor(path, f"surrogates.hyperparameters.{name}", value))
    assert f"surrogates.hyperparameters.{name}: expected numbers from" in said


@pytest.mark.parametrize("name", ["surrogates.x", "surrogates.y", "surrogates.centre", "surrogates.scale"])
def test_data_that_differ_from_the_evaluations_are_refused(path: Path, name: str) -> None:
    assert f"{name}: expected what the evaluations of the file say" in refusal(changed_tensor(path, name, 0.25))


@pytest.mark.parametrize(
    ("name", "shape"),
    [("network.weights", (3, 3)), ("surrogates.hyperparameters.noise", (3,)), ("surrogates.hyperparameters.noise", ())],
)
def test_shapes_that_do_not_fit_are_refused(path: Path, name: str, shape: tuple[int, ...]) -> None:
    assert f"{name}: expected" in refusal(changed_tensor(path, name, torch.ones(shape, dtype=torch.float64)))


def test_a_model_that_would_fill_the_memory_is_refused_at_once(path: Path) -> None:
    header, tensors = unpack(path.read_bytes())
    tensors["surrogates.x"] = torch.rand(20_000, 2, dtype=torch.float64)
    tensors["surrogates.y"] = torch.rand(20_000, 4, dtype=torch.float64)
    path.write_bytes(pack(header, tensors))
    begun = time.process_time()
    assert "at most 2,147,483,648 bytes in memory" in refusal(path)
    assert time.process_time() - begun < 2.0


def test_a_file_that_is_too_large_is_refused_before_it_is_read(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(513 * 2**20)  # Takes no space on the disk.
    assert "at most 536,870,912 bytes" in refusal(path)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "no regular file" in refusal(tmp_path / "fifo")
    assert "no regular file" in refusal(Path("/dev/zero"))


def test_deep_nesting_is_refused(path: Path) -> None:
    header, tensors = unpack(path.read_bytes())
    text = json.dumps({**header, "versions": "deep"}).replace('"deep"', "[" * 100_000 + "]" * 100_000)
    path.write_bytes(save(tensors, metadata={"cbabo": f"{checksum(text, tensors)} {text}"}))
    assert "damaged" in refusal(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", 0),
        ("state", "done"),
        ("kind", None),
        ("point", {"width": 2.0}),
        ("point", {"width": 99.0, "ribs": 1}),
        ("outputs", {"mass": 1.0}),
        ("outputs", {"mass": "1"}),
        ("seconds", -1.0),
        ("started", 3),
        ("thresholds", {"mass": 1.0}),
        ("more", 1),
    ],
)
def test_evaluations_that_no_study_has_are_refused(path: Path, field: str, value: Any) -> None:
    header, _ = unpack(path.read_bytes())
    header["evaluations"][0][field] = value
    assert "damaged" in refusal(rewritten(path, evaluations=header["evaluations"]))


@pytest.mark.parametrize("seed", [-1, 1.5, "3", True, None])
def test_a_seed_that_is_none_is_refused(path: Path, seed: Any) -> None:
    assert "seed: expected a whole number" in refusal(rewritten(path, seed=seed))


def test_settings_that_would_take_for_ever_are_refused(path: Path) -> None:
    settings = {**QUICK.to_dict(), "recommend_candidates": 10**12}
    assert "settings.recommend_candidates: expected at most 1,000,000" in refusal(rewritten(path, settings=settings))


def test_a_file_for_others_says_nothing_of_this_machine(model: Model, path: Path) -> None:
    content = path.read_bytes()
    assert b"mesh" not in content
    assert b"log" in content
    for text in ("host:12", "of it", str(Path.home())):
        assert text.encode() not in content
    again = Model.load(path)
    assert [(row.failure, row.cause, row.log, row.worker) for row in again.evaluations.failed] == [
        (FAILED, "design", "", None)
    ]
    assert model.evaluations.failed[0].log == "log\nof it"  # The model in use still has it.


def test_damaged_and_forged_files_do_no_harm(tmp_path: Path) -> None:
    """The first hundred files of `benchmarks/fuzz.py models`."""
    happened, slowest = script("fuzz").fuzz_models(tmp_path, 100, seed=0)
    assert sum(happened.values()) == 100
    assert happened["damaged", "refused"] >= 45
    assert slowest < 2.0


def test_tensors_of_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign.safetensors"
    for metadata in (None, {"format": "pt"}):
        path.write_bytes(save({"weight": torch.zeros(3, dtype=torch.bfloat16)}, metadata=metadata))
        assert "not a model" in refusal(path)


def test_a_pickle_is_refused_and_never_run(tmp_path: Path) -> None:
    path = tmp_path / "evil.cbabo"
    trap = tmp_path / "sprung"

    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (trap,))

    path.write_bytes(pickle.dumps(Trap()))
    assert "not a model" in refusal(path)
    torch.save({"x": torch.zeros(2)}, path)
    assert "not a model" in refusal(path)
    assert not trap.exists()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 64, b"problem: 3\n", (2**62).to_bytes(8, "little") + b"{}"])
def test_any_other_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    assert "not a model" in refusal(path)


def test_a_folder_and_nothing_at_all_are_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path)
    assert "cannot be read" in refusal(tmp_path / "nothing.cbabo")


def test_a_place_that_cannot_be_written_is_refused_and_nothing_is_lost(
    model: Model, path: Path, tmp_path: Path
) -> None:
    for place in (tmp_path, tmp_path / "missing" / "beam.cbabo", path / "inside", Path("/")):
        with pytest.raises(InputError, match="the model cannot be written .*; choose another place$"):
            model.save(place)
    assert list(tmp_path.iterdir()) == [path]
    assert Model.load(path).predict(AT) == model.predict(AT)


def test_a_file_is_replaced_as_a_whole(model: Model, path: Path) -> None:
    path.write_text("an older one")
    model.save(path)
    assert Model.load(path).seed == 3
    assert (
        path.stat().st_mode & 0o044 == Path(__file__).stat().st_mode & 0o044 or os.name == "nt"
    )  # colleagues may read it


@pytest.fixture(scope="module")
def solved() -> Model:
    """Of the default settings, with a corner where the simulator fails."""
    rows = evaluated(valley(), simulate_valley, 60).rows
    told = [replace(r, state="failed", outputs={}, failure="no mesh") if r.point["a"] > 0.3 else r for r in rows]
    settings = Settings.default().replace(library=24, hidden_width=16, recommend_candidates=2000)
    return make_model(Evaluations(valley(), tuple(told)), Learner(0), settings, 3)


def test_library_network_and_failures_come_back(solved: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is read answers at once: nothing is solved beforehand or trained again."""
    assert solved.posterior.failure_model is not None
    assert solved.pcm.sizes == (2, 16, 16, 16, 2)
    solved.save(tmp_path / "m")
    again = Model.load(tmp_path / "m")
    monkeypatch.setattr("cbabo.methods.method.build_library", None)
    monkeypatch.setattr("cbabo.methods.default.distil", None)
    table = np.random.default_rng(0).uniform([0.0, -1.0], [2.0, 1.0], (50, 2))
    for how in ({}, {"fast": True}, {"method": "pcm"}):
        assert again.predict_many(table, **how).to_frame().equals(solved.predict_many(table, **how).to_frame())
    at = {"c": 1.4, "g": -0.2}
    assert again.recommend(at, {"c": "loosen"}) == solved.recommend(at, {"c": "loosen"})
    again.save(tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_network_that_was_never_asked_for_is_the_same_after_reading(solved: Model, tmp_path: Path) -> None:
    untrained = replace(solved, library=solved.fast_map.library)
    untrained.save(tmp_path / "m")
    again = Model.load(tmp_path / "m")
    assert again.network is None
    assert again.pcm.weights.equal(solved.pcm.weights)


def test_a_library_that_does_not_fit_is_refused(solved: Model, tmp_path: Path) -> None:
    library = solved.fast_map.library
    for changed in (replace(library, x=library.x[:, :1]), replace(library, theta=library.theta[1:])):
        other = replace(solved)
        vars(other)["fast_map"] = replace_library(solved.fast_map, changed)
        write_model(tmp_path / "m", other)
        assert "library." in refusal(tmp_path / "m")


def replace_library(fast_map: FastMap, library: Library) -> FastMap:
    changed = copy.copy(fast_map)
    changed.library = library
    return changed


def test_settings_of_the_paper_come_back(model: Model, tmp_path: Path) -> None:
    changed = Model(model.problem, PaperMethod(Settings.paper()), 2**80, model.evaluations, model.posterior, model.pcm)
    changed.save(tmp_path / "m")
    again = Model.load(tmp_path / "m")
    assert (again.settings, again.seed) == (Settings.paper(), 2**80)


# ---- with the default settings


@pytest.fixture(scope="module")
def solving() -> Model:
    """Outputs over decades, and a region that fails: everything that such a model consists of."""
    rows = evaluated(make_beam(), simulate_beam, 60).rows
    failing = tuple(
        Evaluation(e.id, "failed", "run", e.point, {}, "mesh")
        if e.point["width"] > 2.2
        else Evaluation(e.id, "complete", "run", e.point, {**e.outputs, "stress": math.exp(e.outputs["stress"])})
        for e in rows
    )
    model = make_model(Evaluations(make_beam(), failing), Learner(0), Settings.default().replace(library=32), 3)
    assert model.posterior.failure_model is not None
    assert model.posterior.warp is not None
    assert bool(model.posterior.warp.curved.any())
    return model


def test_a_default_model_answers_the_same_after_reading(solving: Model, tmp_path: Path) -> None:
    solving.save(tmp_path / "m")
    again = Model.load(tmp_path / "m")
    assert again.settings == solving.settings
    for fast in (False, True):
        one, two = solving.predict_many(TABLE, fast=fast), again.predict_many(TABLE, fast=fast)
        assert np.array_equal(one.points, two.points)
        for i in range(len(TABLE)):
            assert one.answer(i) == two.answer(i)


def test_failures_are_known_after_reading(solving: Model, tmp_path: Path) -> None:
    solving.save(tmp_path / "m")
    again = Model.load(tmp_path / "m")
    assert solving.posterior.failure_model is not None
    assert again.posterior.failure_model is not None
    assert again.posterior.failure_model.limit == solving.posterior.failure_model.limit
    x = torch.rand(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert again.posterior.failure_model.probability(x).equal(solving.posterior.failure_model.probability(x))


def test_a_network_that_nobody_asked_for_is_not_trained_to_be_written(
    solving: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nobody asked")

    monkeypatch.setattr("cbabo.methods.default.distil", refuse)
    solving.save(tmp_path / "m")
    again = Model.load(tmp_path / "m")
    assert again.network is None
    with pytest.raises(AssertionError, match="nobody asked"):
        again.predict(AT, method="pcm")


def test_a_network_that_was_asked_for_is_written(tmp_path: Path) -> None:
    settings = Settings.default().replace(hidden_width=16, library=24)
    model = make_model(evaluated(make_beam(), simulate_beam, 12), Learner(0), settings, 3)
    answer = model.predict(AT, method="pcm")
    model.save(tmp_path / "m")
    again = Model.load(tmp_path / "m")
    assert again.network is not None
    assert again.predict(AT, method="pcm") == answer


def test_repeated_designs_do_no_harm_in_a_file(tmp_path: Path) -> None:
    rows = evaluated(make_beam(), simulate_beam, 20).rows
    twice = Evaluations(make_beam(), (*rows, *rows))
    model = make_model(twice, Learner(0), Settings.default().replace(library=16), 3)
    model.save(tmp_path / "m")
    again = Model.load(tmp_path / "m")
    assert len(again.evaluations) == 40
    for i in range(len(TABLE)):
        assert again.predict_many(TABLE).answer(i) == model.predict_many(TABLE).answer(i)


def test_a_model_with_a_penalty_value_and_an_excluded_evaluation_comes_back(tmp_path: Path) -> None:
    study = Study.create(make_beam(), "sqlite://", seed=0, settings=Settings.default().replace(library=16))
    study.run(lambda p: {**simulate_beam(p), **({"mass": 1e308} if p["ribs"] == 3 else {})}, budget=32, in_process=True)
    study.forget([1], reason="the wrong mesh")
    model = study.model()
    model.save(tmp_path / "beam.cbabo")
    again = Model.load(tmp_path / "beam.cbabo")
    assert [row.state for row in again.evaluations] == [row.state for row in model.evaluations]
    assert again.predict({"stress": 5.0}) == model.predict({"stress": 5.0})
