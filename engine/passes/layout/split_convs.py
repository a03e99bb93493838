"""Replaces convolutions of large concatenations by sums of convolutions, so that the concatenation needs no memory.

conv(concat(a, b), w) = conv(a, w of a) + conv(b, w of b): each convolution adds to the result of the one before, and
overwrites it. With channels last, inputs of a concatenation of channels can be computed inside it, without a copy, but
planning allows that only up to a number of pixels (`engine.nesting.search.MOST_RUNS`). Above it, the concatenation is a
second copy of all its inputs. All convolutions but the last one run before the last input is computed, if they can: the
tensors that they read may die before.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from engine.graph.deferred import SMALL, Entry, array_of
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.nesting.search import MOST_RUNS
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from ops.common.epilogue import FINISH_ATTRIBUTES
from ops.convolution.nhwc import NHWC_CONV
from ops.movement.concat import CONCAT
from ops.tensor.spec import Array, TensorSpec, normalize_axis

_NO_FINISH = {attribute.name: attribute.default for attribute in FINISH_ATTRIBUTES}


def split_convs(most: int) -> RulePass:
    """Returns the pass for concatenations of more than `most` pixels."""
    return RulePass("convolutions in parts", partial(_split_conv, most))


def _split_conv(most: int, edit: Edit, operator: Operator) -> None:
    """Splits a convolution of a concatenation.

    nhwc_conv(concat(a, b, ...), w, bias) -> nhwc_conv(b, w of b, 0, nhwc_conv(a, w of a, bias)) ...

    The rule does not apply to grouped convolutions, where weights are not constant, where something else reads the
    concatenation, where it has few pixels, where an input is overwritten state, or where the result has more bytes than
    the concatenation.
    """
    if operator.schema is not NHWC_CONV or operator.attrs["group"] != 1 or operator.inputs[1] not in edit.constants:
        return
    (x, weights, *rest), (y,) = operator.inputs, operator.outputs
    inputs = _concatenated(edit, x, most)
    if len(inputs) < 2 or edit.estimated_bytes((y,)) > edit.estimated_bytes((x,)):
        return
    parts = sorted(zip(inputs, _split(edit, weights, inputs), strict=True), key=lambda part: _position(edit, part[0]))
    bias, partial_sum = rest[0] if rest else _no_bias(edit, weights), rest[1:]
    _insert_ahead(edit, operator, parts[-1][0], [*(v for v, _ in parts[:-1]), *partial_sum])
    for var, part in parts[:-1]:
        partial_sum = list(edit.add(NHWC_CONV, (var, part, bias, *partial_sum), {**operator.attrs, **_NO_FINISH}))
        bias = _no_bias(edit, weights)
    edit.insert_behind(edit.operator_id(operator))
    edit.replace(y, edit.add(NHWC_CONV, (*parts[-1], bias, *partial_sum), operator.attrs)[0])


def _position(edit: Edit, var: Var) -> int:
    """Returns the position in the original graph where a var is computed; -1 for one that no operator computes."""
    writer = edit.writer(var)
    return -1 if writer is None else edit.position(writer)[0]


def _insert_ahead(edit: Edit, operator: Operator, last: Var, others: Sequence[Var]) -> None:
    """Moves the insertion point in front of what computes `last`, if `others` are computed before; else to operator."""
    edit.insert_behind(edit.operator_id(operator))
    ahead = [n for n in edit.operator_ids() if edit.position(edit.operator(n))[0] < _position(edit, last)]
    if ahead and all(_position(edit, v) < _position(edit, last) for v in others):
        edit.insert_behind(ahead[-1])


def _concatenated(edit: Edit, x: Var, most: int) -> tuple[Var, ...]:
    """Returns the inputs of a concatenation of channels with one reader and more than `most` pixels; else ()."""
    concat = edit.writer(x)
    if concat is None or concat.schema is not CONCAT or edit.sole_reader(x) is None:
        return ()
    along_channels = normalize_axis(concat.attrs["axis"], x.ndim) == x.ndim - 1
    pixels = edit.estimated_bytes((x,)) // (x.dtype.itemsize * x.shape[-1]) if along_channels and x.shape[-1] else 0
    large = pixels > most and all(v.shape[-1] for v in concat.inputs)
    return () if not large or any(map(edit.is_overwritten_state, concat.inputs)) else concat.inputs


def _no_bias(edit: Edit, weights: Var) -> Var:
    return edit.constant(np.zeros(weights.shape[0], weights.dtype))


def _split(edit: Edit, weights: Var, inputs: tuple[Var, ...]) -> Iterator[Var]:
    """Yields the weights of each input."""
    entry, (outputs, _, *kernel) = edit.constant_entry(weights), weights.shape
    for first, last in pairwise(accumulate((v.shape[-1] for v in inputs), initial=0)):
        spec, part = TensorSpec((outputs, last - first, *kernel), weights.dtype), partial(_part, entry, first, last)
        yield edit.constant(part()) if spec.nbytes <= SMALL else edit.deferred_constant(spec, part, edit.name(weights))


def _part(entry: Entry, first: int, last: int) -> Array:
    return np.ascontiguousarray(array_of(entry)[:, first:last])


SPLIT_CONVS = split_convs(MOST_RUNS)
"""The pass for concatenations that planning does not compute in place."""
