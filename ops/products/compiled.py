"""Products of float32 matrices as compiled calls: by tiles and panels, or with very few rows and b read in place."""

import math
from functools import lru_cache

import numpy as np
from attrs import frozen

from allocator.machine_code.door import address
from ops.common.epilogue import GELU_ERF, GELU_TANH, SILU
from ops.common.thunks import nothing
from ops.native.aligned import aligned_zeros
from ops.native.call import Native, Step
from ops.native.emit.tile_shapes import CLIP, LEAK, NONE, tile_shape
from ops.native.records import Number, pack_args
from ops.products import args as at
from ops.products.case import Product, batched
from ops.schema.schema import Attrs, Thunk
from ops.tensor.layout import Layout, address_of
from ops.tensor.spec import Array, Shape

SINGLE = np.dtype("float32")
FEW = 4
"""Most rows for which b, if it is not packed, is read once and in place. Trades the time of packing against that of
products out of unpacked memory; tools/bench_kernels.py --operators matmul times products of all sizes."""
_KINDS = {"none": NONE, "clip": CLIP, "leaky_relu": LEAK}
_SMOOTH = {GELU_ERF: at.GELU_ERF, GELU_TANH: at.GELU_TANH, SILU: at.SILU}
PLAIN: tuple[Number, ...] = (NONE, 0.0, 0.0, 0.0)
_BLOCK_BYTES = 384 << 10
"""Most bytes of rows of a in a block: they stay in a second-level cache while one panel after the other is multiplied.
tools/bench_kernels.py --operators fused_matmul matmul gemm times products of all sizes."""
_DEEP = 1024
"""Most steps along the depth of packed panels at a time: 128 KiB of a panel of AVX-512. Longer chunks read and write y
less often, but leave less of the second-level cache to the rows."""
_SPAN = 4096
"""Columns that very few rows are multiplied by at a time where b is stored by rows: 16 KiB of sums for each row stay in
a first-level cache."""


@frozen(eq=False)
class Multiplication:
    """y = activation(factor * a @ b + bias + added), where a, b and y are matrices, or batches of them.

    `panels` are those of b multiplied by the factor; of b, only the shape is used then.
    """

    a: Array
    b: Array
    y: Array
    bias: tuple[Array, ...] = ()
    added: tuple[Array, ...] = ()
    factor: float = 1.0
    finish: tuple[Number, ...] = PLAIN
    panels: tuple[Array, ...] = ()


def activation_numbers(attrs: Attrs) -> tuple[Number, ...]:
    """Returns activation, low, high and slope of a fused product."""
    kind = (_KINDS | _SMOOTH)[attrs["activation"]]
    return kind, attrs["low"], attrs["high"], attrs["slope"]


def has_near_rows(layout: Layout) -> bool:
    """Returns whether elements of a row are neighbours, and no stride is negative."""
    *outer, inner = zip(layout.shape, layout.strides, strict=True) if layout.shape else ((1, layout.itemsize),)
    forward = all(n < 2 or (s >= 0 and s % layout.itemsize == 0) for n, s in outer)
    return forward and (inner[0] < 2 or inner[1] == layout.itemsize)


def has_near_columns(layout: Layout) -> bool:
    """Returns whether elements of a column are neighbours, and no stride is negative."""
    order = (*range(len(layout.shape) - 2), len(layout.shape) - 1, len(layout.shape) - 2)
    return len(layout.shape) > 1 and has_near_rows(layout.transpose(order))


def reads_rows(layout: Layout) -> bool:
    """Returns whether tiles read the rows in place, and a single column without gaps: its sums have another order."""
    return has_near_rows(layout) and (layout.shape[-1:] != (1,) or len(layout.shape) < 2 or has_near_columns(layout))


def rows_of(a: Shape) -> int:
    """Returns the rows that one b is multiplied by."""
    return math.prod(a[:-1])


