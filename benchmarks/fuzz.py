"""Damaged and forged files: whatever is changed, there is no traceback, no hang, and no value that silently differs.

python benchmarks/fuzz.py databases                  1,000 damaged databases
python benchmarks/fuzz.py models                     1,000 damaged or forged model files
python benchmarks/fuzz.py models --count 20          fewer

A database has some of its bytes changed, and is then used like any other: what is read must be what was stored, or be named as
damaged, or be refused in one sentence.

Of the model files, half are damaged: bytes flipped, cut off, added, overwritten. The digest over the content finds every one of
them that would change an answer. The other half are forged: numbers, shapes, keys and nesting are changed, and the digest is
computed again, which no accident does. These must be refused in one sentence and within 2 s, or answer without an error and with
finite numbers. Where the new number is a sound one too, such as another lengthscale, nothing can tell that it was changed.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import math
import random
import shutil
import signal
import sqlite3
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save
from torch import Tensor

from cbabo import Constraint, Integer, Model, Objective, Problem, Real, Settings, Study
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.errors import CbaboError, ModelError
from cbabo.methods.learner import Learner
from cbabo.model import make_model
from cbabo.numerics.codec import checksum, unpack
from cbabo.storage.checking import find_damage
from cbabo.storage.database import Database
from cbabo.study.modelcache import cached_model, keep_model
from cbabo.surfaces.records import status_record

HANG = 60.0
"""Seconds after which the use of a database counts as a hang."""
LONGEST = 2.0
"""Seconds within which a model file must be read."""
HARM = ("traceback", "hang", "other value")
NAMES = ("beam", "plate")
"""The studies of a database."""
LIBRARY = 16
"""Solved thresholds of a model; solving the usual 256 would take most of the time where a damaged database has lost a row."""
NUMBERS = (0.0, -0.0, -1.0, 0.5, 2.0, 1e-300, 1e30, 1e300, -1e300, math.nan, math.inf, -math.inf)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**63, 10**400, 0.5, -1e308, math.nan, math.inf, "", "x", "\x1b[31m", "nan", [], {}, [[]],
)  # fmt: skip
DEEP = "a value that is nested deeply"
TABLE = np.array([[5.0, 3.0], [1.0, 6.0], [9.0, 2.0], [2.5, 4.5]])


def main() -> None:
    """Change files and report what became of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, help in (("databases", "databases of two studies"), ("models", "model files of both methods")):
        command = commands.add_parser(name, help=help)
        command.add_argument("--count", type=int, default=1000, help="files to change")
        command.add_argument("--seed", type=int, default=0, help="another seed changes them otherwise")
    given = parser.parse_args()
    logging.getLogger("cbabo").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        (report_databases if given.command == "databases" else report_models)(Path(folder), given.count, given.seed)


# ---- the problem and its simulator


def beam() -> Problem:
    """Return a small problem with every kind of limit."""
    limits = [
        Constraint("stress", "<=", low=1.0, high=9.0, nominal=5.0),
        Constraint("frequency", ">=", low=2.0, high=6.0),
        Constraint("cost", "<=", limit=40.0),
    ]
    return Problem("beam", [Real("width", 1.0, 3.0), Integer("ribs", 0, 4)], Objective("mass", unit="kg"), limits)


def simulate(point: dict[str, float]) -> dict[str, float]:
    """Return what a design measures, and a number that nobody asked for."""
    width, ribs = point["width"], point["ribs"]
    return {
        "mass": width**2 + 0.3 * ribs,
        "stress": 12.0 / (width**2 + 0.1 * ribs),
        "frequency": 1.5 * width + 0.2 * ribs,
        "cost": 5.0 * width + 4.0 * ribs,
        "elements": 1000.0 * width,
    }


# ---- databases


def report_databases(folder: Path, count: int, seed: int) -> None:
    """Print how often each verdict was given of damaged databases."""
    began = time.perf_counter()
    verdicts = fuzz_databases(folder, count, seed)
    print(f"damaged databases                   {count}")
    for verdict in ("unchanged", "named", "refused", *HARM):
        print(f"{verdict:<36}{verdicts[verdict]}{'   (must be 0)' if verdict in HARM else ''}")
    print(f"seconds                             {time.perf_counter() - began:.0f}")


