"""Products of float32 matrices as compiled calls: by tiles and panels; of very few rows, out of weights as they lie."""

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.lib.stride_tricks import as_strided

from ops.common.epilogue import GELU_ERF, GELU_TANH, SILU
from ops.common.thunks import nothing
from ops.native.call import Native, Step, Word
from ops.native.door import address
from ops.native.emit.tile_shapes import ALIGNMENT, CLIP, LEAK, NONE, tile_shape
from ops.products import args as at
from ops.products.case import Product, batched
from ops.schema.schema import Attrs, Thunk
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, Shape

SINGLE = np.dtype("float32")
FEW = 4
"""Rows for which weights that are not packed are read once, where they lie."""
_KINDS = {"none": NONE, "clip": CLIP, "leaky_relu": LEAK}
_SMOOTH = {GELU_ERF: at.GELU_ERF, GELU_TANH: at.GELU_TANH, SILU: at.SILU}
PLAIN: tuple[Word, ...] = (NONE, 0.0, 0.0, 0.0)
_BLOCK_BYTES = 384 << 10
"""Most bytes of rows that stay in the second-level cache while one panel after the other goes by."""
_DEEP = 1024
"""Most steps along the depth of packed panels at a time."""
_SPAN = 4096
"""Columns that very few rows are multiplied by at a time where weights lie by rows: sums stay in a near cache."""


@frozen(eq=False)
class Multiplication:
    """The activation of (factor * a @ b + bias + added): a, b and y are matrices, or batches of them.

    `panels` are those of b with the factor in them; b is then not looked at, but for its shape.
    """

    a: Array
    b: Array
    y: Array
    bias: tuple[Array, ...] = ()
    added: tuple[Array, ...] = ()
    factor: float = 1.0
    finish: tuple[Word, ...] = PLAIN
    panels: tuple[Array, ...] = ()


def finish_words(attrs: Attrs) -> tuple[Word, ...]:
    """The activation of a fused product."""
    kind = (_KINDS | _SMOOTH)[attrs["activation"]]
    return kind, attrs["low"], attrs["high"], attrs["slope"]


def has_near_rows(layout: Layout) -> bool:
    """Whether elements of a row are neighbours, and nothing lies backwards."""
    *outer, inner = zip(layout.shape, layout.strides, strict=True) if layout.shape else ((1, layout.itemsize),)
    forward = all(n < 2 or (s >= 0 and s % layout.itemsize == 0) for n, s in outer)
    return forward and (inner[0] < 2 or inner[1] == layout.itemsize)


def has_near_columns(layout: Layout) -> bool:
    """The same for elements of a column."""
    order = (*range(len(layout.shape) - 2), len(layout.shape) - 1, len(layout.shape) - 2)
    return len(layout.shape) > 1 and has_near_rows(layout.transpose(order))


def rows_of(a: Shape) -> int:
    """Rows that one b is multiplied by."""
    return math.prod(a[:-1])


def packed_panels(b: Array, factor: float) -> Array:
    """b (depth, columns) as panels (panels, depth, width) that begin at a line of the cache; behind the last, zeros."""
    (depth, columns), width = b.shape, tile_shape().channels
    panels = _aligned((-(-columns // width), depth, width))
    for panel, first in zip(panels, range(0, columns, width), strict=True):
        part = b[:, first : first + width]
        np.multiply(part, np.float32(factor), panel[:, : part.shape[1]])
    return panels


def _aligned(shape: Shape) -> Array:
    buffer = np.zeros(math.prod(shape) + ALIGNMENT // 4, np.float32)
    start = -buffer.ctypes.data % ALIGNMENT // 4
    return buffer[start : start + math.prod(shape)].reshape(shape)


def multiply(case: Multiplication) -> Thunk:
    """The call. Rows of a, y and what is added must be near; so must rows or columns of b."""
    if not case.y.size:
        return nothing
    found = batched(case.a, _stand_in(case), case.y, case.added)
    table, first = _table(found), found[(0,) * len(found.lead)]
    few = len(first.a) <= FEW and not case.panels
    name = "multiply_few" if few else f"multiply_{tile_shape().name}"
    bias = case.bias[0] if case.bias else np.zeros(tile_shape().channels if not few else 1, np.float32)
    words = _words(case, first, table, bias)
    return Native((Step(address("ops.products.code", name), words),), (case, table, bias))


def _stand_in(case: Multiplication) -> Array:
    """What has the shape of b, and its address or that of its panels."""
    return as_strided(case.panels[0], case.b.shape, (0, 0), writeable=False) if case.panels else case.b


def _table(batch: Product) -> Array:
    """Addresses of a, b, y and what is added (or 0): a row for each matrix."""
    table = np.zeros((math.prod(batch.lead), 4), np.int64)
    for column, tensor in enumerate((batch.a, batch.b, batch.y, *batch.added)):
        hops = (np.arange(n) * s for n, s in zip(batch.lead, tensor.strides, strict=False))
        table[:, column] = tensor.ctypes.data + sum(np.ix_(*hops), np.zeros(batch.lead, np.int64)).reshape(-1)
    return table


def _words(case: Multiplication, product: Product, table: Array, bias: Array) -> Sequence[Word]:
    (rows, depth), columns = product.a.shape, product.y.shape[1]
    layout = Layout.of(product.b)
    by_rows = has_near_rows(layout) and (columns > 1 or not has_near_columns(layout))
    kind = at.PACKED if case.panels else at.BY_ROWS if by_rows else at.BY_COLUMNS
    chunk = max(1, min(depth, _DEEP if case.panels else at.MOST_CHUNK))
    chunk = -(-depth // -(-depth // chunk)) if depth else 1
    words: dict[int, Word] = {
        at.COUNT: len(table),
        at.TABLE: table.ctypes.data,
        at.ROWS: rows,
        at.DEPTH: depth,
        at.COLUMNS: columns,
        at.A_PITCH: product.a.strides[0],
        at.Y_PITCH: product.y.strides[0],
        at.ADDED_PITCH: product.added[0].strides[0] if product.added else 0,
        at.B_KIND: kind,
        at.B_PITCH: product.b.strides[0 if by_rows else 1],
        at.FACTOR: float(case.factor),
        at.BIAS: bias.ctypes.data,
        at.BIAS_HOP: 4 if case.bias else 0,
        at.BLOCK_TILES: max(1, _BLOCK_BYTES // (4 * chunk * tile_shape().rows)),
        at.CHUNK: chunk,
        at.COLUMNS_AT_ONCE: _SPAN if kind == at.BY_ROWS else columns,
        **{at.FINISH + i: w for i, w in enumerate(case.finish)},
        **{at.PLAIN + i: w for i, w in enumerate(PLAIN)},
    }
    return [words[i] for i in range(at.LENGTH)]
