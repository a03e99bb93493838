"""Common subexpressions: what is computed twice from the same, and constants that are equal (as in any compiler)."""

from collections import Counter
from collections.abc import Hashable
from hashlib import blake2b
from typing import Any

import numpy as np

from engine.graph.graph import Graph
from engine.graph.mapped import release
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.edit import Edit
from ops.tensor.spec import Array

_PEEK = 16
"""Elements by which arrays are told apart before all their bytes are read."""


class _Common:
    """Lets everything read the first of equal constants and of equal operators.

    Operators whose attributes are no plain values (bodies), and those that write over a parameter, are left alone.
    Kernels are taken to be functions of what they read.
    """

    name = "common subexpressions"

    def __call__(self, graph: Graph) -> Graph:
        """The graph, changed or not. Raises GraphError for a graph with open dimensions."""
        edit = Edit(graph)
        _merge_constants(edit)
        seen: dict[Hashable, tuple[Var, ...]] = {}
        for number in edit.numbers():
            if edit.has(number):
                _merge(edit, edit.operator(number), seen)
        return edit.graph()


def _merge(edit: Edit, operator: Operator, seen: dict[Hashable, tuple[Var, ...]]) -> None:
    try:
        attrs = tuple((name, _key(value)) for name, value in operator.attrs.items())
    except TypeError:
        return
    if not edit.updated.isdisjoint(operator.outputs):
        return
    first = seen.setdefault((operator.schema, operator.inputs, attrs), operator.outputs)
    if first is not operator.outputs:
        for var, earlier in zip(operator.outputs, first, strict=True):
            edit.replace(var, earlier)


def _key(value: Any) -> Hashable:
    """Equal for equal values only: 1, 1.0 and True are three, and so are 0.0 and -0.0. Raises TypeError for a body."""
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    if isinstance(value, float):
        return value.hex()
    if value is None or isinstance(value, (bool, int, str, np.dtype)):
        return type(value), value
    raise TypeError(f"{value!r} is no plain value")


def _merge_constants(edit: Edit) -> None:
    """Equal to the bit: NaN is itself, and -0 is not 0."""
    specs = Counter(var.spec for var in edit.constants)
    alike: dict[Hashable, list[Var]] = {}
    for var in edit.constants:
        if specs[var.spec] > 1:
            array = edit.constants[var]
            alike.setdefault((var.spec, _peek(array)), []).append(var)
            release(array)
    for group in alike.values():
        seen: dict[bytes, Var] = {}
        for var in group if len(group) > 1 else ():
            first = seen.setdefault(_digest(edit.constants[var]), var)
            if first is not var:
                edit.replace(var, first)


def _peek(array: Array) -> bytes:
    flat = array.reshape(-1)
    return flat[:: max(1, flat.size // _PEEK)].tobytes()


def _digest(array: Array) -> bytes:
    """Of all bytes: sparse arrays are alike wherever one peeks."""
    found = blake2b(array.reshape(-1).view(np.uint8).data).digest()
    release(array)
    return found


COMMON = _Common()
