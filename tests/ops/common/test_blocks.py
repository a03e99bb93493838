from collections.abc import Callable
from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ops.common.blocks import Block, blocked, blocks
from ops.common.elementwise import broadcast
from ops.common.thunks import in_turn
from ops.schema.schema import OpSchema, evaluate, overwrites_from
from ops.tensor.spec import FLOATS
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, same

SHAPES = st.lists(st.integers(0, 7), max_size=4).map(tuple)


@given(shape=SHAPES, most=st.integers(1, 50))
def test_blocks_cover_every_element_once_in_order_and_are_small(shape: tuple[int, ...], most: int) -> None:
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    parts = [numbers[index] for index in blocks(shape, most)]
    assert all(p.size <= most for p in parts)
    assert [n for p in parts for n in p.reshape(-1).tolist()] == numbers.reshape(-1).tolist()


@given(rows=st.integers(1, 40), length=st.integers(1, 10), most=st.integers(10, 60))
def test_whole_rows_share_a_block_as_long_as_they_fit(rows: int, length: int, most: int) -> None:
    fitting = most // length
    assert sum(1 for _ in blocks((rows, length), most)) == -(-rows // fitting)


def test_steps_run_in_turn() -> None:
    seen: list[int] = []
    steps: tuple[Callable[[], None], ...] = tuple(partial(seen.append, i) for i in range(3))
    in_turn(*steps)()
    in_turn(*steps[:1])()
    in_turn()()
    assert seen == [0, 1, 2, 0]


def _mean_square(block: Block) -> tuple[Callable[[], object], ...]:
    """Returns (a * a + b * b) / 2."""
    (a, b), (left, right) = block.inputs, block.temporaries
    return (
        partial(np.multiply, a, a, left),
        partial(np.multiply, b, b, right),
        partial(np.add, left, right, left),
        partial(np.multiply, left, block.number(0.5), block.y),
    )


MEAN_SQUARE = OpSchema(
    "mean_square",
    broadcast(FLOATS),
    (blocked(_mean_square, temporaries=2),),
    (2, 2),
    overwrites=overwrites_from(0),
)


def test_an_operator_of_several_passes_is_written_in_a_few_lines() -> None:
    a, b = np.random.default_rng(0).random((5, 7)), np.random.default_rng(1).random((5, 1))
    check_kernels(MEAN_SQUARE, [a, b], [(a**2 + b**2) / 2], rtol=1e-15)
    check_kernels(MEAN_SQUARE, [a, a], [a**2], rtol=1e-15)


def test_float16_is_computed_in_float32() -> None:
    a = np.full((3, 3), 200, np.float16)
    same(evaluate(MEAN_SQUARE, a, a)[0], np.full((3, 3), 40000, np.float16))


def test_large_tensors_go_through_many_blocks() -> None:
    a, b = np.random.default_rng(0).random((60, 700)), np.random.default_rng(1).random((60, 1))
    same(evaluate(MEAN_SQUARE, a, b)[0], (a**2 + b**2) / 2, rtol=1e-15)
    check_no_allocation(MEAN_SQUARE, [a, b])


def _halved_sum(block: Block) -> tuple[Callable[[], object], ...]:
    """Returns (a + b) / 2; the temporary is halved by a step that all blocks of one shape share."""
    (a, b), (total,) = block.inputs, block.temporaries
    return partial(np.add, a, b, total), *block.once(_halved), partial(np.copyto, block.y, total)


def _halved(block: Block) -> tuple[Callable[[], object], ...]:
    (total,) = block.temporaries
    HALVINGS.append(total.shape)
    return (partial(np.multiply, total, block.number(0.5), total),)


HALVINGS: list[tuple[int, ...]] = []
HALVED_SUM = OpSchema("halved_sum", broadcast(FLOATS), (blocked(_halved_sum, temporaries=1),), (2, 2))


@given(dtype=st.sampled_from(["float16", "float32", "float64"]), rows=st.integers(1, 3), more=st.integers(0, 99))
def test_steps_over_temporaries_alone_are_made_once_for_each_shape_of_blocks(dtype: str, rows: int, more: int) -> None:
    rng = np.random.default_rng(more)
    a, b = (rng.integers(-9, 9, rows * 40_000 + more).astype(dtype) for _ in range(2))
    HALVINGS.clear()
    same(evaluate(HALVED_SUM, a, b)[0], ((a.astype(float) + b) / 2).astype(dtype))
    assert len(HALVINGS) == len(set(HALVINGS)) <= 2
