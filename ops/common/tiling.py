"""How calls are cut into stripes: parts of tensors along one axis, each computed as the whole would be.

The functions that end with `_rows` give a call that computes any rows, or columns, of images with channels last.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import evolve

from ops.common.boxes import longest
from ops.common.epilogue import RESIDUAL
from ops.common.windows import Windows, nhwc_pool_windows, windows
from ops.schema.schema import Index, Rows, Signature, Stripe, Stripes, one_stripe
from ops.tensor.spec import TensorSpec

ROWS, COLUMNS = 1, 2
"""The axes of rows and columns, of images with channels last."""
_MOST_KINDS = 64
"""Stripes that read pads, at most: each is a kind of its own, whose kernel is looked for."""


def cut(axis: int, first: int, last: int) -> Index:
    """Returns the part of a tensor that is [first, last) of one axis, and all of the others."""
    return (*(slice(None) for _ in range(axis)), slice(first, last))


def counted(signature: Signature) -> int:
    """Returns the number of elements of the output and of all inputs that are not constants."""
    changing = (s for i, s in enumerate(signature.inputs) if i not in signature.constants)
    return signature.y.size + sum(s.size for s in changing)


def along(signature: Signature, axes: Collection[int], follow: Collection[int], most: int) -> Stripes:
    """Cuts the output along the first of the axes that is long enough, or else the longest one.

    The inputs `follow` are cut there as well, axes counted from the last: those that are as long, for others are
    broadcast. Another input is read whole.
    """
    y = signature.y
    wanted = -(-counted(signature) // max(most, 1))
    long = [a for a in axes if y.shape[a] > 1]
    if wanted < 2 or not long:
        return one_stripe(signature, most)
    axis = next((a for a in long if y.shape[a] >= wanted), max(long, key=lambda a: y.shape[a]))
    size = longest(y.shape[axis], -(-y.shape[axis] // wanted))
    count = -(-y.shape[axis] // size)

    def stripe(position: int) -> Stripe:
        first, last = position * size, min((position + 1) * size, y.shape[axis])
        reads = (_cut_like(y, s, axis, first, last) if i in follow else () for i, s in enumerate(signature.inputs))
        return Stripe(tuple(reads), cut(axis, first, last), signature.attrs)

    return Stripes(count, stripe, tuple(dict.fromkeys((0, count - 1))))


def _cut_like(y: TensorSpec, x: TensorSpec, axis: int, first: int, last: int) -> Index:
    """Returns the part of an input that belongs to that part of the output."""
    mine = axis - y.ndim + x.ndim
    return cut(mine, first, last) if mine >= 0 and x.shape[mine] == y.shape[axis] else ()


def elementwise_stripes(signature: Signature, most: int) -> Stripes:
    """Returns stripes of an operator whose inputs are broadcast to the output."""
    everything = range(len(signature.inputs))
    return along(signature, range(signature.y.ndim), everything, most)


def window_stripes(windows: Windows, axis: int, signature: Signature, residual: Sequence[int], most: int) -> Stripes:
    """Returns stripes of rows of images; `axis` is the first spatial one of x and y.

    What a stripe reads beyond x is padded. `residual` are the inputs that have the output's shape. Returns one stripe
    where windows reach beyond the pads, or are so long that hardly any stripes are alike.
    """
    rows = signature.y.shape[axis]
    wanted = -(-counted(signature) // max(most, 1))
    if wanted < 2 or rows < 2 or windows.reach(0, rows) > windows.sizes[0] + windows.begins[0] + windows.ends[0]:
        return one_stripe(signature, most)
    size = longest(rows, -(-rows // wanted))
    count, step = -(-rows // size), size * windows.strides[0]

    def stripe(position: int) -> Stripe:
        first, last = position * size, min((position + 1) * size, rows)
        return _rows(windows, axis, signature, residual, (first, last))

    ends = [stripe(position).inputs[0][axis] for position in (0, count - 1)]
    before = -(-windows.begins[0] // step)  # the stripes that read pads stand at both ends
    behind = (windows.sizes[0] + windows.begins[0] - windows.reach(0, size)) // step + 1
    if before + count - behind > _MOST_KINDS or not all(s.start < s.stop for s in ends):
        return one_stripe(signature, most)
    kinds = {*range(min(before + 1, count)), *range(max(behind, 0), count), count - 1}
    return Stripes(count, stripe, tuple(sorted(kinds)))


def _rows(
    windows: Windows,
    axis: int,
    signature: Signature,
    residual: Sequence[int],
    rows: tuple[int, int],
    *,
    along: int = 0,
) -> Stripe:
    """Returns the call of rows along an axis, which is number `along` of the spatial ones."""
    first, last = rows
    begin = first * windows.strides[along] - windows.begins[along]
    reach = (windows.kernel[along] - 1) * windows.dilations[along] + 1
    end = (last - 1) * windows.strides[along] - windows.begins[along] + reach
    low, high = min(max(begin, 0), windows.sizes[along]), min(end, windows.sizes[along])
    reads = [cut(axis, low, high), *(() for _ in signature.inputs[1:])]
    for position in residual:
        reads[position] = cut(axis, first, last)
    begins, ends = list(windows.begins), list(windows.ends)
    begins[along], ends[along] = low - begin, end - high
    pads = (*begins, *ends)
    return Stripe(tuple(reads), cut(axis, first, last), _padded(signature.attrs, pads))


def _padded(attrs: Mapping[str, Any], pads: Sequence[int]) -> dict[str, Any]:
    """Returns the attributes with explicit pads."""
    plain = {"auto_pad": "NOTSET", "ceil_mode": False}
    return dict(attrs) | {name: value for name, value in plain.items() if name in attrs} | {"pads": tuple(pads)}


def matmul_stripes(signature: Signature, most: int) -> Stripes:
    """Returns stripes of y = a @ b (+ inputs like y): batches, or rows of a; never the last axis, which would cut b."""
    a, b, y = signature.inputs[0], signature.inputs[1], signature.y
    if y.ndim < 2 or a.ndim < 2 or b.ndim < 2:
        return one_stripe(signature, most)
    outer = list(range(y.ndim - 2))
    if math.prod(y.shape[:-2]) > 1:
        return along(signature, outer, range(len(signature.inputs)), most)
    others = [i for i in range(len(signature.inputs)) if i != 1]
    return along(signature, [y.ndim - 2], others, most)


def conv_stripes(signature: Signature, most: int) -> Stripes:
    """Returns stripes of a convolution (N, C, spatial...), with what is added to it."""
    x, w = signature.inputs[:2]
    geometry = windows(x.shape[2:], w.shape[2:], signature.attrs)
    return window_stripes(geometry, 2, signature, range(RESIDUAL, len(signature.inputs)), most)


def nhwc_conv_stripes(signature: Signature, most: int) -> Stripes:
    """Returns stripes of a convolution (N, spatial..., C), with what is added to it."""
    x, w = signature.inputs[:2]
    geometry = windows(x.shape[1:-1], w.shape[2:], signature.attrs)
    return window_stripes(geometry, 1, signature, range(RESIDUAL, len(signature.inputs)), most)


def pool_stripes(signature: Signature, most: int) -> Stripes:
    """Returns stripes of pooling (N, C, spatial...): channels, as windows may end in pads that count or do not."""
    return along(signature, (1, 0), (0,), most)


def nhwc_pool_stripes(signature: Signature, most: int) -> Stripes:
    """Returns stripes of pooling (N, spatial..., C): channels, too."""
    return along(signature, (signature.y.ndim - 1, 0), (0,), most)


def axis_stripes(signature: Signature, most: int) -> Stripes:
    """Returns stripes of an operator along one axis, or from that axis on: the dimensions before it are cut."""
    axis = signature.attrs["axis"] % max(signature.y.ndim, 1)
    return along(signature, range(axis), (0,), most)


def image_stripes(signature: Signature, most: int) -> Stripes:
    """Returns stripes of an operator on (N, C, spatial...) that needs all channels of a pixel, and no other pixel."""
    return along(signature, (0, *range(2, signature.y.ndim)), (0,), most)


def elementwise_rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of some rows of an operator whose inputs are broadcast to the output.

    The rows of an input with fewer dimensions are another axis of it.
    """
    y = signature.y
    reads = tuple(_cut_of_images(y, s, axis, first, last) or _image_of_batch(y, s) for s in signature.inputs)
    return Stripe(reads, cut(axis, first, last), signature.attrs)


