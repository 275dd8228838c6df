"""The codec: a round trip preserves every bit, and everything that does not fit is refused with a sentence."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from cbabo.methods.learner import Learner
from cbabo.methods.training import Trainee
from cbabo.network.pcm import PCM, Adam
from cbabo.numerics.arrays import FloatArray
from cbabo.numerics.codec import MAX_DEPTH, base64_array, checksum, decode, encode, pack, unpack
from cbabo.solver.library import Library
from cbabo.surrogate import Forms, Hyperparameters, Surrogates, Warp, fit
from cbabo.surrogate.posterior import FitState
from cbabo.surrogate.prequential import PrequentialErrors


@dataclass(frozen=True, eq=False)
class Inner:
    label: str
    values: Tensor
    codes: Tensor | None = field(default=None, metadata={"dtype": torch.int64})


@dataclass(frozen=True, eq=False)
class Outer:
    count: int
    share: float
    flag: bool
    sizes: tuple[int, ...]
    levels: tuple[float, ...]
    array: FloatArray
    inner: Inner
    other: Inner | None = None
    note: str | None = None
    limit: float = field(default=math.inf, metadata={"finite": False})
    derived: float = field(default=0.0, metadata={"stored": False})


@dataclass(frozen=True)
class Node:
    child: Node | None = None


@dataclass(frozen=True, eq=False)
class Doubled:
    x: Tensor
    twice: Tensor = field(metadata={"stored": False})

    @classmethod
    def restore(cls, *, x: Tensor) -> Doubled:
        return cls(x, 2.0 * x)


def outer() -> Outer:
    values = torch.tensor([0.1, math.nan, -0.0, 5e-324, math.inf], dtype=torch.float64)
    inner = Inner("ä <tag>", values, torch.tensor([2, 0, 1]))
    return Outer(3, 0.1 + 0.2, True, (1, 2), (0.5, 2.0), np.arange(6.0).reshape(2, 3).T, inner)


def through_bytes(record: Any) -> Any:
    plain, tensors = encode(record)
    return decode(type(record), *unpack(pack(plain, tensors)))


def bits(t: Tensor) -> list[int]:
    return t.contiguous().view(torch.int64).flatten().tolist()


def assert_same(a: Any, b: Any) -> None:
    """Equal to the last bit, field by field."""
    assert type(a) is type(b)
    for f in fields(a):
        left, right = getattr(a, f.name), getattr(b, f.name)
        if isinstance(left, Tensor):
            assert left.dtype == right.dtype
            assert left.shape == right.shape
            assert bits(left) == bits(right)
        elif isinstance(left, np.ndarray):
            assert left.dtype == right.dtype
            np.testing.assert_array_equal(left, right)
        elif hasattr(left, "__dataclass_fields__"):
            assert_same(left, right)
        else:
            assert (left, type(left)) == (right, type(right))


def test_a_round_trip_preserves_every_bit_and_every_type() -> None:
    record = replace(outer(), other=Inner("", torch.empty(0, 3, dtype=torch.float64)), note="why", limit=-math.inf)
    assert_same(record, through_bytes(record))
    assert through_bytes(replace(record, derived=7.0)).derived == 0.0
    assert math.isnan(through_bytes(replace(record, limit=math.nan)).limit)
    scalar = Inner("", torch.tensor(3.5, dtype=torch.float64))
    assert_same(scalar, through_bytes(scalar))


def test_the_bytes_are_reproducible() -> None:
    assert len({pack(*encode(outer())) for _ in range(5)}) == 1


def test_views_and_shared_tensors_are_stored() -> None:
    base = torch.arange(12.0, dtype=torch.float64).view(3, 4)
    plain, tensors = unpack(pack(None, {"a": base, "b": base, "c": base.mT, "d": base[:1].expand(3, 4)}))
    assert plain is None
    assert tensors["c"].equal(base.mT)
    assert tensors["d"].equal(base[:1].expand(3, 4))


def test_prefixes_separate_several_records_in_one_file() -> None:
    one, two = outer().inner, Inner("two", torch.zeros(2, dtype=torch.float64))
    (a, first), (b, second) = encode(one, "one"), encode(two, "two")
    plain, tensors = unpack(pack({"a": a, "b": b}, {**first, **second}))
    assert_same(decode(Inner, plain["a"], tensors, "one"), one)
    assert_same(decode(Inner, plain["b"], tensors, "two"), two)
    with pytest.raises(ValueError, match=r"^one: expected no tensors but those of its fields, got \['one.more'\]$"):
        decode(Inner, plain["a"], {**tensors, "one.more": one.values}, "one")


def test_derived_fields_are_restored() -> None:
    record = Doubled.restore(x=torch.tensor([1.5], dtype=torch.float64))
    plain, tensors = encode(record)
    assert (plain, list(tensors)) == ({}, ["x"])
    assert decode(Doubled, plain, tensors).twice.tolist() == [3.0]


# ---- the records of the package


def test_surrogates_are_conditioned_again_to_the_last_bit() -> None:
    x = torch.rand(12, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.cat([x.sum(1, keepdim=True), x.prod(1, keepdim=True)], dim=1)
    forms = Forms(Warp.none(torch.ones(2, dtype=torch.float64)), torch.tensor([0, 2]), torch.zeros(2, 2).double())
    for surrogates in (fit(x, y), forms.fit(x, y, None)):
        plain, tensors = encode(surrogates)
        assert not {"factor", "weights"} & (set(plain) | set(tensors))
        assert_same(surrogates, decode(Surrogates, *unpack(pack(plain, tensors))))
    assert_same(forms, through_bytes(forms))
    tensors["hyperparameters.noise"] = tensors["hyperparameters.noise"][:1]
    with pytest.raises(Exception, match="the saved data are damaged"):
        decode(Surrogates, plain, tensors)


def test_a_learner_is_one_record() -> None:
    pcm = PCM.initial((2, 4, 3), 0)
    q, d = 2, 3
    ones = torch.ones(q, dtype=torch.float64)
    hyperparameters = Hyperparameters(torch.ones(q, d).double(), ones, ones, explored=9, family=torch.tensor([1, 2]))
    prequential = PrequentialErrors.none(d, q)
    trainee = Trainee(pcm, Adam.initial(pcm.weights))
    learner = Learner(4, 128, trainee, FitState(hyperparameters, Warp.none(ones), 30, prequential))
    assert_same(learner, through_bytes(learner))
    assert_same(Learner(0), through_bytes(Learner(0)))


def test_a_library_is_one_record() -> None:
    parts = [np.random.default_rng(i).random((2, 3)) for i in range(8)]
    library = Library(*parts)
    plain, tensors = encode(library, "library")
    assert plain == {}
    assert sorted(tensors) == sorted(f"library.{f.name}" for f in fields(Library))
    assert_same(decode(Library, plain, tensors, "library"), library)


# ---- what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 1.0}, "count: expected a value of type int, got 1.0"),
        ({"count": True}, "count: expected a value of type int, got True"),
        ({"count": None}, "count: expected a value of type int, got None"),
        ({"share": math.nan}, "share: expected a finite number, got nan"),
        ({"share": "inf"}, "share: expected a value of type float, got 'inf'"),
        ({"share": 10**400}, "share: expected a number that a float can represent"),
        ({"limit": "infinity"}, "limit: expected a value of type float"),
        ({"flag": 1}, "flag: expected a value of type bool, got 1"),
        ({"sizes": 3}, "sizes: expected a list, got 3"),
        ({"sizes": [1, "2"]}, "sizes: expected a value of type int, got '2'"),
        ({"levels": [math.inf]}, "levels: expected a finite number, got inf"),
        ({"note": 3}, "note: expected a value of type str, got 3"),
        ({"inner": None}, "inner: expected the fields of Inner, got None"),
        ({"inner": {"label": "a", "codes": 4}}, "inner.codes: expected a tensor, got a plain value"),
        ({"array": [1.0]}, "array: expected a tensor, got a plain value"),
        ({"surplus": 1}, r"Outer: expected the fields of Outer, got also \['surplus'\]"),
    ],
)
def test_values_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    plain, tensors = encode(outer())
    with pytest.raises(ValueError, match=f"^{message}"):
        decode(Outer, {**plain, **change}, tensors)


@pytest.mark.parametrize("missing", ["count", "inner", "other", "limit"])
def test_a_missing_field_is_refused_even_if_it_has_a_default(missing: str) -> None:
    plain, tensors = encode(outer())
    with pytest.raises(ValueError, match=f"^{missing}: expected a value, got none$"):
        decode(Outer, {name: value for name, value in plain.items() if name != missing}, tensors)


@pytest.mark.parametrize("missing", ["array", "inner.values", "inner.codes"])
def test_a_missing_tensor_is_refused(missing: str) -> None:
    plain, tensors = encode(outer())
    with pytest.raises(ValueError, match=f"^{missing}: expected a tensor, got none$"):
        decode(Outer, plain, {name: t for name, t in tensors.items() if name != missing})


def test_other_dtypes_are_refused_in_both_directions() -> None:
    plain, tensors = encode(outer())
    for name, wrong in (("array", tensors["array"].float()), ("inner.codes", tensors["inner.codes"].double())):
        with pytest.raises(ValueError, match=f"^{name}: expected a tensor of torch"):
            decode(Outer, plain, {**tensors, name: wrong})
    for record in (
        replace(outer(), array=np.arange(3)),
        replace(outer(), array=[1.0]),
        replace(outer(), inner=Inner("", torch.zeros(2))),
        replace(outer(), inner=outer()),
        replace(outer(), share=math.inf),
        replace(outer(), count="3"),
        replace(outer(), sizes=[1, 2]),
        replace(outer(), note=None, inner=None),
    ):
        with pytest.raises(ValueError, match="expected"):
            encode(record)


def test_records_may_not_be_nested_without_end() -> None:
    node, plain = Node(), {"child": None}
    for _ in range(MAX_DEPTH - 1):
        node, plain = Node(node), {"child": plain}  # type: ignore[dict-item]
    assert through_bytes(node) == node
    assert decode(Node, plain, {}) == node  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected at most 16 nested records"):
        encode(Node(node))
    with pytest.raises(ValueError, match="expected at most 16 nested records"):
        decode(Node, {"child": plain}, {})  # type: ignore[dict-item]


@dataclass(frozen=True)
class WithDict:
    values: dict[str, float]


@dataclass(frozen=True)
class WithUnion:
    value: int | str


@dataclass(frozen=True)
class WithPair:
    pair: tuple[int, int]


@dataclass
class Mutable:
    value: int


@pytest.mark.parametrize("record", [WithDict({}), WithUnion(1), WithPair((1, 2)), Mutable(1), 3, "text", None])
def test_other_types_are_refused_with_a_sentence(record: object) -> None:
    with pytest.raises(TypeError, match="expected "):
        encode(record)
    with pytest.raises(TypeError, match="expected "):
        decode(type(record), {}, {})


# ---- bytes


def content() -> bytes:
    return pack(*encode(outer()))


@pytest.mark.parametrize("mask", [0x01, 0x80])
def test_every_flipped_bit_is_noticed(mask: int) -> None:
    whole = content()
    for i in range(len(whole)):
        damaged = bytearray(whole)
        damaged[i] ^= mask
        with pytest.raises(ValueError, match="^expected "):
            unpack(bytes(damaged))


def test_truncated_and_longer_bytes_are_refused() -> None:
    whole = content()
    for size in [*range(0, len(whole), 7), len(whole) - 1]:
        with pytest.raises(ValueError, match="^expected a safetensors file, got one that is damaged"):
            unpack(whole[:size])
    with pytest.raises(ValueError, match="damaged"):
        unpack(whole + b"\0")


def test_files_of_other_programs_are_refused() -> None:
    for metadata in (None, {"format": "pt"}):
        with pytest.raises(ValueError, match="got one of another program"):
            unpack(save({"x": torch.zeros(2)}, metadata=metadata))
    with pytest.raises(ValueError, match="checksum"):
        unpack(save({"x": torch.zeros(2)}, metadata={"cbabo": "{}"}))
    for text in ("", "{", "[" * 100_000):
        with pytest.raises(ValueError, match="expected a JSON value"):
            unpack(save({}, metadata={"cbabo": f"{checksum(text, {})} {text}"}))


def test_values_that_json_cannot_represent_are_not_packed() -> None:
    with pytest.raises(ValueError, match="JSON"):
        pack({"a": math.nan}, {})
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        pack(deep, {})


def test_a_file_is_an_ordinary_safetensors_file() -> None:
    assert load(content())["inner.codes"].tolist() == [2, 0, 1]
    size = int.from_bytes(content()[:8], "little")
    assert list(json.loads(content()[8 : 8 + size])["__metadata__"]) == ["cbabo"]


def test_arrays_for_a_page_are_little_endian_doubles() -> None:
    record = base64_array(torch.tensor([[1, 2]]))
    assert record == base64_array(np.array([[1.0, 2.0]], dtype=">f8"))
    assert record["shape"] == [1, 2]
