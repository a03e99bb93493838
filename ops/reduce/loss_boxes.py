"""Logits seen as (images, classes, pixels), box by box, with room for the numbers that each pixel needs on the way."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.boxes import CACHE_BYTES, Boxes, boxes
from ops.common.indices import ENDS, INT64, IndexRangeError, add_positions, element_strides
from ops.schema.schema import Binding, Signature, Thunk
from ops.tensor.limits import constant
from ops.tensor.spec import BOOL, Array, Shape, TensorSpec, compute_dtype


@frozen(eq=False)
class LossCase:
    """Logits as (images, classes, pixels), cut into boxes of (images, pixels)."""

    shape: Shape
    dtype: np.dtype[Any]
    cut: Boxes

    @classmethod
    def of(cls, signature: Signature) -> "LossCase":
        """Returns the case of a signature.

        A box of logits fits into the cache, unless one pixel's classes alone are larger.
        """
        logits, dtype = signature.x, compute_dtype(signature.x.dtype)
        shape = (*logits.shape[:2], math.prod(logits.shape[2:]))
        most = max(CACHE_BYTES // max(shape[1] * dtype.itemsize, 1), 1)
        return cls(shape, dtype, boxes((shape[0], shape[2]), most))

    @property
    def temporaries(self) -> tuple[TensorSpec, ...]:
        """Returns the specs of the temporaries of a box.

        They are its logits; for each pixel two numbers, the label, one more integer and a flag; and a few numbers.
        """
        most = max((math.prod(b.shape) for b in self.cut.largest), default=0)
        row, label = TensorSpec((most,), self.dtype), TensorSpec((most,), INT64)
        few = TensorSpec((3,), self.dtype)
        return TensorSpec((most * self.shape[1],), self.dtype), row, row, label, label, row.with_dtype(BOOL), ENDS, few


def _check_labels(labels: Array, classes: int, ends: Array) -> None:
    """Raises IndexRangeError for a label that is no class."""
    np.minimum.reduce(labels, axis=None, out=ends[0:1].reshape(()))
    np.maximum.reduce(labels, axis=None, out=ends[1:2].reshape(()))
    if ends[0] < 0 or ends[1] >= classes:
        wrong = int(ends[0]) if ends[0] < 0 else int(ends[1])
        raise IndexRangeError(f"label {wrong} is none of the {classes} classes, and not the index that is ignored")


@frozen(eq=False)
class LossPart:
    """One box: its logits (images, classes, pixels), a buffer of their size, and arrays of one element a pixel."""

    x: Array
    index: tuple[slice, slice]
    buffer: Array
    row: Array
    picked: Array
    labels: Array
    term: Array
    ignored: Array
    target: Array
    ends: Array

    def find_labels(self, ignore: int) -> Iterator[Thunk]:
        """Yields steps that write where in the buffer the logit of each label is.

        For ignored labels it is the logit of class 0.
        """
        classes, pixels = self.x.shape[1], self.x.shape[2]
        yield partial(np.equal, self.target, constant(ignore, self.target.dtype), self.ignored)
        yield partial(np.copyto, self.labels, self.target)
        yield partial(np.copyto, self.labels, constant(0, INT64), where=self.ignored)
        yield partial(_check_labels, self.labels, classes, self.ends)
        yield partial(np.multiply, self.labels, constant(pixels, INT64), self.labels)
        image, _, pixel = element_strides(self.x.shape)
        yield add_positions(self.labels, self.term, (image, pixel))

    def exponents(self) -> Iterator[Thunk]:
        """Yields steps that write x minus the greatest of its pixel into the buffer."""
        row = self.row[:, np.newaxis]
        yield partial(np.copyto, self.buffer, self.x)
        yield partial(np.maximum.reduce, self.buffer, axis=1, keepdims=True, out=row)
        yield partial(np.subtract, self.buffer, row, self.buffer)

    def pick(self) -> Thunk:
        """Returns the step that writes the elements of the buffer at the labels into `picked`."""
        return partial(np.take, self.buffer.reshape(-1), self.labels, out=self.picked, mode="clip")


def loss_parts(call: Binding, case: LossCase) -> Iterator[LossPart]:
    """Yields all parts of a call whose first inputs are logits and labels; they share the temporaries."""
    x, labels = call.x.reshape(case.shape), call.inputs[1].reshape((case.shape[0], case.shape[2]))
    block, *scratch, ends, _ = call.temporaries
    for box in case.cut:
        (a, c), (b, d) = box.firsts, box.lasts
        size, shape = math.prod(box.shape), (b - a, case.shape[1], d - c)
        row, picked, places, term, ignored = (r[:size].reshape(box.shape) for r in scratch)
        buffer, index = block[: size * case.shape[1]].reshape(shape), (slice(a, b), slice(c, d))
        yield LossPart(x[a:b, :, c:d], index, buffer, row, picked, places, term, ignored, labels[a:b, c:d], ends)
