"""Damaged and forged model files: each must be refused in one sentence and within 2 s, or give the same answers.

python benchmarks/fuzz_models.py                 1,000 files
python benchmarks/fuzz_models.py --count 100000  more
python benchmarks/fuzz_models.py --smoke         50 files, to see that it works

Half of the files are damaged: bytes flipped, cut off, added, overwritten. The digest over the content finds every one of them
that would change an answer. The other half are forged: numbers, shapes, keys and nesting are changed, and the digest is computed
again, which no accident does. These must be refused, or answer without an error and with finite numbers. Where the new number is
a sound one too, such as another lengthscale, nothing can tell that it was changed.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from cbabo import Constraint, Integer, Model, Objective, Problem, Real, Settings
from cbabo.domain.evaluations import Evaluation, Evaluations
from cbabo.errors import ModelError
from cbabo.methods.learner import Learner
from cbabo.model import make_model
from cbabo.numerics.codec import checksum, unpack

LONGEST = 2.0
NUMBERS = (0.0, -0.0, -1.0, 0.5, 2.0, 1e-300, 1e30, 1e300, -1e300, math.nan, math.inf, -math.inf)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**63, 10**400, 0.5, -1e308, math.nan, math.inf, "", "x", "\x1b[31m", "nan", [], {}, [[]],
)  # fmt: skip
DEEP = "a value that is nested deeply"
TABLE = np.array([[5.0, 3.0], [1.0, 6.0], [9.0, 2.0], [2.5, 4.5]])


def main() -> None:
    """Make the files, read them, and say what happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="files to read")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other files")
    parser.add_argument("--smoke", action="store_true", help="few files only")
    stated = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        happened, slowest = fuzz(50 if stated.smoke else stated.count, stated.seed, Path(folder))
    for (kind, outcome), count in sorted(happened.items()):
        print(f"{kind:10} {outcome:40} {count:6}")
    print(f"slowest to be read: {slowest:.2f} s (limit {LONGEST:g} s)")


