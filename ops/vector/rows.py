"""Rows of several arrays as arguments of compiled code: how many, and where each lies."""

import math
from collections.abc import Sequence

from attrs import frozen

from ops.native.records import join_args, pack_args
from ops.schema.schema import Signature, unless
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, Shape
from ops.vector.args import ROWS
from ops.vector.bytecode import SINGLE


def neighbours(layout: Layout) -> bool:
    """Returns whether elements along the last axis that has more than one lie side by side."""
    steps = [s for n, s in zip(layout.shape, layout.strides, strict=True) if n != 1]
    return not steps or steps[-1] == layout.itemsize


def all_single(signature: Signature) -> bool:
    """Returns whether all inputs and outputs are float32."""
    return all(s.dtype == SINGLE for s in (*signature.inputs, *signature.outputs))


def _has_elements(signature: Signature) -> bool:
    return all_single(signature) and signature.x.size > 0


not_single_elements = unless(_has_elements, "not float32, or no elements")
"""The reason against kernels that divide by the number of elements, or begin with the first one."""


@frozen(eq=False)
class Rows:
    """Loops over the leading dimensions of arrays of one such shape: lengths, and for each array bytes a turn."""

    shape: Shape
    arrays: tuple[Array, ...]
    strides: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, arrays: Sequence[Array], shape: Shape) -> "Rows":
        """Returns the loops over the dimensions `shape`, with which each array begins."""
        lengths, steps = list[int](), list[tuple[int, ...]]()
        for axis, length in enumerate(shape):
            step = tuple(a.strides[axis] for a in arrays)
            if length == 1:
                continue
            if steps and all(o == i * length for o, i in zip(steps[-1], step, strict=True)):
                lengths[-1], steps[-1] = lengths[-1] * length, step
            else:
                lengths.append(length)
                steps.append(step)
        strides = tuple(zip(*steps, strict=True)) or ((),) * len(arrays)
        return cls(tuple(lengths), tuple(arrays), strides)

    @property
    def args(self) -> Array:
        """Returns the arguments, as compiled code reads them."""
        return rows_args(self.shape, [(a.ctypes.data, s) for a, s in zip(self.arrays, self.strides, strict=True)])


def rows_args(lengths: Sequence[int], arrays: Sequence[tuple[int, Sequence[int]]]) -> Array:
    """Returns the arguments of loops of these lengths over arrays, each an address and its bytes a turn."""
    head = pack_args(ROWS, arrays=len(arrays), rows=math.prod(lengths), loops=len(lengths))
    return join_args(head, lengths, *((start, *strides) for start, strides in arrays))
