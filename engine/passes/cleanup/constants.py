"""Constant folding: what is computed from constants alone is computed once, with our own kernels."""

from functools import partial

import numpy as np
from attrs import evolve

from engine.executor.binding import NO_BYTES, kernel_state
from engine.graph.deferred import SMALL, Entry, array_of
from engine.graph.mapped import release
from engine.graph.operator import Operator
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from ops.schema.schema import Binding, Signature
from ops.tensor.spec import Array

_SMALL = 1 << 16
"""Bytes up to which a result may be larger than what it is computed from."""


def fold(edit: Edit, operator: Operator) -> None:
    """Puts constants in the place of outputs, unless they are much larger than the constants that they come from.

    A kernel that fails is left to fail when the network runs.
    """
    if not operator.inputs or not all(v in edit.constants for v in operator.inputs):
        return
    if not edit.updated.isdisjoint(operator.outputs) or not _is_small(operator.signature):
        return
    arrays = tuple(edit.constants[v] for v in operator.inputs)
    try:
        outputs = _run(operator, arrays)
    except Exception:
        return
    entries = tuple(edit.entry(v) for v in operator.inputs)
    for i, (var, array) in enumerate(zip(operator.outputs, outputs, strict=True)):
        again = partial(_again, operator, entries, i)
        edit.replace(var, edit.constant(array) if array.nbytes <= SMALL else edit.deferred(var.spec, again))
    for array in arrays:
        release(array)


def _again(operator: Operator, entries: tuple[Entry, ...], output: int) -> Array:
    """An output, computed when it is wanted."""
    arrays = tuple(map(array_of, entries))
    found = _run(operator, arrays)[output]
    for array in arrays:
        release(array)
    return found


def _is_small(signature: Signature) -> bool:
    made = sum(s.nbytes for s in signature.outputs)
    return made <= max(_SMALL, 2 * sum(s.nbytes for s in signature.inputs))


def _run(operator: Operator, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    """With the kernel, and what it packs, that the network would run with."""
    signature = evolve(operator.signature, constants=frozenset(range(len(arrays))))
    kernel = operator.schema.kernel(signature)
    outputs = tuple(np.empty(s.shape, s.dtype) for s in signature.outputs)
    room = kernel.workspace(signature)
    workspace = np.empty(room, np.uint8) if room else NO_BYTES
    with kernel_state():
        packed = kernel.pack(signature, dict(enumerate(arrays)))
        kernel.bind(Binding(signature, arrays, outputs, workspace, packed))()
    return outputs


CONSTANTS = RulePass("constant folding", fold)
