"""One codec for everything that is stored: frozen dataclasses as plain JSON values and named tensors, and both as checked bytes.

`encode` splits a record into a JSON value and tensors, `decode` restores it; `pack` writes both as one safetensors file with a
checksum, `unpack` reads and verifies it. Nothing is ever unpickled. A round trip preserves every bit.

The types of the fields decide what is stored where:
    int, float, str, bool                       in the JSON value
    tuple[int, ...], tuple[float, ...]          in the JSON value, as lists
    torch.Tensor                                as a tensor; float64, or the dtype of `field(metadata={"dtype": torch.int64})`
    FloatArray                                  as a tensor, float64
    another frozen dataclass                    as a JSON object; its tensors are named after the path, "hyperparameters.noise"
    X | None for all of these                   None as null in the JSON value
Every other type is refused with a TypeError, and every value that does not fit its type with a ValueError.

Floats must be finite unless a field has the metadata {"finite": False}; elements of tensors may be anything. Fields with the
metadata {"stored": False}, and fields that the constructor does not take, are derived values: they are not stored. If a class
has a classmethod `restore`, it is called with the stored fields and computes the derived ones; otherwise the constructor is
called.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch
from numpy.typing import ArrayLike
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from cbabo.errors import shown
from cbabo.numerics.arrays import FloatArray

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
"""A value that JSON can represent."""

MAX_DEPTH = 16
"""Deepest nesting of records; a file that claims more is damaged, and is refused before it exhausts the stack."""

MAX_HEADER = 64 * 2**20
"""Largest header of a file in bytes: JSON takes many times as much memory."""

# Key of the only entry of the safetensors metadata; with one entry the bytes do not depend on the order of a hash table.
_KEY = "cbabo"
_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_SCALARS = (bool, int, float, str)
_TUPLES = (tuple[int, ...], tuple[float, ...])

_Record = TypeVar("_Record")


def encode(record: object, prefix: str = "") -> tuple[dict[str, JSON], dict[str, Tensor]]:
    """Return the JSON value and the tensors of a frozen dataclass; a prefix is put before the names of the tensors.

    Examples:
        >>> @dataclass(frozen=True)
        ... class Line:
        ...     name: str
        ...     slope: Tensor
        >>> plain, tensors = encode(Line("first", torch.ones(2, dtype=torch.float64)), prefix="line")
        >>> plain, list(tensors)
        ({'name': 'first'}, ['line.slope'])
        >>> decode(Line, plain, tensors, prefix="line").slope.tolist()
        [1.0, 1.0]
    """
    tensors: dict[str, Tensor] = {}
    return _encode_record(record, prefix, tensors, 0), tensors


def decode(kind: type[_Record], plain: JSON, tensors: Mapping[str, Tensor], prefix: str = "") -> _Record:
    """Return the record of this type that `encode` split; with a prefix other tensors may be there, too.

    ValueError is raised for missing and unknown fields and for values of another type; errors of `restore` are passed on.
    """
    used: set[str] = set()
    values = _decode_fields(kind, plain, tensors, prefix, used, 0)
    start = _join(prefix, "")
    unknown = sorted(name for name in tensors if name.startswith(start) and name not in used)
    if unknown:
        raise ValueError(
            f"{prefix or kind.__name__}: expected no tensors but those of its fields, got {shown(unknown)}"
        )
    return _construct(kind, values)


def pack(plain: JSON, tensors: Mapping[str, Tensor]) -> bytes:
    """Return a JSON value and named tensors as the bytes of a safetensors file with a checksum.

    Examples:
        >>> content = pack({"format": 1}, {"x": torch.zeros(2)})
        >>> unpack(content)
        ({'format': 1}, {'x': tensor([0., 0.])})
    """
    try:
        text = json.dumps(plain, allow_nan=False)
    except RecursionError as error:
        raise ValueError("expected a JSON value, got one that is nested too deeply") from error
    copies = {name: t.detach().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}
    content: bytes = save(copies, metadata={_KEY: f"{checksum(text, copies)} {text}"})
    return content


def unpack(content: bytes) -> tuple[Any, dict[str, Tensor]]:
    """Return the JSON value and the tensors that `pack` wrote; ValueError if anything was changed since."""
    size = int.from_bytes(content[:8], "little")
    if MAX_HEADER < size < len(content):
        raise ValueError(f"expected a header of at most {MAX_HEADER:,} bytes, got {size:,}")
    try:
        tensors = load(content)
        metadata = json.loads(content[8 : 8 + size]).get("__metadata__", {})
    except (
        SafetensorError,
        AttributeError,
        LookupError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(f"expected a safetensors file, got one that is damaged or something else ({error})") from error
    if _KEY not in metadata:
        raise ValueError("expected a safetensors file of cbabo, got one of another program")
    stated, _, text = metadata[_KEY].partition(" ")
    if stated != checksum(text, tensors):
        raise ValueError("expected content with the stated checksum, got another one: the content is damaged")
    try:
        return json.loads(text), tensors
    except (RecursionError, ValueError) as error:
        raise ValueError(f"expected a JSON value, got text that is none ({error})") from error


def checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return a digest of a text and of named tensors, independent of their order; safetensors has no checksum of its own."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.numpy().data)
    return digest.hexdigest()


def base64_array(values: ArrayLike) -> dict[str, JSON]:
    """Return an array as a JSON value: its shape, and its elements as little-endian doubles in base64.

    Examples:
        >>> base64_array([[1.0, 2.0]])
        {'shape': [1, 2], 'f64': 'AAAAAAAA8D8AAAAAAAAAQA=='}
    """
    array = np.ascontiguousarray(values, dtype="<f8")
    return {"shape": list(array.shape), "f64": base64.b64encode(array.tobytes()).decode("ascii")}


@dataclass(frozen=True)
class _Slot:
    """How one field is stored."""

    name: str
    hint: Any
    """Type of the field, without None."""
    optional: bool
    dtype: torch.dtype
    finite: bool

    @property
    def is_tensor(self) -> bool:
        """Whether the field is stored as a tensor."""
        return self.hint is Tensor or self.hint == FloatArray

    @property
    def is_record(self) -> bool:
        """Whether the field is another dataclass."""
        return is_dataclass(self.hint)


@cache
def _slots(kind: type) -> tuple[_Slot, ...]:
    """Return the stored fields of a class; raise TypeError if one of them cannot be stored."""
    parameters = getattr(kind, "__dataclass_params__", None)
    if not isinstance(kind, type) or parameters is None or not parameters.frozen:
        raise TypeError(f"expected a frozen dataclass, got {shown(kind)}")
    hints = get_type_hints(kind)
    slots = []
    for field in fields(kind):
        if not field.init or not field.metadata.get("stored", True):
            continue
        hint, optional = hints[field.name], False
        if get_origin(hint) in (Union, types.UnionType):
            others = [part for part in get_args(hint) if part is not type(None)]
            if len(others) == len(get_args(hint)) or len(others) != 1:
                raise TypeError(f"{kind.__name__}.{field.name}: expected one type or None, got {hint}")
            hint, optional = others[0], True
        known = hint in _SCALARS or hint in _TUPLES or hint is Tensor or hint == FloatArray or is_dataclass(hint)
        if not known:
            raise TypeError(
                f"{kind.__name__}.{field.name}: expected a tensor, an array, a scalar, a tuple of numbers or a dataclass, got "
                f"{hint}"
            )
        dtype = field.metadata.get("dtype", torch.float64)
        slots.append(_Slot(field.name, hint, optional, dtype, field.metadata.get("finite", True)))
    return tuple(slots)


def _encode_record(record: object, path: str, tensors: dict[str, Tensor], depth: int) -> dict[str, JSON]:
    _check_depth(path, depth)
    plain: dict[str, JSON] = {}
    kind: type = type(record)
    for slot in _slots(kind):
        value, where = getattr(record, slot.name), _join(path, slot.name)
        if value is None and slot.optional:
            plain[slot.name] = None
        elif slot.is_tensor:
            tensors[where] = _encode_tensor(slot, where, value)
        elif slot.is_record:
            if type(value) is not slot.hint:
                raise ValueError(f"{where}: expected a record of type {slot.hint.__name__}, got {shown(value)}")
            plain[slot.name] = _encode_record(value, where, tensors, depth + 1)
        elif slot.hint in _TUPLES:
            if not isinstance(value, tuple):
                raise ValueError(f"{where}: expected a tuple, got {shown(value)}")
            plain[slot.name] = [_encode_scalar(slot, get_args(slot.hint)[0], where, v) for v in value]
        else:
            plain[slot.name] = _encode_scalar(slot, slot.hint, where, value)
    return plain


def _encode_tensor(slot: _Slot, where: str, value: object) -> Tensor:
    if slot.hint is not Tensor:
        if not isinstance(value, np.ndarray) or value.dtype != np.float64:
            raise ValueError(f"{where}: expected an array of float64, got {shown(value)}")
        value = torch.from_numpy(np.array(value, order="C"))  # A copy: torch cannot take an array that is not writable.
    return _checked_tensor(slot, where, value)


def _encode_scalar(slot: _Slot, hint: type, where: str, value: object) -> JSON:
    checked = _checked_scalar(slot, hint, where, value)
    if isinstance(checked, float) and not math.isfinite(checked):
        return str(checked)
    return checked


def _decode_record(
    kind: type[_Record], plain: JSON, tensors: Mapping[str, Tensor], path: str, used: set[str], depth: int
) -> _Record:
    return _construct(kind, _decode_fields(kind, plain, tensors, path, used, depth))


def _decode_fields(
    kind: type, plain: JSON, tensors: Mapping[str, Tensor], path: str, used: set[str], depth: int
) -> dict[str, object]:
    """Return the values of all stored fields; names of tensors are added to `used`."""
    _check_depth(path, depth)
    slots = _slots(kind)
    if not isinstance(plain, dict):
        raise ValueError(f"{path or kind.__name__}: expected the fields of {kind.__name__}, got {shown(plain)}")
    unknown = sorted(set(plain) - {slot.name for slot in slots})
    if unknown:
        raise ValueError(f"{path or kind.__name__}: expected the fields of {kind.__name__}, got also {shown(unknown)}")
    values: dict[str, object] = {}
    for slot in slots:
        where = _join(path, slot.name)
        if slot.name in plain and plain[slot.name] is None and slot.optional:
            values[slot.name] = None
        elif slot.is_tensor:
            if where not in tensors or slot.name in plain:
                raise ValueError(
                    f"{where}: expected a tensor, got {'none' if where not in tensors else 'a plain value'}"
                )
            used.add(where)
            tensor = _checked_tensor(slot, where, tensors[where])
            values[slot.name] = tensor if slot.hint is Tensor else tensor.numpy()
        elif slot.name not in plain:
            raise ValueError(f"{where}: expected a value, got none")
        elif slot.is_record:
            values[slot.name] = _decode_record(slot.hint, plain[slot.name], tensors, where, used, depth + 1)
        else:
            values[slot.name] = _decode_plain(slot, where, plain[slot.name])
    return values


def _decode_plain(slot: _Slot, where: str, value: JSON) -> object:
    if slot.hint in _TUPLES:
        if not isinstance(value, list):
            raise ValueError(f"{where}: expected a list, got {shown(value)}")
        return tuple(_decode_scalar(slot, get_args(slot.hint)[0], where, v) for v in value)
    return _decode_scalar(slot, slot.hint, where, value)


def _decode_scalar(slot: _Slot, hint: type, where: str, value: JSON) -> bool | int | float | str:
    if hint is float and not slot.finite and isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    return _checked_scalar(slot, hint, where, value)


def _construct(kind: type[_Record], values: dict[str, object]) -> _Record:
    """Return the record with these fields, by `restore` if the class has it."""
    restore = getattr(kind, "restore", kind)
    record: _Record = restore(**values)
    return record


def _checked_tensor(slot: _Slot, where: str, value: object) -> Tensor:
    if not isinstance(value, Tensor) or value.dtype != slot.dtype:
        found = value.dtype if isinstance(value, Tensor) else shown(value)
        raise ValueError(f"{where}: expected a tensor of {slot.dtype}, got {found}")
    return value


def _checked_scalar(slot: _Slot, hint: type, where: str, value: object) -> bool | int | float | str:
    """Return a scalar of exactly this type; an int is accepted as a float."""
    wanted = (int, float) if hint is float else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{where}: expected a value of type {hint.__name__}, got {shown(value)}")
    if hint is not float:
        return hint(value)  # type: ignore[no-any-return]
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError as error:
        raise ValueError(f"{where}: expected a number that a float can represent, got {shown(value)}") from error
    if slot.finite and not math.isfinite(number):
        raise ValueError(f"{where}: expected a finite number, got {number}")
    return number


def _check_depth(path: str, depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise ValueError(f"{path}: expected at most {MAX_DEPTH} nested records, got more")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
