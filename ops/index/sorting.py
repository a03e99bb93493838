"""Stable orders of slices by numpy's sort in place, which needs no array of its own.

Each slice becomes a row of bytes that are compared like the slice: its elements, the most significant byte first, and
behind them its place. So no two rows are equal, and of equal slices the first one comes first.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.indices import INT64
from ops.schema.schema import Thunk
from ops.tensor.spec import BOOL, FLOATS, Array, TensorSpec

_PLACE_BYTES = 8
_BIG_PLACE = np.dtype(">i8")


@frozen
class Order:
    """The slices to sort: `rows` rows of slices of `width` elements each."""

    rows: int
    slices: int
    width: int
    dtype: np.dtype[Any]

    @property
    def key_bytes(self) -> int:
        """Returns the bytes of the key of a slice, without its place."""
        return self.width * self.dtype.itemsize

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """Returns the specs of the temporaries.

        They are keys, places in order, elements as integers, and (for floats) their signs and which are NaN.
        """
        shape = (self.rows, self.slices, self.width)
        bits = TensorSpec(shape, np.dtype(f"uint{8 * self.dtype.itemsize}"))
        none = (0, 0, 0)
        is_float = self.dtype in FLOATS
        return (
            TensorSpec((self.rows, self.slices, self.key_bytes + _PLACE_BYTES), np.dtype("uint8")),
            TensorSpec(shape[:2], INT64),
            bits,
            bits if is_float else bits.with_shape(none),
            TensorSpec(shape if is_float else none, BOOL),
        )

    def sort(
        self, x: Array, temporaries: Sequence[Array], *, descending: bool = False
    ) -> tuple[list[Thunk], Array, Array]:
        """Returns steps that sort the slices of x (rows, slices, width); their keys; and their places, in order.

        NaN is above all numbers, all NaN are equal, and -0.0 equals 0.0.
        """
        keys, places, bits, signs, is_nan = temporaries
        key_places = keys[..., self.key_bytes :].view(_BIG_PLACE)[..., 0]
        steps = [*_key_steps(x, bits, signs, is_nan)]
        if descending:
            steps.append(partial(np.invert, bits, bits))
        if self.width:
            elements = keys[..., : self.key_bytes].view(bits.dtype.newbyteorder(">"))
            steps.append(partial(np.copyto, elements, bits))
        steps += (*count_up(places), partial(np.copyto, key_places, places))
        if places.size:
            steps.append(keys.view(f"S{keys.shape[2]}")[..., 0].sort)
        steps.append(partial(np.copyto, places, key_places))
        return steps, keys[..., : self.key_bytes], places


def count_up(places: Array) -> tuple[Thunk, Thunk]:
    """Returns steps that write 0, 1, 2, ... along the last axis of an array of int64."""
    one = np.ones((), INT64)
    ones = np.broadcast_to(one, places.shape)
    return partial(np.add.accumulate, ones, places.ndim - 1, None, places), partial(np.subtract, places, one, places)


def _key_steps(x: Array, bits: Array, signs: Array, is_nan: Array) -> Iterator[Thunk]:
    """Yields steps that write integers which have the same order as the elements of x."""
    width = 8 * bits.itemsize
    top = np.asarray(1 << (width - 1), bits.dtype)
    if x.dtype in FLOATS:  # negative numbers: all bits are inverted; others: the sign is
        signed = np.dtype(f"int{width}")
        yield partial(np.not_equal, x, x, is_nan)
        yield partial(np.add, x, np.zeros((), x.dtype), bits.view(x.dtype))
        yield partial(np.right_shift, bits.view(signed), np.asarray(width - 1, signed), signs.view(signed))
        yield partial(np.bitwise_or, signs, top, signs)
        yield partial(np.bitwise_xor, bits, signs, bits)
        yield partial(np.copyto, bits, np.asarray(np.iinfo(bits.dtype).max, bits.dtype), where=is_nan)
    elif x.dtype.kind == "i":
        yield partial(np.bitwise_xor, x.view(bits.dtype), top, bits)
    else:
        yield partial(np.copyto, bits, x)