@dataclass(frozen=True)
class Truth:
    """What a study holds before anything is damaged."""

    problem: Problem
    stated: tuple[Any, ...]
    rows: dict[int, Evaluation]
    state: bytes | None

    @classmethod
    def of(cls, study: Study) -> Truth:
        """Read a study."""
        stated = (study.name, study.seed, study.settings, study.versions, study.focused)
        return cls(study.problem, stated, {row.id: row for row in study.evaluations}, study.learner_state)


class OtherValueError(Exception):
    """Something differs from what was stored, and nothing was said."""


def fuzz_databases(folder: Path, count: int, seed: int, *, models: bool = True) -> Counter[str]:
    """Damage a database `count` times in different ways; return how often each verdict was given."""
    whole = folder / "whole.db"
    truths = make_database(whole, models=models)
    chance = random.Random(seed)
    verdicts: Counter[str] = Counter()
    for number in range(count):
        damaged = folder / f"damaged-{number}.db"
        content = bytearray(whole.read_bytes())
        start = chance.randrange(len(content))
        for _ in range(chance.choice((1, 1, 1, 2, 4, 16, 64))):
            near = (start + chance.randrange(256)) % len(content)
            content[near] ^= chance.randrange(1, 256)
        damaged.write_bytes(content)
        for kept in folder.glob("whole.db.model-*"):
            shutil.copy(kept, folder / kept.name.replace("whole", damaged.stem))
        verdict = judge(damaged, truths, models=models)
        if verdict in HARM:
            print(f"number {number} of seed {seed}: {verdict}")
        verdicts[verdict] += 1
        for file in folder.glob(f"{damaged.stem}.*"):
            file.unlink()
    return verdicts


def judge(file: Path, truths: dict[str, Truth], *, models: bool) -> str:
    """Use a damaged database like a user, and say what became of it."""
    url = f"sqlite:///{file}"
    refused = named = False
    try:
        with _time_limit():
            for name, truth in truths.items():
                try:
                    named |= use(url, name, truth, models=models)
                except CbaboError as error:
                    refused = _is_one_sentence(error)
            try:
                listed = bool(find_damage(Database.open(url)))
            except CbaboError as error:
                listed = _is_one_sentence(error)
            _demand(listed or not named, "damage that the check does not list")
    except TimeoutError:
        return "hang"
    except OtherValueError:
        traceback.print_exc()
        return "other value"
    except Exception:
        traceback.print_exc()
        return "traceback"
    return "refused" if refused else "named" if listed else "unchanged"


def use(url: str, name: str, truth: Truth, *, models: bool) -> bool:
    """Read a study, its status, its model and its next design; return whether something was named as damaged."""
    study = Study.open(url, name)
    _demand(study.problem == truth.problem, "the problem")
    evaluations = study.evaluations
    damages = study.damages
    named = {damage.id for damage in damages}
    for row in evaluations:
        _demand(truth.rows.get(row.id) == row, f"evaluation {row.id}")
    present = {row.id for row in evaluations}
    _demand(set(truth.rows) - present <= named, "an evaluation that is gone")
    status_record(study, evaluations)
    evaluations.to_frame()
    now = (study.name, study.seed, study.settings, study.versions, study.focused)
    _demand(now == truth.stated, "what the study states")
    _demand(study.learner_state == truth.state, "the learner's state")
    if models:
        cached_model(study).predict({})
    (trial,) = study.ask()
    _demand(trial.id not in truth.rows, f"the id {trial.id}, given out again")
    return bool(damages)


def make_database(file: Path, *, models: bool) -> dict[str, Truth]:
    """Write a database of two studies with everything that a study may hold; return what they hold."""
    url = f"sqlite:///{file}"
    truths = {}
    for seed, name in enumerate(NAMES):
        study = Study.create(beam(), url, name, seed, Settings.default().replace(library=LIBRARY))
        study.add(pd.DataFrame([{"width": 1.5, "ribs": 2, **simulate({"width": 1.5, "ribs": 2})}]))
        study.run(_awkward, budget=38)
        study.ask_at({"width": 2.0, "ribs": 1})
        study.forget([3, 4], "the mesh was too coarse")
        study.focus([{"stress": 4.0, "frequency": 3.0}])
        if models:
            model = cached_model(study)
            model.predict({})
            keep_model(study, model)
        truths[name] = Truth.of(study)
    del study
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return truths


