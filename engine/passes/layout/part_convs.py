"""Convolutions of a concatenation as sums of convolutions, where it would have to be copied together.

conv(concat(a, b), w) = conv(a, w of a) + conv(b, w of b): each convolution begins with what the one before gave, and
writes over it. A concatenation of channels that stand last costs nothing where its inputs are computed inside of it;
but that is done for so many pixels only (`engine.nesting.search.MOST_RUNS`). Beyond, it is a second copy of all that is
joined. All but the last convolution run before the last input is computed, if they can: what they read may be gone.
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


def part_convs(most: int) -> RulePass:
    """The pass for concatenations of more pixels than so many."""
    return RulePass("convolutions in parts", partial(_part_conv, most))


def _part_conv(most: int, edit: Edit, operator: Operator) -> None:
    """A convolution for each input of the concatenation that it alone reads, unless it gives more than it reads."""
    if operator.schema is not NHWC_CONV or operator.attrs["group"] != 1 or operator.inputs[1] not in edit.constants:
        return
    (x, weights, *rest), (y,) = operator.inputs, operator.outputs
    joined = _joined(edit, x, most)
    if len(joined) < 2 or y.spec.nbytes > x.spec.nbytes:
        return
    parts = sorted(zip(joined, _parts(edit, weights, joined), strict=True), key=lambda part: _place(edit, part[0]))
    bias, before = rest[0] if rest else _no_bias(edit, weights), rest[1:]
    here = _go_ahead(edit, operator, parts[-1][0], [*(v for v, _ in parts[:-1]), *before])
    for var, part in parts[:-1]:
        before = list(edit.add(NHWC_CONV, (var, part, bias, *before), {**operator.attrs, **_NO_FINISH}))
        bias = _no_bias(edit, weights)
    edit.operator(here)
    edit.replace(y, edit.add(NHWC_CONV, (*parts[-1], bias, *before), operator.attrs)[0])


def _place(edit: Edit, var: Var) -> int:
    """Where in the graph as it was a var is computed; what is given is there from before."""
    writer = edit.writer(var)
    return -1 if writer is None else edit.place(writer)[0]


def _go_ahead(edit: Edit, operator: Operator, last: Var, others: Sequence[Var]) -> int:
    """Lets what is added next stand in front of what computes the last var, if the others are there by then.

    Gives the number of the operator.
    """
    numbers = {edit.operator(n): n for n in edit.numbers()}
    here = numbers[operator]
    edit.operator(here)
    ahead = [n for op, n in numbers.items() if edit.place(op)[0] < _place(edit, last)]
    if ahead and all(_place(edit, v) < _place(edit, last) for v in others):
        edit.operator(ahead[-1])
    return here


def _joined(edit: Edit, x: Var, most: int) -> tuple[Var, ...]:
    """What is put together along the channels for this one reader, of more pixels than `most`; else nothing."""
    found = edit.writer(x)
    if found is None or found.schema is not CONCAT or edit.sole_reader(x) is None:
        return ()
    along_channels = normalize_axis(found.attrs["axis"], x.ndim) == x.ndim - 1
    wide = along_channels and x.spec.size > most * x.shape[-1] and all(v.shape[-1] for v in found.inputs)
    return () if not wide or any(map(edit.is_old_state, found.inputs)) else found.inputs


def _no_bias(edit: Edit, weights: Var) -> Var:
    return edit.constant(np.zeros(weights.shape[0], weights.dtype))


def _parts(edit: Edit, weights: Var, joined: tuple[Var, ...]) -> Iterator[Var]:
    """The weights of each input."""
    entry, (outputs, _, *kernel) = edit.entry(weights), weights.shape
    for first, last in pairwise(accumulate((v.shape[-1] for v in joined), initial=0)):
        spec, cut = TensorSpec((outputs, last - first, *kernel), weights.dtype), partial(_cut, entry, first, last)
        yield edit.constant(cut()) if spec.nbytes <= SMALL else edit.deferred(spec, cut, edit.name(weights))


def _cut(entry: Entry, first: int, last: int) -> Array:
    return np.ascontiguousarray(array_of(entry)[:, first:last])


PART_CONVS = part_convs(MOST_RUNS)
"""Sums of convolutions instead of large concatenations."""