def _cut_of_images(y: TensorSpec, x: TensorSpec, axis: int, first: int, last: int) -> Index:
    """Returns the part of an input that belongs to that part of the output; of one without an axis of images, the
    first axis is given as all of its elements.
    """
    part = _cut_like(y, x, axis, first, last)
    return (slice(0, x.shape[0]), *part[1:]) if len(part) > 1 and x.ndim < y.ndim else part


def _image_of_batch(y: TensorSpec, x: TensorSpec) -> Index:
    """Returns the part of an input that belongs to one image of a batch: all rows, where images have values apart."""
    return (slice(None),) if y.shape[0] > 1 and x.shape[:1] == y.shape[:1] and x.ndim == y.ndim else ()


def first_input_rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of some rows of an operator that computes each row from the same row of its first input."""
    part = cut(axis, first, last)
    return Stripe((part, *(() for _ in signature.inputs[1:])), part, signature.attrs)


def axis_rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of some rows of an operator along one axis; None along the rows, or the images of a batch."""
    along = signature.attrs["axis"] % signature.y.ndim
    if along == axis or (along == 0 and signature.y.shape[0] > 1):
        return None
    return first_input_rows(signature, first, last, axis)


def nhwc_conv_rows(residual: int) -> Rows:
    """Returns the `rows` of a convolution to which the inputs from position `residual` on are added."""

    def rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
        x, w = signature.inputs[:2]
        geometry = windows(x.shape[1:-1], w.shape[2:], signature.attrs)
        return _window_rows(geometry, axis, signature, range(residual, len(signature.inputs)), (first, last))

    return rows


def nhwc_pool_rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of some rows of pooling.

    None where the last windows reach beyond pads that count: more would count in pads that hold all windows.
    """
    w = nhwc_pool_windows(signature)
    over = any(w.reach(a, w.outputs[a]) > w.sizes[a] + w.begins[a] + w.ends[a] for a in range(w.ndim))
    if over and signature.attrs.get("count_include_pad", False):
        return None
    return _window_rows(w, axis, signature, (), (first, last))


def _window_rows(
    windows: Windows, axis: int, signature: Signature, residual: Sequence[int], rows: tuple[int, int]
) -> Stripe | None:
    """Returns the call of some rows; None where they read only pads. Its pads end where its last windows end."""
    spans = (windows.reach(a, n) - windows.sizes[a] - windows.begins[a] for a, n in enumerate(windows.outputs))
    ending = evolve(windows, ends=tuple(max(n, 0) for n in spans))
    stripe = _rows(ending, axis, signature, residual, rows, along=axis - ROWS)
    read = stripe.inputs[0][axis]
    return stripe if read.start < read.stop else None


def concat_rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of some rows of a concatenation along another axis; None of one along rows or images."""
    if signature.attrs["axis"] % signature.y.ndim in (0, axis):
        return None
    part = cut(axis, first, last)
    return Stripe((part,) * len(signature.inputs), part, signature.attrs)