def fuzz(count: int, seed: int, folder: Path) -> tuple[Counter[tuple[str, str]], float]:
    """Read so many files; return what happened, and how long the slowest took; AssertionError where a file does harm."""
    random = np.random.default_rng(seed)
    sound = []
    for i, model in enumerate(sound_models()):
        model.save(folder / f"sound-{i}")
        sound.append(((folder / f"sound-{i}").read_bytes(), answers(Model.load(folder / f"sound-{i}"))))
    happened: Counter[tuple[str, str]] = Counter()
    slowest = 0.0
    for number in range(count):
        content, expected = sound[number % len(sound)]
        kind = ("damaged", "forged")[number // len(sound) % 2]
        what, changed = (damaged if kind == "damaged" else forged)(content, random)
        (folder / "changed").write_bytes(changed)
        begun = time.perf_counter()
        outcome = read(folder / "changed", expected, f"file {number} of seed {seed}: {what}")
        slowest = max(slowest, outcome[1])
        assert outcome[1] < LONGEST, f"file {number} of seed {seed} took {time.perf_counter() - begun:.1f} s: {what}"
        assert kind == "forged" or outcome[0] != "other answers", f"file {number} of seed {seed}: {what}"
        happened[kind, outcome[0]] += 1
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
    assert all(np.isfinite(frame.to_numpy()).all() for frame in frames)
    return [frame.to_numpy().tolist() for frame in frames]


# ---- files


def damaged(content: bytes, random: np.random.Generator) -> tuple[str, bytes]:
    """Return a file as a bad disk or a broken transfer leaves it."""
    broken = bytearray(content)
    kind = random.choice(["flip", "cut", "add", "zero", "move"])
    at = int(random.integers(len(content)))
    length = int(random.integers(1, 200))
    if kind == "flip":
        for place in random.integers(len(content), size=random.integers(1, 5)):
            broken[place] ^= 1 << int(random.integers(8))
    elif kind == "cut":
        del broken[at : at + length]
    elif kind == "add":
        broken[at:at] = random.bytes(length)
    elif kind == "zero":
        broken[at : at + length] = bytes(min(length, len(broken) - at))
    else:
        other = int(random.integers(len(content)))
        broken[at : at + length] = content[other : other + length]
    return f"{kind} at {at}", bytes(broken)


def forged(content: bytes, random: np.random.Generator) -> tuple[str, bytes]:
    """Return a file with something else in it and the right digest."""
    header, tensors = unpack(content)
    header, tensors = copy.deepcopy(header), dict(tensors)
    change: Callable[..., str] = random.choice(np.array([_number, _number, _shape, _leaf, _leaf], dtype=object))
    what = change(header, tensors, random)
    text = json.dumps(header).replace(json.dumps(DEEP), "[" * 50_000 + "]" * 50_000)
    tensors = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    return what, save(tensors, metadata={"cbabo": f"{checksum(text, tensors)} {text}"})


def _number(header: Any, tensors: dict[str, Tensor], random: np.random.Generator) -> str:
    """Change one number of a tensor, or all of them."""
    name = str(random.choice(sorted(tensors)))
    tensor = tensors[name].clone()
    value = float(random.choice(NUMBERS))
    if tensor.dtype == torch.int64:
        value = int(random.choice([-1, 0, 1, 3, 2**40]))
    if tensor.numel() and random.random() < 0.8:
        tensor.view(-1)[int(random.integers(tensor.numel()))] = value
    else:
        tensor.fill_(value)
    tensors[name] = tensor
    return f"{name} = {value}"


def _shape(header: Any, tensors: dict[str, Tensor], random: np.random.Generator) -> str:
    """Change the shape or the type of a tensor, take it away, or give it another name."""
    name = str(random.choice(sorted(tensors)))
    tensor = tensors.pop(name)
    kind = str(random.choice(["short", "long", "flat", "turned", "float32", "empty", "none", "renamed", "huge"]))
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


def _leaf(header: Any, tensors: dict[str, Tensor], random: np.random.Generator) -> str:
    """Change a value of the header, or take it away."""
    place, path = header, []
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[int(random.integers(len(keys)))]
        path.append(key)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or random.random() < 0.1:
            break
        place = inner
    kind = str(random.choice(["value", "value", "value", "gone", "deep", "twice"]))
    value = VALUES[int(random.integers(len(VALUES)))]
    if kind == "gone":
        del place[key]
    elif kind == "twice" and isinstance(place, list):
        place.append(inner)
    else:
        place[key] = DEEP if kind == "deep" else value
    return f"{'.'.join(map(str, path))} {kind} {value!r:.40}"


# ---- sound models


def sound_models() -> list[Model]:
    """Return a model of each method; that of the default method has warped outputs and knows where the simulator fails."""
    rows = [Evaluation(i + 1, "complete", "run", p, simulate(p)) for i, p in enumerate(points(40))]
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


def beam() -> Problem:
    """Return a small problem with every kind of limit."""
    return Problem(
        "beam",
        [Real("width", 1.0, 3.0), Integer("ribs", 0, 4)],
        Objective("mass", unit="kg"),
        [
            Constraint("stress", "<=", low=1.0, high=9.0, nominal=5.0),
            Constraint("frequency", ">=", low=2.0, high=6.0),
            Constraint("cost", "<=", limit=40.0),
        ],
    )


def points(count: int) -> list[dict[str, float]]:
    """Return designs of it."""
    return beam().space.points(np.random.default_rng(0).random((count, 2)))


def simulate(point: dict[str, float]) -> dict[str, float]:
    """Return what a design measures."""
    width, ribs = point["width"], point["ribs"]
    return {
        "mass": width**2 + 0.3 * ribs,
        "stress": 12.0 / (width**2 + 0.1 * ribs),
        "frequency": 1.5 * width + 0.2 * ribs,
        "cost": 5.0 * width + 4.0 * ribs,
    }


if __name__ == "__main__":
    main()