def _awkward(point: dict[str, float]) -> dict[str, float]:
    if point["ribs"] == 4:
        raise ValueError("the mesh did not converge")
    return simulate(point)


def _is_one_sentence(error: CbaboError) -> bool:
    _demand(bool(str(error)) and "\n" not in str(error), "a message of several lines")
    return True


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise OtherValueError(what)


@contextmanager
def _time_limit() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


# ---- model files


def report_models(folder: Path, count: int, seed: int) -> None:
    """Print what became of damaged and of forged model files."""
    happened, slowest = fuzz_models(folder, count, seed)
    for (kind, outcome), number in sorted(happened.items()):
        print(f"{kind:10} {outcome:40} {number:6}")
    print(f"slowest to be read: {slowest:.2f} s (limit {LONGEST:g} s)")


def fuzz_models(folder: Path, count: int, seed: int) -> tuple[Counter[tuple[str, str]], float]:
    """Read so many files; return what happened, and how long the slowest took; AssertionError where a file does harm."""
    generator = np.random.default_rng(seed)
    sound = []
    for i, model in enumerate(sound_models()):
        model.save(folder / f"sound-{i}")
        sound.append(((folder / f"sound-{i}").read_bytes(), answers(Model.load(folder / f"sound-{i}"))))
    happened: Counter[tuple[str, str]] = Counter()
    slowest = 0.0
    for number in range(count):
        content, expected = sound[number % len(sound)]
        kind = ("damaged", "forged")[number // len(sound) % 2]
        what, changed = (damaged if kind == "damaged" else forged)(content, generator)
        (folder / "changed").write_bytes(changed)
        outcome, took = read(folder / "changed", expected, f"file {number} of seed {seed}: {what}")
        slowest = max(slowest, took)
        assert took < LONGEST, f"file {number} of seed {seed} took {took:.1f} s: {what}"
        assert kind == "forged" or outcome != "other answers", f"file {number} of seed {seed}: {what}"
        happened[kind, outcome] += 1
    return happened, slowest


def read(path: Path, expected: list[Any], what: str) -> tuple[str, float]:
    """Return what became of a file, and how long it took to be read."""
    begun = time.perf_counter()
    try:
        model = Model.load(path)
    except ModelError as error:
        text = str(error)
        assert "\n" not in text, what
        assert len(text) < 500, what
        return "refused", time.perf_counter() - begun
    except Exception as error:
        raise AssertionError(what) from error
    took = time.perf_counter() - begun
    try:
        found = answers(model)
    except ModelError:
        return "refused when asked", took
    except Exception as error:
        raise AssertionError(what) from error
    return "the same answers" if found == expected else "other answers", took


def answers(model: Model) -> list[Any]:
    """Return what a model answers, solved and fast; all of it finite."""
    frames = [model.predict_many(TABLE).to_frame()]
    if isinstance(model.settings, type(Settings.default())):
        frames.append(model.predict_many(TABLE, fast=True).to_frame())
    assert all(np.isfinite(frame.to_numpy(dtype=float)).all() for frame in frames)
    return [frame.to_numpy().tolist() for frame in frames]


def damaged(content: bytes, generator: np.random.Generator) -> tuple[str, bytes]:
    """Return a file as a bad disk or a broken transfer leaves it."""
    broken = bytearray(content)
    kind = generator.choice(["flip", "cut", "add", "zero", "move"])
    at = int(generator.integers(len(content)))
    length = int(generator.integers(1, 200))
    if kind == "flip":
        for place in generator.integers(len(content), size=generator.integers(1, 5)):
            broken[place] ^= 1 << int(generator.integers(8))
    elif kind == "cut":
        del broken[at : at + length]
    elif kind == "add":
        broken[at:at] = generator.bytes(length)
    elif kind == "zero":
        broken[at : at + length] = bytes(min(length, len(broken) - at))
    else:
        other = int(generator.integers(len(content)))
        broken[at : at + length] = content[other : other + length]
    return f"{kind} at {at}", bytes(broken)


def forged(content: bytes, generator: np.random.Generator) -> tuple[str, bytes]:
    """Return a file with something else in it and the right digest."""
    header, tensors = unpack(content)
    header, tensors = copy.deepcopy(header), dict(tensors)
    change: Callable[..., str] = generator.choice(np.array([_number, _number, _shape, _leaf, _leaf], dtype=object))
    what = change(header, tensors, generator)
    text = json.dumps(header).replace(json.dumps(DEEP), "[" * 50_000 + "]" * 50_000)
    tensors = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    return what, save(tensors, metadata={"cbabo": f"{checksum(text, tensors)} {text}"})


def _number(header: Any, tensors: dict[str, Tensor], generator: np.random.Generator) -> str:
    """Change one number of a tensor, or all of them."""
    name = str(generator.choice(sorted(tensors)))
    tensor = tensors[name].clone()
    value = float(generator.choice(NUMBERS))
    if tensor.dtype == torch.int64:
        value = int(generator.choice([-1, 0, 1, 3, 2**40]))
    if tensor.numel() and generator.random() < 0.8:
        tensor.view(-1)[int(generator.integers(tensor.numel()))] = value
    else:
        tensor.fill_(value)
    tensors[name] = tensor
    return f"{name} = {value}"


def _shape(header: Any, tensors: dict[str, Tensor], generator: np.random.Generator) -> str:
    """Change the shape or the type of a tensor, take it away, or give it another name."""
    name = str(generator.choice(sorted(tensors)))
    tensor = tensors.pop(name)
    kind = str(generator.choice(["short", "long", "flat", "turned", "float32", "empty", "none", "renamed", "huge"]))
    made = {
        "short": lambda: tensor[:-1],
        "long": lambda: torch.cat([tensor, tensor[-1:]]),
        "flat": lambda: tensor.reshape(-1, 1),
        "turned": lambda: tensor.mT if tensor.ndim > 1 else tensor.flip(0),
        "float32": lambda: tensor.float(),
        "empty": lambda: tensor[:0],
        "huge": lambda: torch.zeros(3_000_000, dtype=torch.float64).reshape(
            -1, tensor.shape[-1] if tensor.ndim > 1 else 1
        ),
    }
    if kind in made:
        tensors[name] = made[kind]()
    elif kind == "renamed":
        tensors[f"{name}.more"] = tensor
    return f"{name} {kind}"


def _leaf(header: Any, tensors: dict[str, Tensor], generator: np.random.Generator) -> str:
    """Change a value of the header, or take it away."""
    place, path = header, []
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[int(generator.integers(len(keys)))]
        path.append(key)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or generator.random() < 0.1:
            break
        place = inner
    kind = str(generator.choice(["value", "value", "value", "gone", "deep", "twice"]))
    value = VALUES[int(generator.integers(len(VALUES)))]
    if kind == "gone":
        del place[key]
    elif kind == "twice" and isinstance(place, list):
        place.append(inner)
    else:
        place[key] = DEEP if kind == "deep" else value
    return f"{'.'.join(map(str, path))} {kind} {value!r:.40}"


def sound_models() -> list[Model]:
    """Return a model of each method; that of the default method has warped outputs and knows where the simulator fails."""
    points = beam().space.points(np.random.default_rng(0).random((40, 2)))
    rows = [Evaluation(i + 1, "complete", "run", p, simulate(p)) for i, p in enumerate(points)]
    failing = [
        replace(row, state="failed", outputs={}, failure="no mesh")
        if row.point["width"] > 2.4
        else replace(row, outputs={**row.outputs, "stress": math.exp(row.outputs["stress"])})
        for row in rows
    ]
    paper = Settings.paper().replace(inner_steps=5, hidden_layers=2, hidden_width=16, candidates=80)
    default = Settings.default().replace(library=16)
    made = (rows[:15], paper), (failing, default)
    return [make_model(Evaluations(beam(), tuple(told)), Learner(0), settings, 3) for told, settings in made]


if __name__ == "__main__":
    main()
