"""The largest and the smallest element of rows."""

from functools import partial
from math import prod
from typing import Any

from attrs import frozen

from ops.common.fold import reduced_axes
from ops.onednn import declarations as c
from ops.onednn.descriptors import Post, Tensor, dense
from ops.onednn.guard import Plan, beside, one_to_one, only_dense
from ops.onednn.library import Library
from ops.schema.schema import Kernel, Signature, unless
from ops.tensor.spec import Shape

_SHORT, _FEW = 64, 4096
"""Least elements of a row, and of a tensor, for which the library is taken. Trades the start of its calls against its
time for each element; no benchmark covers it."""
_LOWEST, _HIGHEST = -0x00800001, 0x7F7FFFFF
"""The bits of the lowest and the highest float32, with which the library begins."""


@frozen
class Fold:
    """Rows (rows, width) to (rows, 1)."""

    algorithm: int
    x: Tensor
    posts: tuple[Post, ...] = ()

    def describe(self, at: Library, attributes: Any) -> Any:
        """Returns the library's description of the reduction; see `Case`."""
        x, y = self.x.descriptor(at), dense((self.x.shape[0], 1)).descriptor(at)
        return at.new(
            "primitive_desc", "reduction_primitive_desc_create", at.engine, self.algorithm, x, y, 0.0, 0.0, attributes
        )


def _rows(signature: Signature) -> Shape:
    """Returns the number and the length of rows, where the last axes are reduced; the length is 0 for other axes."""
    shape = signature.x.shape
    axes = sorted(reduced_axes(signature.attrs, len(shape)))
    first = len(shape) - len(axes)
    if axes != list(range(first, len(shape))):
        return signature.x.size, 0
    return prod(shape[:first]), prod(shape[first:])


_FEW_ROWS = "not the last axes, or rows that are few or short"


def _supports(signature: Signature) -> bool:
    rows, width = _rows(signature)
    return rows > 1 and width >= _SHORT and signature.x.size >= _FEW


def _plan(algorithm: int, signature: Signature) -> Plan:
    rows, width = _rows(signature)
    x, y = dense((rows, width)), dense((rows, 1))
    return Plan(Fold(algorithm, x), one_to_one(x, y))


def largest(kernel: Kernel) -> Kernel:
    """Returns the library's kernel of the largest element, for calls that the compiled kernel takes."""
    return beside(only_dense(kernel), partial(_plan, c.LARGEST), unless(_supports, _FEW_ROWS), _LOWEST)


def smallest(kernel: Kernel) -> Kernel:
    """Returns the library's kernel of the smallest element, for calls that the compiled kernel takes."""
    return beside(only_dense(kernel), partial(_plan, c.SMALLEST), unless(_supports, _FEW_ROWS), _HIGHEST)
