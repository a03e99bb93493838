"""Copies between arrays of any strides as one compiled call: the dimensions are merged and put in order beforehand.

What is left of a copy is rectangles, one for each element of the outer dimensions. Rows that lie side by side on both
sides are copied as bytes; rows of one side that are columns of the other one are transposed in blocks, since either way
of reading them would touch each line of the cache many times (Lam, Rothberg, Wolf, "The Cache Performance and
Optimizations of Blocked Algorithms", 1991).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from allocator.machine_code.door import address
from ops.movement.args import BLOCK, COPY, LOOP, RUNS, SINGLE, TRANSPOSED
from ops.native.call import Native, Step
from ops.native.records import join_args, pack_args
from ops.tensor.spec import Array

Move = tuple[Array, Array]
"""The array to read, and the array to write: of one element type; the first is broadcast to the second's shape."""
_RUN = 32 << 10
"""Bytes of one row where everything is one run: so that several threads have rows to share."""
_ROWS = 64
"""Rows of a rectangle that one thread copies at a time, where they are not transposed."""


class _Dim(NamedTuple):
    """A dimension: its length, and the bytes from element to element on both sides."""

    length: int
    source: int
    target: int


class _Copy(NamedTuple):
    """Addresses of the first elements, bytes of an element, and the dimensions, outermost first."""

    source: int
    target: int
    item: int
    dims: tuple[_Dim, ...]


def _ordered(source: Array, target: Array) -> _Copy:
    """Returns a copy whose dimensions are in the order of their steps in the target, all forwards, and merged."""
    at, to = source.ctypes.data, target.ctypes.data
    dims = []
    for dim in map(_Dim, target.shape, source.strides, target.strides):
        if dim.length > 1 and dim.target < 0:
            at, to = at + (dim.length - 1) * dim.source, to + (dim.length - 1) * dim.target
            dims.append(_Dim(dim.length, -dim.source, -dim.target))
        elif dim.length > 1:
            dims.append(dim)
    dims.sort(key=lambda dim: -dim.target)
    return _Copy(at, to, target.itemsize, _merged(dims))


def _merged(dims: Iterable[_Dim]) -> tuple[_Dim, ...]:
    """Returns the dimensions; those where one steps exactly over the next one are one."""
    merged: list[_Dim] = []
    for dim in dims:
        last = merged[-1] if merged else _Dim(1, 0, 0)
        if merged and (last.source, last.target) == (dim.length * dim.source, dim.length * dim.target):
            merged[-1] = _Dim(last.length * dim.length, dim.source, dim.target)
        else:
            merged.append(dim)
    return tuple(merged)


def _rectangles(copy: _Copy) -> Iterator[Array]:
    """Yields the arguments of each kind of rectangle that a copy falls into."""
    *outer, inner = copy.dims or (_Dim(1, copy.item, copy.item),)
    if (inner.source, inner.target) == (copy.item, copy.item):
        run = inner.length * copy.item
        yield from _runs(copy, outer, run)
        return
    columns = [dim for dim in outer if dim.source == copy.item] if inner.target == copy.item and inner.source else []
    if columns:
        outer.remove(columns[0])
        yield _arguments(TRANSPOSED, copy, inner, columns[0], BLOCK, outer)
        return
    rows = outer.pop() if outer else _Dim(1, 0, 0)
    yield _arguments(SINGLE, copy, inner, rows, _ROWS, outer)


def _runs(copy: _Copy, outer: list[_Dim], run: int) -> Iterator[Array]:
    """Yields one run as rows of equal length and a last one."""
    if outer or run <= _RUN:
        rows = outer.pop() if outer else _Dim(1, 0, 0)
        yield _arguments(RUNS, copy, _Dim(run, 1, 1), rows, _ROWS, outer)
        return
    whole = run - run % _RUN
    yield _arguments(RUNS, copy, _Dim(_RUN, 1, 1), _Dim(run // _RUN, _RUN, _RUN), 1, ())
    if run > whole:
        rest = copy._replace(source=copy.source + whole, target=copy.target + whole)
        yield _arguments(RUNS, rest, _Dim(run - whole, 1, 1), _Dim(1, 0, 0), 1, ())


def _arguments(  # noqa: PLR0917 - the parts of one record
    kind: int, copy: _Copy, inner: _Dim, rows: _Dim, block: int, outer: Sequence[_Dim]
) -> Array:
    head = pack_args(
        COPY,
        size=(COPY.itemsize + len(outer) * LOOP.itemsize) // 8,
        kind=kind,
        item=copy.item,
        source=copy.source,
        target=copy.target,
        length=inner.length,
        source_step=inner.source,
        target_step=inner.target,
        rows=rows.length,
        source_row=rows.source,
        target_row=rows.target,
        block=block,
        loops=len(outer),
    )
    loops = (pack_args(LOOP, length=d.length, source_step=d.source, target_step=d.target) for d in outer)
    return join_args(head, *loops)


def move_all(moves: Iterable[Move]) -> Native:
    """Returns the thunk that copies everything, in any order: no target may overlap another one, or a source."""
    arrays: list[Array] = []
    copies: list[Array] = []
    for source, target in moves:
        if target.size:
            wide = np.broadcast_to(source, target.shape)
            arrays += [source, target]
            copies += _rectangles(_ordered(wide, target))
    args = join_args([len(copies)], *copies)
    return Native((Step(address("ops.movement.copies_code", "move"), args),) if copies else (), tuple(arrays))
