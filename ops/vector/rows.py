"""Rows of several arrays as words: how many, and where each lies."""

import math
from collections.abc import Sequence

from attrs import frozen

from ops.native.call import Word
from ops.schema.schema import Signature
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, Shape
from ops.vector.bytecode import SINGLE


def neighbours(layout: Layout) -> bool:
    """Whether elements along the last axis that has more than one lie side by side."""
    steps = [s for n, s in zip(layout.shape, layout.strides, strict=True) if n != 1]
    return not steps or steps[-1] == layout.itemsize


def all_single(signature: Signature) -> bool:
    """Whether all inputs and outputs are float32."""
    return all(s.dtype == SINGLE for s in (*signature.inputs, *signature.outputs))


@frozen(eq=False)
class Rows:
    """Loops over the leading dimensions of arrays of one such shape: lengths, and for each array bytes a turn.

    Words: number of arrays, of rows, of loops; the lengths; for each array its address, and the bytes.
    """

    shape: Shape
    arrays: tuple[Array, ...]
    strides: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, arrays: Sequence[Array], shape: Shape) -> "Rows":
        """Over the dimensions `shape`, with which each array begins."""
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
    def words(self) -> tuple[Word, ...]:
        """As `ops.vector.rows_code` reads them."""
        found: list[Word] = [len(self.arrays), math.prod(self.shape), len(self.shape), *self.shape]
        for array, strides in zip(self.arrays, self.strides, strict=True):
            found += [array.ctypes.data, *strides]
        return tuple(found)
