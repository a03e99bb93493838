"""Runs a plan whose inputs in arrays of the caller may come in stripes of rows, while it runs.

Cascades read such an input row after row. The rows that a call reads are copied in front of it into a buffer outside of
the arena, which is as large as the rows of one call. Rows that later calls need, too, are kept beside it.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from threading import get_ident
from typing import Any

import numpy as np
from attrs import frozen

from engine.executor.arenas import Arena, GivenArena
from engine.executor.feeds import check_apart
from engine.executor.programs import join_calls
from engine.executor.rows import RowSource, row_source, with_rows
from engine.executor.static import Outputs, StaticExecutor
from engine.lower.calls import Call, Storage
from engine.planning.placed import PlacedPlan
from engine.system.arrays import view_array
from engine.system.threads import AS_THEY_ARE
from engine.text.errors import ArenaInUseError, FeedError
from engine.text.faults import DOCUMENTED
from ops.schema.schema import Thunk
from ops.tensor.layout import Layout, dense_strides
from ops.tensor.spec import Array, TensorSpec

_NOBODY = 0
"""No thread."""


@frozen
class Rows:
    """What a view shows of a tensor: elements [first, last) of one axis, and all of the others.

    `axes` has the axis of the tensor that each axis of the view goes along; -1 for one of length 1.
    """

    axis: int
    first: int
    last: int
    axes: tuple[int, ...]

    def view(self, rows: Array, layout: Layout) -> Array:
        """Returns the view, which has that layout in the tensor, of a dense array that has no other rows."""
        strides = (rows.strides[axis] if axis >= 0 else layout.itemsize for axis in self.axes)
        return view_array(rows, Layout(0, layout.shape, tuple(strides), layout.itemsize), rows.dtype)


def rows_of(spec: TensorSpec, layout: Layout) -> Rows | None:
    """Returns the rows that a view of a dense tensor shows; None where it shows all of it, or anything but rows."""
    strides = dense_strides(spec.shape, spec.dtype.itemsize)
    along = {s: axis for axis, (n, s) in enumerate(zip(spec.shape, strides, strict=True)) if n > 1}
    axes = tuple(along.get(s, -1) if n > 1 else -1 for n, s in zip(layout.shape, layout.strides, strict=True))
    lengths = {axis: n for axis, n in zip(axes, layout.shape, strict=True) if axis >= 0}
    short = [axis for axis in along.values() if lengths.get(axis, 1) < spec.shape[axis]]
    if len(short) != 1 or math.prod(lengths.values()) != math.prod(layout.shape):
        return None
    first, beside = divmod(layout.offset, strides[short[0]])
    return None if beside else Rows(short[0], first, first + lengths.get(short[0], 1), axes)


@frozen(eq=False)
class _Striped:
    """An input that comes in stripes: `rows` are those that calls read, by value, in order.

    `buffer` holds those that one call reads. It has its rows in `dense`, by value, and `shown` is what the value shows.
    """

    owner: int
    rows: Mapping[int, Rows]
    buffer: Array
    dense: Mapping[int, Array]
    shown: Mapping[int, Array]

    @classmethod
    def of(cls, owner: int, spec: TensorSpec, rows: Mapping[int, Rows], layouts: Mapping[int, Layout]) -> "_Striped":
        """Returns an input of that spec, of which calls read these rows in views of these layouts."""
        specs = {value: with_rows(spec, each.axis, each.last - each.first) for value, each in rows.items()}
        buffer = np.empty(max(each.nbytes for each in specs.values()), np.uint8)
        dense = {v: view_array(buffer, Layout.dense(each), each.dtype) for v, each in specs.items()}
        return cls(owner, rows, buffer, dense, {v: rows[v].view(dense[v], layouts[v]) for v in rows})

    @property
    def axis(self) -> int:
        """The axis of the input that has the rows."""
        return next(iter(self.rows.values())).axis


class StripedInputExecutor(StaticExecutor):
    """Runs a plan in one arena as StaticExecutor does. Inputs in arrays of the caller may be iterators over stripes."""

    def __init__(self, plan: PlacedPlan, arena: Arena | GivenArena, threads: int = 1, blas: int = AS_THEY_ARE) -> None:
        self._striped: dict[str, _Striped] = {}
        self._shown: dict[int, Array] = {}
        """What values show of inputs that came in stripes when they were bound last."""
        self._parts: dict[tuple[int, int], tuple[list[Call], list[Thunk]]] = {}
        """The joined calls of a range, by first and last."""
        self._runner = _NOBODY
        """The thread that runs in stripes."""
        super().__init__(plan, arena, threads, blas)

    def array(self, value: int) -> Array:
        """Returns the array of a value; of an input that comes in stripes, that of the rows which a call reads."""
        return self._shown[value] if value in self._shown else super().array(value)

    def run(self, feeds: Mapping[str, Any], out: Mapping[str, Array], copy: bool) -> Outputs:
        """Runs once. Raises FeedError, also where the stripes of an input are no rows of it, too few, or too many.

        Raises ArenaInUseError where an iterator runs the same plan.
        """
        if self._runner == get_ident():
            name = self.plan.lowered.graph.name
            raise ArenaInUseError(f"the stripes of a run of {name!r} come from another run of it, in the same arena")
        coming = {n: v for n, v in feeds.items() if self._may_come(n, v)} if isinstance(feeds, Mapping) else {}
        if not coming:
            return super().run(feeds, out, copy)
        sources = {name: self._source(name, stripes) for name, stripes in coming.items()}
        whole = {name: value for name, value in feeds.items() if name not in coming}
        return self._run(whole, out, copy, partial(self._execute_alone, sources), coming)

    def _execute_alone(self, sources: Mapping[str, RowSource]) -> None:
        self._runner = get_ident()
        try:
            self._execute_in_stripes(sources)
        finally:
            self._runner = _NOBODY

    def _may_come(self, name: str, value: object) -> bool:
        is_ours = name in self.plan.lowered.caller_buffers and name in self.plan.lowered.inputs
        return is_ours and isinstance(value, Iterator) and name not in self.plan.options.donated

    def _source(self, name: str, stripes: object) -> RowSource:
        lowered = self.plan.lowered
        owner = lowered.inputs[name]
        spec = lowered.values[owner].spec
        if name not in self._striped:
            rows = self._read_rows(name, owner)
            self._striped[name] = _Striped.of(owner, spec, rows, {v: self.plan.places[v].layout for v in rows})
        return row_source(name, stripes, spec, self._striped[name].axis)

    def _read_rows(self, name: str, owner: int) -> dict[int, Rows]:
        """Returns the rows of an input that calls read, by value, in order. Raises FeedError where some read others."""
        lowered = self.plan.lowered
        read: dict[int, Rows] = {}
        for i in self._users[owner]:
            for value in (v for v in self.calls[i].inputs if self._is_of(v, owner)):
                rows = rows_of(lowered.values[owner].spec, self.plan.places[value].layout)
                before = next(reversed(read.values()), rows)
                if rows is None or before is None or rows.axis != before.axis or rows.first < before.first:
                    raise _not_in_rows(name, self.calls[i].name)
                read[value] = rows
        fetched = [output for output, v in lowered.outputs.items() if self._is_of(v, owner)]
        if fetched or not read:
            raise _not_in_rows(name, fetched[0] if fetched else "")
        return read

    def _is_of(self, value: int, owner: int) -> bool:
        return self._storage(value) is Storage.CALLER and self.plan.places[value].owner == owner

    def _execute_in_stripes(self, sources: Mapping[str, RowSource]) -> None:
        """Calls the kernels; in front of each that reads rows, copies these into the buffer that it is bound to."""
        places = {v: (name, self._striped[name]) for name in sources for v in self._striped[name].rows}
        readers = [i for i, call in enumerate(self.calls) if not places.keys().isdisjoint(call.inputs)]
        for name in sources:
            self._bind(self._striped[name].owner, self._striped[name].buffer)
        self._renew()
        self._in_turn(*self._part(0, readers[0]))
        for first, last in pairwise((*readers, len(self.calls))):
            for value in (v for v in self.calls[first].inputs if v in places):
                name, striped = places[value]
                rows = striped.rows[value]
                with _coming(name):
                    taken = sources[name].take(rows.first, rows.last)
                np.copyto(striped.dense[value], taken)
            self._check_memory(sources)
            self._in_turn(*self._part(first, last))
        for name, source in sources.items():
            with _coming(name):
                source.end()

    def _bind(self, value: int, array: Array) -> None:
        for striped in self._striped.values():
            if striped.owner == value:
                others = {v: shown for v, shown in self._shown.items() if v not in striped.rows}
                self._shown = {**others, **(striped.shown if array is striped.buffer else {})}
        super()._bind(value, array)

    def _renew(self) -> None:
        if self._stale:
            self._parts.clear()
        super()._renew()

    def _part(self, first: int, last: int) -> tuple[list[Call], list[Thunk]]:
        if (first, last) not in self._parts:
            self._parts[first, last] = join_calls(self.calls[first:last], self.thunks[first:last], self._team)
        return self._parts[first, last]

    def _check_memory(self, sources: Mapping[str, RowSource]) -> None:
        """Raises FeedError for rows that lie in the arena, or in an output that the run writes."""
        outputs, mine = self.plan.lowered.outputs, self.plan.lowered.caller_buffers
        bound = {name: self._caller[value] for name, value in outputs.items() if name in mine}
        check_apart(bound, {name: source.memory for name, source in sources.items()}, {}, self.arena.rows)


@contextmanager
def _coming(name: str) -> Iterator[None]:
    """Raises FeedError where the iterator of an input raises: that is no fault of this program."""
    try:
        yield
    except DOCUMENTED:
        raise
    except Exception as error:
        raise FeedError(f"the stripes of input {name!r} raise {type(error).__name__}: {error}") from error


def _not_in_rows(name: str, reader: str) -> FeedError:
    what = f"{reader!r} does not read it row after row" if reader else "nothing reads it"
    return FeedError(f"input {name!r} comes in stripes, but {what}; give an array, or let cascades read it")
