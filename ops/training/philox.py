"""Philox4x32-10 in numpy: the same bits as `ops.training.philox_code`, many counters at a time."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ops.schema.schema import Thunk
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import Array, Shape, TensorSpec

WORDS = 4
"""Words of 32 bits that one counter gives."""
DRAWN = TensorSpec((1024,), np.dtype("uint64"))
"""Random words that are drawn at a time: which element has which bits depends on their number."""
_BLOCKS = 8
"""Times so many words that numpy draws together: more take more workspace, fewer more calls."""
_UINT64 = np.dtype("uint64")
_LOW, _HALF = np.asarray(0xFFFFFFFF, _UINT64), np.asarray(32, _UINT64)
_FACTORS = np.asarray(0xD2511F53, _UINT64), np.asarray(0xCD9E8D57, _UINT64)
_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10


def check_drawn(step: TensorSpec, seed: int) -> None:
    """Raises an OpError where a step or a seed is none."""
    if step.dtype != np.dtype("int64"):
        raise DtypeError(f"takes a step of int64, not {step.dtype}")
    if step.size != 1:
        raise ShapeError(f"the step is one number, not {step}")
    if not 0 <= seed < 2**64:
        raise AttributeValueError(f"seed is {seed}; at least 0 and below 2 ** 64 is wanted")


def words_of(size: int) -> TensorSpec:
    """Returns the spec of the words (blocks, 4, counters) that are drawn together for so many elements."""
    blocks = max(1, min(_BLOCKS, -(-size // DRAWN.size)))
    return DRAWN.with_shape((blocks, WORDS, DRAWN.size // WORDS))


def philox_specs(words: Shape) -> tuple[TensorSpec, ...]:
    """Returns the specs of the temporaries besides the words (blocks, 4, counters).

    They are four words and two products a counter.
    """
    counters = TensorSpec((words[0], words[2]), _UINT64)
    return (counters,) * (WORDS + 2)


def philox_steps(first: int, seed: int, words: Array, state: Sequence[Array], step: Array) -> Iterator[Thunk]:
    """Returns steps that draw the words (blocks, 4, counters) of blocks of counters, from block number `first` on.

    `state` are the temporaries of `philox_specs`; `step` is one number.
    """
    a, b, c, d, p, q = state
    counters = a.shape[1]
    blocks = (np.arange(len(a), dtype=_UINT64) + np.uint64(first)).reshape(-1, 1) * np.uint64(counters)
    yield partial(np.add, blocks, np.arange(counters, dtype=_UINT64), p)
    yield partial(np.bitwise_and, p, _LOW, a)
    yield partial(np.right_shift, p, _HALF, b)
    yield partial(np.bitwise_and, step, _LOW, c)
    yield partial(np.right_shift, step, _HALF, d)
    keys = seed & 0xFFFFFFFF, seed >> 32
    for number in range(_ROUNDS):
        key, other = (np.asarray((k + number * s) & 0xFFFFFFFF, _UINT64) for k, s in zip(keys, _STEPS, strict=True))
        yield partial(np.multiply, a, _FACTORS[0], p)
        yield partial(np.multiply, c, _FACTORS[1], q)
        yield partial(np.right_shift, q, _HALF, a)
        yield partial(np.bitwise_xor, a, b, a)
        yield partial(np.bitwise_xor, a, key, a)
        yield partial(np.bitwise_and, q, _LOW, b)
        yield partial(np.right_shift, p, _HALF, c)
        yield partial(np.bitwise_xor, c, d, c)
        yield partial(np.bitwise_xor, c, other, c)
        yield partial(np.bitwise_and, p, _LOW, d)
    for number, word in enumerate((a, b, c, d)):
        yield partial(np.copyto, words[:, number], word)
