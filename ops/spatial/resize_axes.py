"""Which axes a resize changes, and how, for the choice of a kernel: its cost does not grow with the tensors.

Short axes are looked up in their tables, long ones are told by rules, which leave the rare cases to the slower kernels.
"""

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
    forward = table(_axis(signature, axis), signature.attrs)
    return transposed(forward, signature.y.shape[axis]) if _is_gradient(signature) else forward


def changed_axes(signature: Signature) -> list[tuple[int, int]]:
    """Returns the axes that change, those that shrink most first, each with the elements that an output reads.

    For a gradient along a long axis that is 2, which stands for more than one.
    """
    x, y = signature.x.shape, signature.y.shape
    read = [(a, _taps(signature, a)) for a in range(len(x)) if x[a]]
    return sorted(((a, taps) for a, taps in read if taps), key=lambda t: y[t[0]] / x[t[0]])


def repeats(signature: Signature) -> bool:
    """Returns whether the nearest elements are each element, repeated a whole number of times."""
    if signature.attrs["mode"] != "nearest" or signature.y.size == 0:
        return False
    lengths = zip(signature.x.shape, signature.y.shape, strict=True)
    whole = all(n and m % n == 0 for n, m in lengths)
    return whole and all(_repeats(signature, axis) for axis in range(signature.x.ndim))


def _is_gradient(signature: Signature) -> bool:
    return "shape" in signature.attrs


def _is_short(signature: Signature, axis: int) -> bool:
    return max(signature.x.shape[axis], signature.y.shape[axis]) <= _LONG


def _axis(signature: Signature, axis: int) -> Axis:
    """Returns the axis as the resize changes it; the output of a gradient has the shape of what was resized."""
    x, y = signature.x.shape, signature.y.shape
    return _resized(signature.attrs, *((y, x) if _is_gradient(signature) else (x, y)), axis)


def _resized(attrs: Attrs, x: Shape, y: Shape, axis: int) -> Axis:
    elements, outputs = x[axis], y[axis]
    scale = attrs["scales"][axis] if attrs["scales"] else outputs / max(elements, 1)
    size = scale * elements if attrs["scales"] else outputs
    roi = attrs["roi"] or (0.0,) * len(x) + (1.0,) * len(x)
    return Axis(elements, outputs, scale, size, roi[axis], roi[axis + len(x)])


def _taps(signature: Signature, axis: int) -> int:
    """Returns how many elements an output reads along an axis; 0 where the axis is copied as it is."""
    if _is_short(signature, axis):
        mapping = table_of(signature, axis)
        return 0 if is_copy(mapping, signature.x.shape[axis]) else len(mapping.indices)
    resized = _axis(signature, axis)
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
    if _is_short(signature, axis):
        return is_repetition(table_of(signature, axis), m // n)
    resized = _axis(signature, axis)
    if n == m:
        return _is_unchanged(resized, attrs)
    places, nearest = attrs["coordinate_transformation_mode"], attrs["nearest_mode"]
    centred = places in _CENTRED and nearest.startswith("round")
    exact = resized.scale == m // n and resized.size == m < _EXACT
    return exact and (centred or (places == "asymmetric" and nearest == "floor"))
