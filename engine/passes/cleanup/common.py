"""Common subexpression elimination: equal operators on equal inputs, and equal constants."""

from collections import Counter
from collections.abc import Hashable
from zlib import crc32

import numpy as np

from engine.graph.deferred import few_bytes
from engine.graph.mapped import release
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import Pass
from engine.passes.edit import Edit
from engine.passes.lengths import attribute_key
from ops.tensor.spec import Array


class _Common(Pass):
    """The pass that merges equal constants and equal operators into the first of them.

    1. constants of one spec with equal bits -> the first one
    2. operators with one schema, equal inputs and equal attributes -> the first one

    The pass does not merge operators with bodies, nor those that update a parameter. It relies on kernels that are
    functions of their inputs.
    """

    name = "common subexpressions"
    tolerance = 0.0

    def apply(self, edit: Edit) -> None:
        """Merges constants, then operators."""
        _merge_constants(edit)
        seen: dict[Hashable, tuple[Var, ...]] = {}
        for operator_id in edit.operator_ids():
            if edit.has_operator(operator_id):
                _merge(edit, edit.operator(operator_id), seen)


def _merge(edit: Edit, operator: Operator, seen: dict[Hashable, tuple[Var, ...]]) -> None:
    try:
        attrs = tuple((name, attribute_key(value)) for name, value in operator.attrs.items())
    except TypeError:
        return
    if not edit.updated.isdisjoint(operator.outputs):
        return
    first = seen.setdefault((operator.schema, operator.inputs, attrs), operator.outputs)
    if first is not operator.outputs:
        for var, earlier in zip(operator.outputs, first, strict=True):
            edit.replace(var, earlier)


def _merge_constants(edit: Edit) -> None:
    """Merges constants that are equal in every bit: NaN equals itself, and -0 is not 0."""
    specs = Counter(var.spec for var in edit.constants)
    alike: dict[Hashable, list[Var]] = {}
    for var in edit.constants:
        if specs[var.spec] > 1:
            alike.setdefault((var.spec, few_bytes(edit.constant_entry(var))), []).append(var)
    for group in alike.values():
        seen: dict[int, list[Var]] = {}
        for var in group if len(group) > 1 else ():
            content = _bytes(edit.constants[var])
            distinct = seen.setdefault(crc32(content.data), [])
            first = next((v for v in distinct if np.array_equal(_bytes(edit.constants[v]), content)), None)
            if first is None:
                distinct.append(var)
            else:
                edit.replace(var, first)
            release(content)


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


COMMON = _Common()
