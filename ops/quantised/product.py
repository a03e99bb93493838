"""Products of int8 and uint8 matrices, exact in int32: shapes, tiles, and the steps that compute one tile."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
from attrs import frozen

from ops.common.boxes import pieces
from ops.products.integer_gemm import EXACT_DEPTH, accumulate, centred
from ops.quantised.params import BYTES, SINGLE
from ops.schema.schema import Thunk
from ops.schema.workspace import prefix
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import Array, Shape, TensorSpec, broadcast_shapes

_ROWS, _COLUMNS = 256, 512
"""Most rows and columns of one tile; its five temporaries take at most 2.3 MiB. Trades workspace for fewer calls."""
INT32 = np.dtype("int32")
Index = tuple[int | slice, ...]
Pair = tuple[Array, Array]


@frozen(eq=False)
class Product:
    """(..., rows, depth) @ (..., depth, columns); a vector is a single row or column."""

    batch: Shape
    rows: int
    depth: int
    columns: int
    y: Shape

    @classmethod
    def of(cls, a: TensorSpec, b: TensorSpec) -> "Product":
        """Returns the product. Raises DtypeError or ShapeError where the two do not fit."""
        if not {a.dtype, b.dtype} <= BYTES:
            raise DtypeError(f"takes int8 and uint8, not {a.dtype} and {b.dtype}")
        if not a.ndim or not b.ndim:
            raise ShapeError(f"takes vectors and matrices, not {a} and {b}")
        left, right = (1, *a.shape)[-max(a.ndim, 2) :], b.shape if b.ndim > 1 else (*b.shape, 1)
        if left[-1] != right[-2]:
            raise ShapeError(f"{left[-1]} columns of {a.shape} against {right[-2]} rows of {b.shape}")
        batch = broadcast_shapes(left[:-2], right[:-2])
        y = batch + left[-2:-1] * (a.ndim > 1) + right[-1:] * (b.ndim > 1)
        return cls(batch, left[-2], left[-1], right[-1], y)

    def by_row(self, parameter: TensorSpec) -> TensorSpec:
        """Returns a parameter of a, or of the output: one number, a vector of rows, or (..., rows, 1)."""
        return self._fitting(parameter, (self.rows, 1))

    def by_column(self, parameter: TensorSpec) -> TensorSpec:
        """Returns a parameter of b: one number, a vector of columns, or (..., 1, columns)."""
        return self._fitting(parameter, (1, self.columns))

    def _fitting(self, parameter: TensorSpec, matrix: Shape) -> TensorSpec:
        shape = (1, 1) if parameter.size == 1 else matrix if parameter.ndim == 1 else parameter.shape
        whole = (*self.batch, *matrix)
        if parameter.ndim == 1 and parameter.size not in (1, math.prod(matrix)):
            raise ShapeError(f"a parameter has {parameter.size} numbers; it must have 1 or {math.prod(matrix)}")
        if broadcast_shapes(shape, whole) != whole:
            raise ShapeError(f"a parameter of shape {parameter.shape} does not broadcast to {whole}")
        return TensorSpec(shape, SINGLE)

    @property
    def tile(self) -> tuple[int, int, int]:
        """Returns the most rows, depth and columns of one tile."""
        return min(self.rows, _ROWS), min(self.depth, EXACT_DEPTH), min(self.columns, _COLUMNS)

    def tiles(self) -> Iterator[Index]:
        """Yields every tile of the output: its index in the batch, rows, columns."""
        across = [slice(*p) for p in pieces(self.columns, _COLUMNS)]
        down = [slice(*p) for p in pieces(self.rows, _ROWS)]
        for at in np.ndindex(self.batch):
            yield from ((*at, rows, columns) for columns, rows in product(across, down))


def scratch_specs(case: Product, *, with_sums: bool) -> tuple[TensorSpec, ...]:
    """Returns the specs of the scratch arrays of a tile.

    They are factors and products in float32, addends and (with_sums) sums in int32.
    """
    rows, depth, columns = case.tile
    sums, longer = rows * columns * with_sums, rows * columns * (case.depth > EXACT_DEPTH)
    singles = (TensorSpec((n,), SINGLE) for n in (rows * depth, depth * columns, rows * columns))
    return *singles, TensorSpec((longer,), INT32), TensorSpec((sums,), INT32)


@frozen(eq=False)
class _Factor:
    """One factor as (batch..., rows, columns), and its zero points in float32, broadcast to it."""

    values: Array
    zeros: Array
    buffer: Array

    @classmethod
    def of(cls, values: Array, zeros: Array, buffer: Array, shape: Shape) -> "_Factor":
        return cls(np.broadcast_to(values, shape), np.broadcast_to(zeros, shape), buffer)

    def load(self, index: Index) -> tuple[Array, Iterator[Thunk]]:
        """Returns a rectangle minus its zero points, and the steps that write it."""
        source = self.values[index]
        target = prefix(self.buffer, source.shape)
        return target, centred(source, self.zeros[index], target)


@frozen(eq=False)
class Tiles:
    """The two factors of a product, and the temporaries of one tile."""

    case: Product
    a: _Factor
    b: _Factor
    product: Array
    addend: Array

    @classmethod
    def of(cls, case: Product, factors: Pair, zeros: Pair, scratch: Sequence[Array]) -> "Tiles":
        """Returns the tiles for zero points in float32 and arrays of `scratch_specs`."""
        a, b = factors
        left, right = a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]
        return cls(
            case,
            _Factor.of(left, zeros[0], scratch[0], (*case.batch, case.rows, case.depth)),
            _Factor.of(right, zeros[1], scratch[1], (*case.batch, case.depth, case.columns)),
            scratch[2],
            scratch[3],
        )

    def sums(self, index: Index, y: Array) -> Iterator[Thunk]:
        """Yields the steps to y, a tile of the product in int32."""
        *at, rows, columns = index
        product = prefix(self.product, y.shape)
        addend = prefix(self.addend, y.shape) if self.addend.size else self.addend
        for start, stop in pieces(self.case.depth, EXACT_DEPTH):
            left, steps = self.a.load((*at, rows, slice(start, stop)))
            yield from steps
            right, steps = self.b.load((*at, slice(start, stop), columns))
            yield from steps
            yield from accumulate(left, right, y, product, addend, fresh=start == 0)
        if self.case.depth == 0:
            yield partial(y.fill, 0)
