"""Compiled kernels of gather and scatter: loops over rows of bytes, one side of which lies where indices say.

All six operators are one function. A check of all indices goes before it, and stops the program where one is outside.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from attrs import frozen

from ops.common.indices import IndexRangeError
from ops.index.gather_scatter_args import ADD_DOUBLES, ADD_FLOATS, ADD_INTS, GATHER, SCATTER
from ops.movement.copies import move_all
from ops.native.call import CHECK, Native, Step, Word, as_words
from ops.native.door import address, foreign_address
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, unless
from ops.tensor.errors import OpError
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, normalize_axis

_CODE = "ops.index.gather_scatter_code"
_ADD = {"float32": ADD_FLOATS, "float64": ADD_DOUBLES}


class _Loop(NamedTuple):
    """A dimension: its length, and the bytes from turn to turn in what is named, in the indices, in what is not."""

    length: int
    data: int
    pick: int
    flat: int


class _Pick(NamedTuple):
    """One index of a tuple: the length and the bytes of the dimension it goes into, where it lies in the tuple."""

    dim: int
    step: int
    offset: int


@frozen(eq=False)
class Walk:
    """All rows: the tensor that indices name places of, the indices, the tensor that lies as they do."""

    data: Array
    indices: Array
    flat: Array
    loops: tuple[_Loop, ...]
    picks: tuple[_Pick, ...]

    def native(self, kind: int, copied: Native) -> Native:
        """The check, then `copied`, then the rows."""
        steps = [*_check(self.indices, self.loops, self.picks), *copied.steps]
        if self.flat.size:
            steps.append(Step(address(_CODE, "pick"), self._words(kind)))
        return Native(tuple(steps), (self.data, self.indices, self.flat, copied))

    def _words(self, kind: int) -> tuple[Word, ...]:
        item, loops = self.flat.itemsize, _merged(self.loops)
        run = item
        if loops and (loops[-1].data, loops[-1].pick, loops[-1].flat) == (item, 0, item):
            run *= loops.pop().length
        inner = loops.pop() if loops else _Loop(1, 0, 0, 0)
        places = (a.ctypes.data for a in (self.data, self.indices, self.flat))
        head = (kind, run, item, *places, self.indices.itemsize, len(self.picks), len(loops), *inner)
        return (*head, *(n for loop in loops for n in loop), *(n for pick in self.picks for n in pick))


def _merged(loops: Iterable[_Loop]) -> list[_Loop]:
    """Loops of one turn go; neighbours are joined where everything steps over the inner one."""
    kept: list[_Loop] = []
    for loop in loops:
        if loop.length == 1:
            continue
        if kept and kept[-1][1:] == tuple(loop.length * step for step in loop[1:]):
            kept[-1] = loop._replace(length=kept[-1].length * loop.length)
        else:
            kept.append(loop)
    return kept


def _check(indices: Array, loops: Sequence[_Loop], picks: Sequence[_Pick]) -> tuple[Step, ...]:
    """Nothing where there are no indices."""
    if not indices.size:
        return ()
    named = _merged(loop._replace(data=0, flat=0) for loop in loops if loop.pick and loop.length)
    inner = named.pop() if named else _Loop(1, 0, 0, 0)
    found = np.zeros(2, np.int64)
    outer = [n for loop in named for n in (loop.length, loop.pick)]
    head = (found.ctypes.data, indices.ctypes.data, indices.itemsize, len(picks), len(named), inner.length, inner.pick)
    words = as_words((*head, *outer, *(n for pick in picks for n in (pick.dim, pick.offset))))
    explain = partial(_outside, found, words)
    return (Step(foreign_address(_CODE, "check"), (words.ctypes.data, 0, 0, 0), CHECK, explain),)


def _outside(found: Array, _: Array, __: int) -> OpError:
    """The error of a check. Holds the words that the check reads."""
    index, dim = found.tolist()
    return IndexRangeError(f"index {index} is outside [-{dim}, {dim})")


def _loops(lengths: Sequence[int], *strides: Sequence[int]) -> list[_Loop]:
    """Of the data, the indices and what is flat; () where nothing goes on."""
    full = [s or (0,) * len(lengths) for s in strides]
    return [_Loop(*loop) for loop in zip(lengths, *full, strict=True)]


def along(data: Array, indices: Array, flat: Array, axis: int) -> Walk:
    """Slices of an axis: `flat` has the dimensions of the indices in its place."""
    last = axis + indices.ndim
    loops = [
        *_loops(flat.shape[:axis], data.strides[:axis], (), flat.strides[:axis]),
        *_loops(indices.shape, (), indices.strides, flat.strides[axis:last]),
        *_loops(flat.shape[last:], data.strides[axis + 1 :], (), flat.strides[last:]),
    ]
    return Walk(data, indices, flat, tuple(loops), (_Pick(data.shape[axis], data.strides[axis], 0),))


def by_element(data: Array, indices: Array, flat: Array, axis: int) -> Walk:
    """Elements, of which the index replaces one coordinate."""
    steps = tuple(0 if i == axis else s for i, s in enumerate(data.strides))
    loops = _loops(flat.shape, steps, indices.strides, flat.strides)
    return Walk(data, indices, flat, tuple(loops), (_Pick(data.shape[axis], data.strides[axis], 0),))


def by_tuple(data: Array, indices: Array, flat: Array, batch: int) -> Walk:
    """Slices that tuples of indices name, behind the first `batch` dimensions."""
    depth, lead = indices.shape[-1], indices.ndim - 1
    named = batch + depth
    loops = [
        *_loops(flat.shape[:batch], data.strides[:batch], indices.strides[:batch], flat.strides[:batch]),
        *_loops(flat.shape[batch:lead], (), indices.strides[batch:lead], flat.strides[batch:lead]),
        *_loops(flat.shape[lead:], data.strides[named:], (), flat.strides[lead:]),
    ]
    picks = (_Pick(data.shape[batch + k], data.strides[batch + k], k * indices.strides[-1]) for k in range(depth))
    return Walk(data, indices, flat, tuple(loops), tuple(picks))


def _gather(call: Binding) -> Thunk:
    x, indices = call.inputs
    return along(x, indices, call.y, normalize_axis(call.attrs["axis"], x.ndim)).native(GATHER, Native(()))


def _gather_elements(call: Binding) -> Thunk:
    x, indices = call.inputs
    return by_element(x, indices, call.y, normalize_axis(call.attrs["axis"], x.ndim)).native(GATHER, Native(()))


def _gather_nd(call: Binding) -> Thunk:
    return by_tuple(call.x, call.inputs[1], call.y, call.attrs["batch_dims"]).native(GATHER, Native(()))


def _kind(signature: Signature) -> int:
    """-1 where numpy combines."""
    reduction, dtype = signature.attrs["reduction"], signature.x.dtype
    if reduction == "none":
        return SCATTER
    return _ADD.get(dtype.name, ADD_INTS if dtype.kind in "iu" else -1) if reduction == "add" else -1


def _combines(signature: Signature) -> bool:
    return _kind(signature) >= 0 and _is_plain(signature)


_not_combines = unless(_combines, "a reduction that is not compiled for this type")


def _is_plain(signature: Signature) -> bool:
    """Elements of 1, 2, 4 or 8 bytes."""
    return signature.x.dtype.itemsize in (1, 2, 4, 8)


_not_plain = unless(_is_plain, "elements that do not have 1, 2, 4 or 8 bytes")


def _copied(call: Binding) -> Native:
    """Data in y; nothing where they are the same bytes."""
    x, y = call.x, call.y
    return Native(()) if Layout.of(x).is_dense and x.ctypes.data == y.ctypes.data else move_all([(x, y)])


def _scatter_elements(call: Binding) -> Thunk:
    _, indices, updates = call.inputs
    axis = normalize_axis(call.attrs["axis"], call.y.ndim)
    return by_element(call.y, indices, updates, axis).native(_kind(call.signature), _copied(call))


def _scatter_nd(call: Binding) -> Thunk:
    _, indices, updates = call.inputs
    return by_tuple(call.y, indices, updates, 0).native(_kind(call.signature), _copied(call))


GATHER_NATIVE = Kernel("native", _gather, unsupported=_not_plain, backend=NUMBA)
ELEMENTS_NATIVE = Kernel("native", _gather_elements, unsupported=_not_plain, backend=NUMBA)
ND_NATIVE = Kernel("native", _gather_nd, unsupported=_not_plain, backend=NUMBA)
SCATTER_ELEMENTS_NATIVE = Kernel("native", _scatter_elements, unsupported=_not_combines, backend=NUMBA)
SCATTER_ND_NATIVE = Kernel("native", _scatter_nd, unsupported=_not_combines, backend=NUMBA)
