"""Copies between arrays of any strides as one compiled call: the dimensions are merged and put in order beforehand.

What is left of a copy is rectangles, one for each element of the outer dimensions. Rows that lie side by side on both
sides are copied as bytes; rows of one side that are columns of the other one are turned in blocks, since either way of
reading them would touch each line of the cache many times (Lam, Rothberg, Wolf, "The Cache Performance and
Optimizations of Blocked Algorithms", 1991).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ops.movement.kinds import BLOCK, RUNS, SINGLE, TURNED
from ops.native.call import Native, Step
from ops.native.door import address
from ops.tensor.spec import Array

Move = tuple[Array, Array]
"""What is read, and where it is written: arrays of one element type; the former is broadcast to the latter's shape."""
_RUN = 32 << 10
"""Bytes of one row where everything is one run: so that several threads have rows to share."""
_ROWS = 64
"""Rows of which one thread copies a rectangle, where they are not turned."""


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
    """Dimensions by their steps in the target, which all go forwards; those that follow each other are one."""
    at, to = source.ctypes.data, target.ctypes.data
    found = []
    for dim in map(_Dim, target.shape, source.strides, target.strides):
        if dim.length > 1 and dim.target < 0:
            at, to = at + (dim.length - 1) * dim.source, to + (dim.length - 1) * dim.target
            found.append(_Dim(dim.length, -dim.source, -dim.target))
        elif dim.length > 1:
            found.append(dim)
    found.sort(key=lambda dim: -dim.target)
    return _Copy(at, to, target.itemsize, _merged(found))


def _merged(dims: Iterable[_Dim]) -> tuple[_Dim, ...]:
    kept: list[_Dim] = []
    for dim in dims:
        last = kept[-1] if kept else _Dim(1, 0, 0)
        if kept and (last.source, last.target) == (dim.length * dim.source, dim.length * dim.target):
            kept[-1] = _Dim(last.length * dim.length, dim.source, dim.target)
        else:
            kept.append(dim)
    return tuple(kept)


def _rectangles(copy: _Copy) -> Iterator[tuple[int, ...]]:
    """The words of a copy, one row for each kind of rectangle that it falls into."""
    *outer, inner = copy.dims or (_Dim(1, copy.item, copy.item),)
    if (inner.source, inner.target) == (copy.item, copy.item):
        run = inner.length * copy.item
        yield from _runs(copy, outer, run)
        return
    turned = [dim for dim in outer if dim.source == copy.item] if inner.target == copy.item and inner.source else []
    if turned:
        outer.remove(turned[0])
        yield _words(TURNED, copy, inner, turned[0], BLOCK, outer)
        return
    rows = outer.pop() if outer else _Dim(1, 0, 0)
    yield _words(SINGLE, copy, inner, rows, _ROWS, outer)


def _runs(copy: _Copy, outer: list[_Dim], run: int) -> Iterator[tuple[int, ...]]:
    """One run falls into rows of equal length and a last one."""
    if outer or run <= _RUN:
        rows = outer.pop() if outer else _Dim(1, 0, 0)
        yield _words(RUNS, copy, _Dim(run, 1, 1), rows, _ROWS, outer)
        return
    whole = run - run % _RUN
    yield _words(RUNS, copy, _Dim(_RUN, 1, 1), _Dim(run // _RUN, _RUN, _RUN), 1, ())
    if run > whole:
        rest = copy._replace(source=copy.source + whole, target=copy.target + whole)
        yield _words(RUNS, rest, _Dim(run - whole, 1, 1), _Dim(1, 0, 0), 1, ())


def _words(  # noqa: PLR0917 - the parts of one row of words
    kind: int, copy: _Copy, inner: _Dim, rows: _Dim, block: int, outer: Sequence[_Dim]
) -> tuple[int, ...]:
    return (
        kind,
        copy.item,
        copy.source,
        copy.target,
        *inner,
        *rows,
        block,
        len(outer),
        *(n for dim in outer for n in dim),
    )


def move_all(moves: Iterable[Move]) -> Native:
    """The thunk that copies everything, in any order: no target may overlap another one, or a source."""
    kept: list[Array] = []
    rows: list[tuple[int, ...]] = []
    for source, target in moves:
        if target.size:
            wide = np.broadcast_to(source, target.shape)
            kept += [source, target]
            rows += _rectangles(_ordered(wide, target))
    words = [len(rows), *(n for row in rows for n in (len(row) + 1, *row))]
    return Native((Step(address("ops.movement.copies_code", "move"), tuple(words)),) if rows else (), tuple(kept))
