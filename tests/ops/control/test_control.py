"""If, Loop and Scan by themselves, with bodies that are plain functions: results, buffers, permissions, refusals."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.control.branch import IF
from ops.control.loop import COUNTER, LOOP
from ops.control.scan import SCAN
from ops.schema.schema import Cost, OpSchema, Specs, Thunk, evaluate
from ops.tensor.errors import ArityError, AttributeValueError, DtypeError, OpError, ShapeError
from ops.tensor.spec import BOOL, Array, TensorSpec
from tests.helpers.ops.control_bodies import FunctionBody
from tests.helpers.ops.kernel_checks import bind, check_kernels, scratch_bytes, sign

FLAG = TensorSpec((), BOOL)
PAIR, ROW = TensorSpec((2, 3), np.dtype("float32")), TensorSpec((3,), np.dtype("float32"))
A, B, C = (np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * k for k in range(3))


def _turn(i: Array, a: Array, b: Array, captured: Array) -> tuple[Array, Array, Array]:
    """Swaps the values that it carries, and returns a row."""
    return b + i, a * 2 + captured, a[0] + b[1]


def _going_on(until: int, *arrays: Array) -> tuple[Array, ...]:
    return np.asarray(arrays[0] + 1 < until), *_turn(*arrays)


def _looped(turns: int, most: int) -> tuple[Array, ...]:
    """Returns what the loop over `_turn` computes."""
    a, b, rows = A, B, np.zeros((most, 3), np.float32)
    for i in range(turns):
        a, b, rows[i] = _turn(np.asarray(i), a, b, C)
    return a.astype(np.float32), b.astype(np.float32), rows, np.asarray(turns, np.int64)


def _body(until: int | None = None) -> FunctionBody:
    inputs = (COUNTER, PAIR, PAIR, PAIR)
    if until is None:
        return FunctionBody(inputs, (PAIR, PAIR, ROW), _turn)
    return FunctionBody(inputs, (FLAG, PAIR, PAIR, ROW), partial(_going_on, until))


@pytest.mark.parametrize("trips", range(6))
def test_a_loop_of_a_known_number_of_turns_needs_no_copy_in_the_end_and_may_overwrite_after_an_even_one(
    trips: int,
) -> None:
    check_kernels(LOOP, [A, B, C], _looped(trips, trips), body=_body(), carried=2, trips=trips)
    signature = sign(LOOP, [A, B, C], {"body": _body(), "carried": 2, "trips": trips})
    assert len(LOOP.overwrites(signature)) == (2 if trips % 2 == 0 else 0)


@pytest.mark.parametrize("trips", range(6))
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_number_of_turns_that_is_an_operand_leaves_the_rest_of_the_rows_0(trips: int, shape: tuple[int, ...]) -> None:
    arrays: list[Array] = [np.full(shape, trips, np.int64), A, B, C]
    check_kernels(LOOP, arrays, _looped(trips, 7), body=_body(), carried=2, trips_given=True, most=7)


@pytest.mark.parametrize("until", range(1, 6))
def test_the_body_may_end_a_loop(until: int) -> None:
    options: dict[str, Any] = {"body": _body(until), "carried": 2, "conditional": True, "most": 5}
    check_kernels(LOOP, [A, B, C], _looped(until, 5), **options)
    check_kernels(LOOP, [A, B, C], _looped(min(until, 3), 5), trips=3, **options)


def test_a_condition_that_is_false_lets_no_turn_run() -> None:
    for condition, turns in ((True, 3), (False, 0)):
        arrays = [np.asarray(4), np.asarray([condition]), A, B, C]
        options = {"trips_given": True, "cond_given": True, "conditional": True, "most": 4}
        check_kernels(LOOP, arrays, _looped(turns, 4), body=_body(3), carried=2, **options)
        check_kernels(LOOP, arrays[1:], _looped(4 * condition, 4), body=_body(), carried=2, trips=4, cond_given=True)


def test_a_turn_too_many_is_refused_when_it_would_run() -> None:
    options: dict[str, Any] = {"body": _body(), "carried": 2, "trips_given": True, "most": 3}
    evaluate(LOOP, np.asarray(3), A, B, C, **options)
    with pytest.raises(ValueError, match="goes on after 3 turns, and there is room for 3 rows"):
        evaluate(LOOP, np.asarray(4), A, B, C, **options)


def test_a_loop_of_a_hundred_turns_has_the_workspace_of_one_of_two() -> None:
    def workspace(trips: int) -> int:
        signature = sign(LOOP, [A, B, C], {"body": _body(), "carried": 2, "trips": trips})
        return LOOP.kernels[0].workspace(signature)

    slots, body, swap = 3 * 64, 128, 2 * 64
    assert [workspace(n) for n in (1, 2, 100)] == [slots + body, slots + body + swap, slots + body + swap]


def test_the_cost_of_a_loop_is_that_of_its_turns() -> None:
    signature = sign(LOOP, [A, B, C], {"body": _body(), "carried": 2, "trips": 10})
    assert LOOP.cost(signature) == Cost(30, 50 + 5 * 24 + 10 * 12 + 8)


def test_loops_that_make_no_sense_are_refused() -> None:
    wrong: list[tuple[dict[str, Any], Specs, type[OpError]]] = [
        ({"body": _body(), "carried": 2}, (PAIR,) * 3, AttributeValueError),
        ({"body": _body(), "carried": 2, "trips": -1}, (PAIR,) * 3, AttributeValueError),
        ({"body": 3, "carried": 2, "trips": 2}, (PAIR,) * 3, AttributeValueError),
        ({"body": _body(), "carried": 2, "trips": 2}, (PAIR,) * 2, ArityError),
        ({"body": _body(), "carried": 2, "trips": 2}, (PAIR,), ArityError),
        ({"body": _body(), "carried": 2, "trips": 2}, (PAIR, PAIR, ROW), ShapeError),
        ({"body": _body(), "carried": 4, "trips": 2}, (PAIR,) * 4, ArityError),
        ({"body": _body(), "carried": 2, "trips": 4, "most": 3}, (PAIR,) * 3, ShapeError),
        ({"body": _body(2), "carried": 2, "conditional": True}, (PAIR,) * 3, AttributeValueError),
        ({"body": _body(), "carried": 2, "trips": 2, "trips_given": True}, (COUNTER, *[PAIR] * 3), AttributeValueError),
        ({"body": _body(), "carried": 2, "trips_given": True, "most": 2}, (FLAG, *[PAIR] * 3), DtypeError),
        ({"body": _body(), "carried": 2, "trips": 2, "cond_given": True}, (COUNTER, *[PAIR] * 3), DtypeError),
        ({"body": _body(), "carried": 2, "trips": 2, "conditional": True}, (PAIR,) * 3, DtypeError),
    ]
    for attrs, specs, error in wrong:
        with pytest.raises(error, match=r"^loop\("):
            LOOP.sign(specs, attrs)


def _stepped(state: Array, x: Array, z: Array, captured: Array) -> tuple[Array, Array, Array]:
    return state * 2 + x, x - z + captured, x[:1] + z[0]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 4), st.tuples(*[st.integers(-2, 1)] * 4), st.lists(st.integers(0, 1), min_size=4, max_size=4))
def test_a_scan_takes_and_puts_rows_along_any_axis_either_way(
    count: int, axes: tuple[int, int, int, int], ways: list[int]
) -> None:
    a, b, c, d = axes

    def rows(array: Array, axis: int, way: int) -> list[Array]:
        return [np.take(array, k, axis) for k in range(count)][:: -1 if way else 1]

    rng = np.random.default_rng(count)
    x, z = (np.moveaxis(rng.normal(size=(count, 3)).astype(np.float32), 0, axis) for axis in (a, b))
    first, captured = (rng.normal(size=3).astype(np.float32) for _ in range(2))
    state, ys, us = first, [], []
    for one, other in zip(rows(x, a, ways[0]), rows(z, b, ways[1]), strict=True):
        state, y, u = _stepped(state, one, other, captured)
        ys.append(y)
        us.append(u)
    stacks = [
        np.stack(outputs[:: -1 if way else 1], axis) if count else np.moveaxis(np.zeros((0, n), np.float32), 0, axis)
        for outputs, axis, way, n in ((ys, c, ways[2], 3), (us, d, ways[3], 1))
    ]
    body = FunctionBody((ROW,) * 4, (ROW, ROW, ROW.with_shape((1,))), _stepped)
    attrs: dict[str, Any] = {
        "input_axes": (a, b),
        "input_directions": ways[:2],
        "output_axes": (c, d),
        "output_directions": ways[2:],
    }
    check_kernels(SCAN, [first, x, z, captured], (state, *stacks), body=body, states=1, scan_inputs=2, **attrs)


def _ways(**attrs: Any) -> int:
    body = FunctionBody((ROW, ROW), (ROW, ROW), lambda s, x: (s + x, s))
    return len(
        SCAN.overwrites(sign(SCAN, [A[0], np.ones((attrs.pop("turns"), 3), np.float32)], {"body": body, **attrs}))
    )


def test_rows_take_the_place_of_rows_that_were_read_the_same_way() -> None:
    assert _ways(turns=3, states=1) == 1
    assert _ways(turns=4, states=1) == 2
    assert _ways(turns=3, states=1, output_directions=[1]) == 0
    assert _ways(turns=3, states=1, input_axes=[0], output_axes=[1]) == 0


def test_scans_that_make_no_sense_are_refused() -> None:
    body = FunctionBody((ROW, ROW), (ROW, ROW), lambda s, x: (s, x))
    silent = FunctionBody((ROW,), (), lambda _: ())
    wrong: list[tuple[dict[str, Any], Specs, type[OpError]]] = [
        ({"body": body, "states": 1}, (ROW,), ArityError),
        ({"body": body, "states": 1, "scan_inputs": 0}, (ROW, ROW), ArityError),
        ({"body": body, "states": 1}, (ROW, ROW), ShapeError),
        ({"body": body, "states": 2}, (ROW, ROW, PAIR), ArityError),
        ({"body": body, "states": 1, "input_axes": (5,)}, (ROW, PAIR), ShapeError),
        ({"body": body, "states": 1, "input_axes": (0, 0)}, (ROW, PAIR), AttributeValueError),
        ({"body": body, "states": 1, "output_directions": (2,)}, (ROW, PAIR), AttributeValueError),
        ({"body": body, "scan_inputs": 2}, (PAIR, PAIR.with_shape((3, 3))), ShapeError),
        ({"body": silent}, (PAIR,), ArityError),
    ]
    for attrs, specs, error in wrong:
        with pytest.raises(error, match=r"^scan\("):
            SCAN.sign(specs, attrs)


def _branches(then: Sequence[TensorSpec] = (PAIR,)) -> dict[str, Any]:
    return {
        "then_body": FunctionBody((PAIR, PAIR), tuple(then), lambda a, b: (a + b,), 300),
        "else_body": FunctionBody((PAIR, PAIR), (PAIR,), lambda a, b: (a - b,), 200, cost=Cost(7, 1)),
    }


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_branch_runs_the_chosen_body_and_both_share_a_workspace(shape: tuple[int, ...]) -> None:
    for condition, wanted in ((True, A + B), (False, A - B)):
        check_kernels(IF, [np.full(shape, condition), A, B], [wanted], **_branches())
    signature = sign(IF, [np.asarray(True), A, B], _branches())
    assert IF.kernels[0].workspace(signature) == 320
    assert IF.cost(signature) == Cost(7, 1)


def test_branches_that_make_no_sense_are_refused() -> None:
    wrong: list[tuple[dict[str, Any], Specs, type[OpError]]] = [
        (_branches(), (TensorSpec((), np.dtype("int64")), PAIR, PAIR), DtypeError),
        (_branches(), (TensorSpec((2,), BOOL), PAIR, PAIR), ShapeError),
        (_branches(), (FLAG, PAIR), ArityError),
        (_branches((ROW,)), (FLAG, PAIR, PAIR), ShapeError),
        (_branches((PAIR, PAIR)), (FLAG, PAIR, PAIR), ArityError),
    ]
    for attrs, specs, error in wrong:
        with pytest.raises(error, match=r"^if\("):
            IF.sign(specs, attrs)
    silent = FunctionBody((), (), lambda: ())
    with pytest.raises(ArityError, match="give nothing"):
        IF.sign((FLAG,), {"then_body": silent, "else_body": silent})


def test_control_operators_allocate_nothing() -> None:
    big, row = TensorSpec((8, 1 << 14), np.dtype("float32")), TensorSpec((1 << 14,), np.dtype("float32"))
    x, flat = np.ones(big.shape, np.float32), np.ones(row.shape, np.float32)
    still = _Still((COUNTER, big), (big, row))
    cases: list[tuple[OpSchema, list[Array], dict[str, Any]]] = [
        (LOOP, [x], {"body": still, "carried": 1, "trips": 8}),
        (LOOP, [np.asarray(7), x], {"body": still, "carried": 1, "trips_given": True, "most": 9}),
        (SCAN, [flat, x], {"body": _Still((row, row), (row, row)), "states": 1}),
        (IF, [np.asarray(True), x], dict.fromkeys(("then_body", "else_body"), _Still((big,), (big,)))),
    ]
    assert {schema for schema, _, _ in cases} == {IF, LOOP, SCAN}
    for schema, arrays, attrs in cases:
        signature = sign(schema, arrays, attrs)
        outputs = tuple(np.empty(s.shape, s.dtype) for s in signature.outputs)
        assert scratch_bytes(bind(schema.kernels[0], signature, arrays, outputs)) < 8 << 10


class _Still(FunctionBody):
    """A body that allocates nothing."""

    def __init__(self, inputs: Specs, outputs: Specs) -> None:
        super().__init__(inputs, outputs, lambda *_: (), 0)

    def bind(self, _: tuple[Array, ...], outputs: tuple[Array, ...], __: Array) -> Thunk:
        return partial(outputs[0].fill, 1)
