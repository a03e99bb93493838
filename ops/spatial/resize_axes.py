"""Which axes a resize changes, and how, for the choice of a kernel: its cost does not grow with the tensors.

Short axes are looked up in their tables, long ones are told by rules, which leave the rare cases to the slower kernels.
"""

import math

import numpy as np
from attrs import evolve

from ops.common.tiling import ROWS
from ops.schema.schema import Attrs, Signature
from ops.spatial.resize_tables import Axis, Table, is_copy, is_repetition, reach, table, transposed
from ops.tensor.spec import Shape

_LONG = 1 << 16
"""Elements of an axis from which on no table is made before its kernel is bound."""
_EXACT = 1 << 48
"""Elements below which places of a repetition are exact enough in float64 to be rounded to the right element."""
_CENTRED = frozenset(("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"))


def table_of(signature: Signature, axis: int) -> Table:
    """Returns the table of an axis; for a gradient, the transposed one."""
    return _table(signature, _axis(signature, axis), signature.y.shape[axis])


def _table(signature: Signature, axis: Axis, outputs: int) -> Table:
    forward = table(axis, signature.attrs)
    return transposed(forward, outputs) if _is_gradient(signature) else forward


def rows_read(signature: Signature, first: int, last: int) -> tuple[range, tuple[int, ...]]:
    """Returns the rows that rows [first, last) of the output read, and the attribute `rows` of a call of them alone.

    What they read is counted in x, which may have some rows alone itself. Rows far from the border that are weighed as
    others in front of them have the attribute of these, so that their calls are alike.
    """
    axis = _axis(signature, ROWS)
    if not _taps(signature, ROWS):
        return range(first, last), (axis.elements, axis.outputs, 0, 0)
    part = evolve(axis, first=axis.first + first, last=axis.first + last)
    mapping = table(part, signature.attrs)
    read = range(int(mapping.indices.min()), int(mapping.indices.max()) + 1)
    place = axis.low + read.start, part.first
    period = axis.outputs // math.gcd(axis.outputs, axis.elements)
    back = max(part.first // period - 1, 0) * period
    like = evolve(part, first=part.first - back, last=part.last - back, low=0)
    other = table(like, signature.attrs)
    low = int(other.indices.min())
    if _same(evolve(mapping, indices=mapping.indices - read.start), evolve(other, indices=other.indices - low)):
        place = low, like.first
    return read, (axis.elements, axis.outputs, *place)


def has_rows_read(signature: Signature) -> bool:
    """Returns whether the attribute `rows` says of x and the output what they can be, and x has all rows to read."""
    x, y = signature.x.shape, signature.y.shape
    if len(x) <= ROWS:
        return False
    axis = _axis(signature, ROWS)
    if min(axis.low, axis.first) < 0 or axis.low + x[ROWS] > axis.elements or axis.last > axis.outputs:
        return False
    if not _taps(signature, ROWS):
        return x[ROWS] == y[ROWS]
    read = table_of(signature, ROWS).indices
    return not read.size or (int(read.min()) >= 0 and int(read.max()) < x[ROWS])


def _same(one: Table, other: Table) -> bool:
    pairs = ((one.indices, other.indices), (one.weights, other.weights), (one.outside, other.outside))
    return all(np.array_equal(*pair) for pair in pairs)


def changed_axes(signature: Signature) -> list[tuple[int, int]]:
    """Returns the axes that change, those that shrink most first, each with the elements that an output reads.

    For a gradient along a long axis that is 2, which stands for more than one.
    """
    read = [(a, _taps(signature, a)) for a, length in enumerate(signature.x.shape) if length]
    return sorted(((a, taps) for a, taps in read if taps), key=lambda t: _growth(signature, t[0]))


def _growth(signature: Signature, axis: int) -> float:
    """Returns how many times longer a whole axis gets: some rows are resized in the order of the whole."""
    resized = _axis(signature, axis)
    lengths = (resized.outputs, resized.elements)
    return lengths[1] / lengths[0] if _is_gradient(signature) else lengths[0] / lengths[1]


def repeats(signature: Signature) -> bool:
    """Returns whether the nearest elements are each element, repeated a whole number of times; False for some rows."""
    if signature.attrs["mode"] != "nearest" or signature.attrs["rows"] or signature.y.size == 0:
        return False
    lengths = zip(signature.x.shape, signature.y.shape, strict=True)
    whole = all(n and m % n == 0 for n, m in lengths)
    return whole and all(_repeats(signature, axis) for axis in range(signature.x.ndim))


def _is_gradient(signature: Signature) -> bool:
    return "shape" in signature.attrs


def _axis(signature: Signature, axis: int) -> Axis:
    """Returns the axis as the resize changes it; the output of a gradient has the shape of what was resized."""
    x, y = signature.x.shape, signature.y.shape
    return _resized(signature.attrs, *((y, x) if _is_gradient(signature) else (x, y)), axis)


def _resized(attrs: Attrs, x: Shape, y: Shape, axis: int) -> Axis:
    elements, outputs, low, first = x[axis], y[axis], 0, 0
    if axis == ROWS and attrs["rows"]:
        elements, outputs, low, first = attrs["rows"]
    scale = attrs["scales"][axis] if attrs["scales"] else outputs / max(elements, 1)
    size = scale * elements if attrs["scales"] else outputs
    roi = attrs["roi"] or (0.0,) * len(x) + (1.0,) * len(x)
    return Axis(elements, outputs, scale, size, roi[axis], roi[axis + len(x)], first, first + y[axis], low)


def _taps(signature: Signature, axis: int) -> int:
    """Returns how many elements an output reads along an axis; 0 where the axis is copied as it is."""
    resized = _axis(signature, axis).whole
    if max(resized.elements, resized.outputs) <= _LONG:
        ends = resized.elements, resized.outputs
        read, written = reversed(ends) if _is_gradient(signature) else ends
        mapping = _table(signature, resized, written)
        return 0 if is_copy(mapping, read) else len(mapping.indices)
    if _is_unchanged(resized, signature.attrs):
        return 0
    return 2 if _is_gradient(signature) else len(reach(resized, signature.attrs))


def _is_unchanged(axis: Axis, attrs: Attrs) -> bool:
    """Returns whether each output lies at its own element: a rule for long axes."""
    same = axis.elements == axis.outputs == axis.size and axis.scale == 1
    return same and (
        attrs["coordinate_transformation_mode"] != "tf_crop_and_resize" or (axis.start, axis.end) == (0, 1)
    )


def _repeats(signature: Signature, axis: int) -> bool:
    n, m, attrs = signature.x.shape[axis], signature.y.shape[axis], signature.attrs
    if max(n, m) <= _LONG:
        return is_repetition(table_of(signature, axis), m // n)
    resized = _axis(signature, axis)
    if n == m:
        return _is_unchanged(resized, attrs)
    places, nearest = attrs["coordinate_transformation_mode"], attrs["nearest_mode"]
    centred = places in _CENTRED and nearest.startswith("round")
    exact = resized.scale == m // n and resized.size == m < _EXACT
    return exact and (centred or (places == "asymmetric" and nearest == "floor"))
