"""Mutations of protobuf messages by reflection: any field of any message inside, with values from anywhere."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]

from tests.fuzz.bytes_mutations import mutated, number, text

Place = tuple[Any, Any]
"""A message, and the descriptor of one of its fields."""
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e30, 3.4e38, float("nan"), float("inf"), float("-inf"))
_RANGES = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}


def mutate(message: Any, rng: np.random.Generator) -> None:
    """Changes a message in one place or some."""
    for _ in range(rng.geometric(0.6)):
        places = list(_places(message))
        owner, field = places[rng.integers(len(places))]
        if rng.random() < 0.1:
            owner.ClearField(field.name)
        elif rng.random() < 0.1:
            _add_field(owner, places, rng)
        elif _is_repeated(field):
            _mutate_list(owner, field, places, rng)
        else:
            _set(owner, field, places, rng)


def _places(message: Any) -> Iterator[Place]:
    """Yields all fields that are set, at any depth."""
    for field, value in message.ListFields():
        yield message, field
        if field.type == field.TYPE_MESSAGE:
            for part in value if _is_repeated(field) else (value,):
                yield from _places(part)


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _add_field(owner: Any, places: list[Place], rng: np.random.Generator) -> None:
    fields = owner.DESCRIPTOR.fields
    field = fields[rng.integers(len(fields))]
    if _is_repeated(field):
        _insert(owner, field, places, rng)
    else:
        _set(owner, field, places, rng)


def _mutate_list(owner: Any, field: Any, places: list[Place], rng: np.random.Generator) -> None:
    """Drops, doubles, exchanges, changes or adds an element."""
    values = getattr(owner, field.name)
    at, other = (int(rng.integers(len(values))) for _ in range(2))
    kind = rng.integers(5)
    if kind == 0:
        del values[at]
    elif kind == 1:
        values.append(values[at])
    elif kind == 2:
        kept = list(values)
        kept[at], kept[other] = kept[other], kept[at]
        owner.ClearField(field.name)
        values.extend(kept)
    elif kind == 3 and field.type != field.TYPE_MESSAGE:
        values[at] = _value(field, values[at], places, rng)
    else:
        _insert(owner, field, places, rng)


def _insert(owner: Any, field: Any, places: list[Place], rng: np.random.Generator) -> None:
    values = getattr(owner, field.name)
    if field.type == field.TYPE_MESSAGE:
        values.append(_like(field, places, rng) or values.add())
    else:
        values.append(_value(field, field.default_value or 0, places, rng))


def _set(owner: Any, field: Any, places: list[Place], rng: np.random.Generator) -> None:
    if field.type != field.TYPE_MESSAGE:
        setattr(owner, field.name, _value(field, getattr(owner, field.name), places, rng))
        return
    other = _like(field, places, rng)
    if other is None:
        getattr(owner, field.name).SetInParent()
    elif other is not getattr(owner, field.name):
        kept = type(other)()
        kept.CopyFrom(other)
        getattr(owner, field.name).CopyFrom(kept)


def _like(field: Any, places: list[Place], rng: np.random.Generator) -> Any:
    """Returns a message of the field's type from anywhere in the whole, or None."""
    wanted = field.message_type.full_name
    alike = [
        part
        for owner, f in places
        if f.type == f.TYPE_MESSAGE and f.message_type.full_name == wanted
        for part in (getattr(owner, f.name) if _is_repeated(f) else (getattr(owner, f.name),))
    ]
    if not alike:
        return None
    copy = type(alike[0])()
    copy.CopyFrom(alike[rng.integers(len(alike))])
    return copy


def _value(field: Any, old: Any, places: list[Place], rng: np.random.Generator) -> Any:
    if field.type == field.TYPE_STRING:
        return _word(places, rng)
    if field.type == field.TYPE_BYTES:
        return mutated(bytes(old or b""), rng)
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return _FLOATS[rng.integers(len(_FLOATS))]
    if field.type == field.TYPE_ENUM:
        return field.enum_type.values[int(rng.integers(len(field.enum_type.values)))].number
    near = int(old) + int(rng.integers(-2, 3))
    low, high = _RANGES.get(field.type, (-(2**63), 2**63 - 1))
    return max(low, min(near if rng.random() < 0.6 else number(rng), high))


def _word(places: list[Place], rng: np.random.Generator) -> str:
    """Draws a text: mostly one that stands elsewhere in the whole, so that names refer to other things."""
    owner, field = places[rng.integers(len(places))]
    if field.type == field.TYPE_STRING and rng.random() < 0.9:
        values = getattr(owner, field.name)
        return str(values[rng.integers(len(values))] if _is_repeated(field) else values)
    names = [f.name for _, f in places]
    return names[rng.integers(len(names))] if rng.random() < 0.3 else text(rng)
