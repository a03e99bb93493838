"""Compiled kernels of gather and scatter: loops over rows of bytes, one side of which lies where indices say.

All six operators are one function. A check of all indices goes before it, and stops the program where one is outside.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from attrs import frozen

from allocator.machine_code.door import address
from ops.common.indices import IndexRangeError
from ops.index.args import ADD_DOUBLES, ADD_FLOATS, ADD_INTS, GATHER, INDICES, LOOP, PICK, REFUSED, ROWS, SCATTER
from ops.movement.copies import move_all
from ops.native.call import Native, Step
from ops.native.records import join_args, pack_args
from ops.native.runners import CHECK
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, unless
from ops.tensor.errors import OpError
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, normalize_axis

_CODE = "ops.index.gather_scatter_code"
_ADD = {"float32": ADD_FLOATS, "float64": ADD_DOUBLES}


class _Loop(NamedTuple):
    """The fields of LOOP."""

    length: int
    data_step: int
    index_step: int
    flat_step: int


class _Pick(NamedTuple):
    """The fields of PICK."""

    dim: int
    step: int
    offset: int


_ONE_TURN = _Loop(1, 0, 0, 0)


@frozen(eq=False)
class IndexedRows:
    """Rows of three tensors: the one whose places indices name, the indices, and the one that lies as they do."""

    data: Array
    indices: Array
    flat: Array
    loops: tuple[_Loop, ...]
    picks: tuple[_Pick, ...]

    def native(self, kind: int, before: Native) -> Native:
        """Returns the check of the indices, then the steps of `before`, then the copy of the rows."""
        check = self._check()
        steps = [*check.steps, *before.steps]
        if self.flat.size:
            steps.append(Step(address(_CODE, "copy_rows"), self._args(kind)))
        return Native(tuple(steps), (self.data, self.indices, self.flat, check, before))

    def _args(self, kind: int) -> Array:
        item, loops = self.flat.itemsize, _merged(self.loops)
        run = item
        if loops and loops[-1][1:] == (item, 0, item):
            run *= loops.pop().length
        inner = loops.pop() if loops else _ONE_TURN
        head = pack_args(
            ROWS,
            kind=kind,
            run_bytes=run,
            item_bytes=item,
            data=self.data.ctypes.data,
            indices=self.indices.ctypes.data,
            flat=self.flat.ctypes.data,
            index_bytes=self.indices.itemsize,
            picks=len(self.picks),
            loops=len(loops),
            **inner._asdict(),
        )
        return self._followed(head, loops)

    def _followed(self, head: Array, loops: Iterable[_Loop]) -> Array:
        """Returns a record with the outer loops and the picks behind it."""
        outer = (pack_args(LOOP, **loop._asdict()) for loop in loops)
        return join_args(head, *outer, *(pack_args(PICK, **pick._asdict()) for pick in self.picks))

    def _check(self) -> Native:
        """Returns the step that refuses indices, none where there are no indices."""
        if not self.indices.size:
            return Native(())
        over_indices = (loop for loop in self.loops if loop.index_step and loop.length)
        loops = _merged(loop._replace(data_step=0, flat_step=0) for loop in over_indices)
        inner = loops.pop() if loops else _ONE_TURN
        refused = np.zeros(1, REFUSED)
        head = pack_args(
            INDICES,
            refused=refused.ctypes.data,
            indices=self.indices.ctypes.data,
            index_bytes=self.indices.itemsize,
            picks=len(self.picks),
            loops=len(loops),
            length=inner.length,
            index_step=inner.index_step,
        )
        args = self._followed(head, loops)
        explain = partial(_index_error, refused)
        step = Step(address(_CODE, "check"), (args.ctypes.data, 0, 0, 0), CHECK, explain)
        return Native((step,), (args, refused))


def _index_error(refused: Array, _: int) -> OpError:
    """Returns the error of a check."""
    ((index, dim),) = refused.tolist()
    return IndexRangeError(f"index {index} is outside [-{dim}, {dim})")


def _merged(loops: Iterable[_Loop]) -> list[_Loop]:
    """Returns the loops without those of one turn; neighbours are joined where everything steps over the inner one."""
    merged: list[_Loop] = []
    for loop in loops:
        if loop.length == 1:
            continue
        if merged and merged[-1][1:] == tuple(loop.length * step for step in loop[1:]):
            merged[-1] = loop._replace(length=merged[-1].length * loop.length)
        else:
            merged.append(loop)
    return merged


def _loops(lengths: Sequence[int], *strides: Sequence[int]) -> list[_Loop]:
    """Returns loops with the strides of the data, the indices and `flat`; () where nothing moves on."""
    full = [s or (0,) * len(lengths) for s in strides]
    return [_Loop(*loop) for loop in zip(lengths, *full, strict=True)]


def along(data: Array, indices: Array, flat: Array, axis: int) -> IndexedRows:
    """Returns slices of an axis: `flat` has the dimensions of the indices in its place."""
    last = axis + indices.ndim
    loops = [
        *_loops(flat.shape[:axis], data.strides[:axis], (), flat.strides[:axis]),
        *_loops(indices.shape, (), indices.strides, flat.strides[axis:last]),
        *_loops(flat.shape[last:], data.strides[axis + 1 :], (), flat.strides[last:]),
    ]
    return IndexedRows(data, indices, flat, tuple(loops), (_Pick(data.shape[axis], data.strides[axis], 0),))


def by_element(data: Array, indices: Array, flat: Array, axis: int) -> IndexedRows:
    """Returns elements, of which the index replaces one coordinate."""
    steps = tuple(0 if i == axis else s for i, s in enumerate(data.strides))
    loops = _loops(flat.shape, steps, indices.strides, flat.strides)
    return IndexedRows(data, indices, flat, tuple(loops), (_Pick(data.shape[axis], data.strides[axis], 0),))


def by_tuple(data: Array, indices: Array, flat: Array, batch: int) -> IndexedRows:
    """Returns slices that tuples of indices name, behind the first `batch` dimensions."""
    depth, lead = indices.shape[-1], indices.ndim - 1
    named = batch + depth
    loops = [
        *_loops(flat.shape[:batch], data.strides[:batch], indices.strides[:batch], flat.strides[:batch]),
        *_loops(flat.shape[batch:lead], (), indices.strides[batch:lead], flat.strides[batch:lead]),
        *_loops(flat.shape[lead:], data.strides[named:], (), flat.strides[lead:]),
    ]
    picks = (_Pick(data.shape[batch + k], data.strides[batch + k], k * indices.strides[-1]) for k in range(depth))
    return IndexedRows(data, indices, flat, tuple(loops), tuple(picks))


def _gather(call: Binding) -> Thunk:
    x, indices = call.inputs
    return along(x, indices, call.y, normalize_axis(call.attrs["axis"], x.ndim)).native(GATHER, Native(()))


def _gather_elements(call: Binding) -> Thunk:
    x, indices = call.inputs
    return by_element(x, indices, call.y, normalize_axis(call.attrs["axis"], x.ndim)).native(GATHER, Native(()))


def _gather_nd(call: Binding) -> Thunk:
    return by_tuple(call.x, call.inputs[1], call.y, call.attrs["batch_dims"]).native(GATHER, Native(()))


def _kind(signature: Signature) -> int:
    """Returns what is done with rows; -1 where numpy combines them."""
    reduction, dtype = signature.attrs["reduction"], signature.x.dtype
    if reduction == "none":
        return SCATTER
    return _ADD.get(dtype.name, ADD_INTS if dtype.kind in "iu" else -1) if reduction == "add" else -1


def _combines(signature: Signature) -> bool:
    return _kind(signature) >= 0 and _is_plain(signature)


_not_combines = unless(_combines, "a reduction that is not compiled for this type")


def _is_plain(signature: Signature) -> bool:
    """Returns whether elements have 1, 2, 4 or 8 bytes."""
    return signature.x.dtype.itemsize in (1, 2, 4, 8)


_not_plain = unless(_is_plain, "elements that do not have 1, 2, 4 or 8 bytes")


def _copied(call: Binding) -> Native:
    """Returns the copy of the data into y; nothing where they are the same bytes."""
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