def packed_panels(b: Array, factor: float) -> Array:
    """Returns b (depth, columns) as panels (panels, depth, width), times the factor; the last is padded with zeros."""
    (_, columns), width = b.shape, tile_shape().channels
    panels = aligned_zeros(panels_shape(b.shape), SINGLE)
    for panel, first in zip(panels, range(0, columns, width), strict=True):
        part = b[:, first : first + width]
        np.multiply(part, np.float32(factor), panel[:, : part.shape[1]])
    return panels


def panels_shape(b: Shape) -> Shape:
    """Returns the shape of the panels of b (depth, columns)."""
    (depth, columns), width = b, tile_shape().channels
    return -(-columns // width), depth, width


def multiply(case: Multiplication) -> Thunk:
    """Returns the call. Elements of rows of a, y and the addend are neighbours; so are those of rows (or columns) of
    b.
    """
    if not case.y.size:
        return nothing
    batch = batched(case.a, _stand_in(case), case.y, case.added)
    operands, first = _operands(batch), batch[(0,) * len(batch.lead)]
    rows = rows_of(case.a.shape) if case.b.ndim == 2 else case.a.shape[-2]  # wherever they lie
    few = rows <= FEW and not case.panels
    name = "multiply_few" if few else f"multiply_{tile_shape().name}"
    bias = case.bias[0] if case.bias else np.zeros(tile_shape().channels if not few else 1, np.float32)
    args = _args(case, first, operands, bias)
    return Native((Step(address("ops.products.code", name), args),), (case, operands, bias))


def _stand_in(case: Multiplication) -> Array:
    """Returns an array of the shape of b, at its address or that of its panels."""
    return np.ndarray(case.b.shape, SINGLE, case.panels[0], 0, (0, 0)) if case.panels else case.b


def _operands(batch: Product) -> Array:
    """Returns OPERANDS records, a row for each product: addresses of a, b, y and the addend (or 0)."""
    tensors, count = (batch.a, batch.b, batch.y, *batch.added), len(batch.lead)
    table = np.zeros((math.prod(batch.lead), 4), np.int64)
    table[:, : len(tensors)] = list(map(address_of, tensors))
    if count:
        table[:, : len(tensors)] += _places(batch.lead).dot(np.array([t.strides[:count] for t in tensors]).T)
    return table


@lru_cache(maxsize=16)
def _places(lead: Shape) -> Array:
    """Returns the places of a batch in C order, a row for each."""
    return np.indices(lead, np.int64).reshape(len(lead), math.prod(lead)).T


def _args(case: Multiplication, product: Product, operands: Array, bias: Array) -> Array:
    (rows, depth), columns = product.a.shape, product.y.shape[1]
    layout = Layout.of(product.b)
    by_rows = has_near_rows(layout) and (columns > 1 or not has_near_columns(layout))
    kind = at.PACKED if case.panels else at.BY_ROWS if by_rows else at.BY_COLUMNS
    chunk = max(1, min(depth, _DEEP if case.panels else at.MOST_CHUNK))
    chunk = -(-depth // -(-depth // chunk)) if depth else 1
    activation, low, high, slope = case.finish
    return pack_args(
        at.PRODUCTS,
        count=len(operands),
        operands=operands.ctypes.data,
        rows=rows,
        depth=depth,
        columns=columns,
        a_pitch=product.a.strides[0],
        y_pitch=product.y.strides[0],
        added_pitch=product.added[0].strides[0] if product.added else 0,
        b_kind=kind,
        b_pitch=product.b.strides[0 if by_rows else 1],
        factor=float(case.factor),
        bias=bias.ctypes.data,
        bias_hop=4 if case.bias else 0,
        activation=activation,
        low=low,
        high=high,
        slope=slope,
        idle=NONE,
        block_tiles=max(1, _BLOCK_BYTES // (4 * chunk * tile_shape().rows)),
        chunk=chunk,
        columns_at_once=_SPAN if kind == at.BY_ROWS else columns,
    )
