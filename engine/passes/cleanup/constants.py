"""Constant folding: operators whose inputs are all constant run once, with the kernels of this project."""

from functools import partial

from attrs import evolve

from engine.executor.binding import kernel_state
from engine.graph.deferred import SMALL, Deferred, Entry, array_of, behind
from engine.graph.mapped import release
from engine.graph.operator import Operator
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from ops.schema.schema import Binding, Signature
from ops.tensor.spec import Array, new_arrays

_SMALL = 1 << 16
"""Bytes that a result may have however small its inputs are. A larger limit folds more and makes graphs larger."""
_MOST_STEPS = 16
"""Operators in a row that large results may be computed by, each time that they are read."""


def fold(edit: Edit, operator: Operator) -> None:
    """Replaces the outputs of an operator by constants.

    operator(constants) -> constants, up to 64 KiB or twice the bytes that are stored, whichever is more

    The rule does not apply to an operator that updates a parameter, nor to one whose kernel fails: it shall fail when
    the network runs. Large results are computed again each time they are read, and not stored.
    """
    if not operator.inputs or not all(v in edit.constants for v in operator.inputs):
        return
    if not edit.updated.isdisjoint(operator.outputs):
        return
    entries = tuple(edit.constant_entry(v) for v in operator.inputs)
    if not _is_small(operator.signature, entries):
        return
    if any(map(edit.decides_lengths, operator.outputs)):
        return
    arrays = tuple(edit.constants[v] for v in operator.inputs)
    try:
        outputs = _run(operator, arrays)
    except Exception:
        return
    for i, (var, array) in enumerate(zip(operator.outputs, outputs, strict=True)):
        recompute = partial(_recomputed, operator, entries, i)
        edit.replace(
            var, edit.constant(array) if array.nbytes <= SMALL else edit.deferred_constant(var.spec, recompute)
        )
    for array in arrays:
        release(array)


def _recomputed(operator: Operator, entries: tuple[Entry, ...], output: int) -> Array:
    """Returns one output, computed from the stored inputs."""
    arrays = tuple(map(array_of, entries))
    result = _run(operator, arrays)[output]
    for array in arrays:
        release(array)
    return result


def _is_small(signature: Signature, inputs: tuple[Entry, ...]) -> bool:
    """Returns whether the results are small beside the stored arrays that they are computed from."""
    result = sum(s.nbytes for s in signature.outputs)
    if result <= _SMALL:
        return True
    parts = tuple(behind(*inputs))
    stored = sum(p.nbytes for p in parts if not isinstance(p, Deferred))
    return result <= 2 * stored and sum(1 for p in parts if isinstance(p, Deferred)) < _MOST_STEPS


def _run(operator: Operator, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    """Returns the outputs, computed by the kernel and the packed constants that the network would run with."""
    signature = evolve(operator.signature, constants=frozenset(range(len(arrays))))
    kernel = operator.schema.kernel(signature)
    outputs, temporaries = new_arrays(signature.outputs), new_arrays(kernel.temporaries(signature))
    with kernel_state():
        packed = kernel.pack(signature, dict(enumerate(arrays)))
        kernel.bind(Binding(signature, arrays, outputs, temporaries, packed))()
    return outputs


CONSTANTS = RulePass("constant folding", fold, tolerance=0.0)
