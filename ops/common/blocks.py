"""Elementwise kernels of several passes, run block by block: their temporaries stay small and stay in the cache."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import prod
from types import EllipsisType
from typing import Any

import numpy as np
from attrs import field, frozen

from ops.common.thunks import in_turn
from ops.schema.schema import Attrs, Binding, Kernel, Signature, Specs, Thunk
from ops.tensor.limits import constant
from ops.tensor.spec import BOOL, HALVES, Array, Shape, TensorSpec

BLOCK_BYTES = 64 << 10
"""Most bytes of all temporaries of one block together."""
Index = tuple[slice | EllipsisType, ...]
_SINGLE = np.dtype("float32")


def blocks(shape: Shape, most: int) -> Iterator[Index]:
    """Cuts a shape, in C order, into rectangles of at most `most` elements (`most` is 1 or more)."""
    cut = next((k for k in range(len(shape)) if prod(shape[k + 1 :]) <= most), len(shape))
    whole = tuple(slice(0, n) for n in shape[cut + 1 :])
    if cut == len(shape):
        yield (...,)
        return
    rows = max(1, most // max(1, prod(shape[cut + 1 :])))
    runs = [slice(i, min(i + rows, shape[cut])) for i in range(0, shape[cut], rows)]
    for lead in product(*(range(n) for n in shape[:cut])):
        for run in runs:
            yield (*(slice(i, i + 1) for i in lead), run, *whole, ...)


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the dtype in which several passes are computed: float32 for 16 bits, else the same."""
    return _SINGLE if dtype in HALVES else dtype


Passes = Callable[["Block"], tuple[Thunk, ...]]
"""The passes over one block. An input must not be read any more once `y` is written, except at the same element."""


@frozen(eq=False)
class Block:
    """Equal rectangles of inputs, output, temporaries and boolean masks; inputs of one element are 0-d.

    `y` may be the very memory of any input, and is where float16 is widened to float32 the first input itself. Blocks
    of one shape have the same temporaries and masks, and the same `shared` steps.
    """

    inputs: tuple[Array, ...]
    y: Array
    temporaries: tuple[Array, ...]
    masks: tuple[Array, ...]
    attrs: Attrs
    shared: dict[Passes, tuple[Thunk, ...]] = field(factory=dict)

    def once(self, passes: Passes) -> tuple[Thunk, ...]:
        """Returns passes over temporaries and masks alone, the same for all blocks of one shape.

        Each step takes some hundred bytes, and there may be thousands of blocks.
        """
        if passes not in self.shared:
            self.shared[passes] = passes(self)
        return self.shared[passes]

    @property
    def x(self) -> Array:
        """Returns the first input."""
        return self.inputs[0]

    def number(self, value: float) -> Array:
        """Returns a 0-d operand of the dtype in which the block is computed."""
        return constant(value, self.y.dtype)


@frozen(eq=False)
class _Scratch:
    """The temporaries of one block: widened inputs (float16 only), temporaries, masks."""

    signature: Signature
    temporaries: int
    masks: int
    widen: bool

    @property
    def dtype(self) -> np.dtype[Any]:
        """Returns the dtype in which the block is computed."""
        dtype = self.signature.y.dtype
        return working_dtype(dtype) if self.widen else dtype

    @property
    def wide(self) -> int:
        """Returns how many inputs are widened: all of them, or none."""
        return 0 if self.dtype == self.signature.y.dtype else len(self.signature.inputs)

    @property
    def size(self) -> int:
        """Returns the number of elements of one block."""
        each = max(self.wide + self.temporaries, 1) * self.dtype.itemsize + self.masks
        return max(1, min(self.signature.y.size, BLOCK_BYTES // each // 64 * 64))

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """Returns the specs of these arrays."""
        column, mask = (TensorSpec((self.size,), d) for d in (self.dtype, BOOL))
        return (column,) * (self.wide + self.temporaries) + (mask,) * self.masks


def blocked(
    passes: Passes, *, temporaries: int = 0, masks: int = 0, widen: bool = True, name: str = "blocks", **more: Any
) -> Kernel:
    """Returns a kernel of several passes with so many temporaries of the output's dtype, and so many boolean ones.

    Where `widen` is set, float16 is computed in float32. `more` are further fields of the kernel.
    """

    def bind(call: Binding) -> Thunk:
        return in_turn(*_bind(passes, _Scratch(call.signature, temporaries, masks, widen), call))

    def specs(signature: Signature) -> Specs:
        return _Scratch(signature, temporaries, masks, widen).specs

    return Kernel(name, bind, specs, **more)


def _bind(passes: Passes, scratch: _Scratch, call: Binding) -> tuple[Thunk, ...]:
    inputs, y = aligned(call.inputs, call.y)
    wide, cut = scratch.wide, scratch.wide + scratch.temporaries
    steps: list[Thunk] = []
    alike: dict[Shape, tuple[tuple[Array, ...], dict[Passes, tuple[Thunk, ...]]]] = {}
    for index in blocks(y.shape, scratch.size):
        here = y[index]
        if here.shape not in alike:
            alike[here.shape] = tuple(r[: here.size].reshape(here.shape) for r in call.temporaries), {}
        fitted, shared = alike[here.shape]
        operands = tuple(a[index] if a.ndim else a for a in inputs)
        block = Block(operands, here, fitted[wide:cut], fitted[cut:], call.attrs, shared)
        steps += _widened(passes, block, fitted[:wide]) if wide else passes(block)
    return tuple(steps)


def aligned(inputs: tuple[Array, ...], y: Array) -> tuple[tuple[Array, ...], Array]:
    """Returns the operands in one dimension where all are dense, else in the output's shape; single ones in none."""
    single = tuple(a.reshape(()) if a.size == 1 else a for a in inputs)
    if all(not a.ndim or (a.shape == y.shape and a.flags.c_contiguous) for a in single):
        return tuple(a.reshape(-1) if a.ndim else a for a in single), y.reshape(-1)
    return tuple(np.broadcast_to(a, y.shape) if a.ndim else a for a in single), y


def _widened(passes: Passes, block: Block, scratch: tuple[Array, ...]) -> tuple[Thunk, ...]:
    """Returns the passes in float32, all in temporaries, between a load of each input and one store."""
    loads = tuple(partial(np.copyto, r, a) for r, a in zip(scratch, block.inputs, strict=True))
    wide = Block(scratch, scratch[0], block.temporaries, block.masks, block.attrs, block.shared)
    return (*loads, *passes(wide), partial(np.copyto, block.y, scratch[0], casting="unsafe"))
