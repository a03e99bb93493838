"""The interpreter of elementwise programs equals numpy, for any layout and number of parts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.elementwise.fused import FUSED_ELEMENTWISE
from ops.elementwise.program import Step
from ops.registry import REGISTRY, find
from ops.schema.backends import NUMBA, NUMPY
from ops.schema.schema import Binding, Kernel, OpSchema, Signature
from ops.tensor.spec import BOOL, Array, Shape, spec_of
from ops.vector.bytecode import Script, fits
from ops.vector.collapse import collapse
from ops.vector.kernel import Vector
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.elementwise_programs import bits, step_of
from tests.helpers.ops.kernel_checks import check_overwrites, run, run_without_allocation, sign

SINGLE = np.dtype("float32")
(_VECTOR,) = (k for k in FUSED_ELEMENTWISE.kernels if k.backend == NUMBA)
_SHAPES: tuple[Shape, ...] = (
    *((), (1,), (7,), (3, 5), (2, 1, 17), (2, 3, 40), (5, 1100), (2, 9, 3, 3), (0, 3), (3, 70, 33), (9000,)),
)
_EDGES = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-45, 3e38, -3e38, 88.7, 88.8, -88.0, -103.0, -105.0, 9.5, -9.5],
    np.float32,
)
_EXACT = {
    1: ("neg", "abs", "relu", "sqrt", "floor", "round"),
    2: ("add", "sub", "mul", "max", "min"),
}
"""Operators whose results are numpy's, but for signs of 0, and do not tell such signs: those of one input, of two."""


def _numbers(rng: np.random.Generator, shape: Shape, dtype: np.dtype[Any] = SINGLE) -> Array:
    if dtype == BOOL:
        return np.asarray(rng.random(shape) < 0.5)
    x = np.asarray(3 * rng.standard_normal(shape), np.float32)
    return np.where(rng.random(shape) < 0.1, rng.choice(_EDGES, shape), x).astype(np.float32)


@st.composite
def _chains(draw: st.DrawFn) -> tuple[list[Array], tuple[Step, ...]]:
    """Draws arrays, the first two of the whole shape, and steps of that shape; some compare or choose."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    shape = draw(st.sampled_from(_SHAPES))
    arrays = [_numbers(rng, shape), _numbers(rng, shape)]
    for _ in range(draw(st.integers(0, 2))):
        kept = tuple(n if draw(st.booleans()) else 1 for n in shape[draw(st.integers(0, len(shape))) :])
        arrays.append(_numbers(rng, kept))
    steps: list[Step] = []
    whole = [0, 1]
    for _ in range(draw(st.integers(1, 9))):
        count = draw(st.sampled_from([1, 2]))
        some = [draw(st.sampled_from(whole)), draw(st.sampled_from([*range(len(arrays)), *whole]))][:count]
        steps.append(step_of(draw(st.sampled_from(_EXACT[count])), *some))
        whole.append(len(arrays) + len(steps) - 1)
    if draw(st.booleans()):
        steps.append(step_of("less", whole[-1], 0))
        if draw(st.booleans()):
            steps.append(step_of("where", len(arrays) + len(steps) - 1, whole[-1], 1))
    return arrays, tuple(steps)


def _laid(array: Array, way: int) -> Array:
    """Returns the same elements in another layout: dense, with gaps between pixels, axes reversed, backwards."""
    if not array.ndim or way == 0:
        return array
    if way == 1:
        return placed(array, extra=5)
    if way == 2:
        return np.array(array.T, order="C").T
    return np.array(array[::-1], order="C")[::-1]


def _wanted(arrays: list[Array], program: tuple[Step, ...]) -> Array:
    values = list(arrays)
    for step in program:
        operands = [values[i] for i in step.operands]
        signature = sign(step.schema, operands, step.attrs)
        values += run(step.schema.kernel(signature, (NUMPY,)), signature, operands)
    return values[-1]


def _sign(arrays: list[Array], program: tuple[Step, ...]) -> Signature:
    return sign(FUSED_ELEMENTWISE, arrays, {"program": program})


@settings(max_examples=60)
@given(_chains(), st.sampled_from([1, 2, 3]), st.data())
def test_interpreted_chains_equal_their_steps(
    case: tuple[list[Array], tuple[Step, ...]], parts: int, data: st.DataObject
) -> None:
    arrays, program = case
    signature = _sign(arrays, program)
    assert _VECTOR.supports(signature)
    laid = [_laid(a, data.draw(st.integers(0, 3))) for a in arrays]
    extra = data.draw(st.sampled_from([0, 3])) if signature.y.shape else 0
    if signature.y.shape:
        (got,) = run_native(_VECTOR, signature, laid, parts, extra)
    else:
        (got,) = run(_VECTOR, signature, laid)
    np.testing.assert_array_equal(got, _wanted(arrays, program))


@settings(max_examples=20)
@given(_chains(), st.booleans())
def test_an_output_may_overwrite_the_inputs_that_its_chain_declares(
    case: tuple[list[Array], tuple[Step, ...]], apart: bool
) -> None:
    arrays, program = case
    with np.errstate(all="ignore"):
        check_overwrites(FUSED_ELEMENTWISE, arrays, program=program, apart=apart)


def _interpreted() -> list[OpSchema]:
    """Returns all operators that are instructions, without those of bool alone."""
    schemas = [s for s in REGISTRY.values() if any(isinstance(k.bind, Vector) for k in s.kernels)]
    return [s for s in schemas if s.name not in {"not", "and", "or", "xor", "pow", "cast"}]


def _operands(schema: OpSchema, rng: np.random.Generator) -> list[Array]:
    shape = (9, 37)
    if schema.name == "where":
        return [_numbers(rng, shape, BOOL), _numbers(rng, (37,)), _numbers(rng, shape)]
    if schema.name == "clip":
        return [_numbers(rng, shape), np.asarray(-1, np.float32), np.asarray(2, np.float32)]
    return [_numbers(rng, shape), *(_numbers(rng, shape) for _ in range(min(schema.arity[1], 3) - 1))]


@pytest.mark.parametrize("schema", _interpreted(), ids=lambda s: s.name)
def test_interpreted_operators_equal_numpy(schema: OpSchema) -> None:
    """Results differ by few units in the last place, also at the limits of float32."""
    arrays = _operands(schema, np.random.default_rng(1))
    signature = sign(schema, arrays, {})
    (wanted,) = run(schema.kernel(signature, (NUMPY,)), signature, arrays)
    kernel = schema.kernel(signature, (NUMBA,))
    assert isinstance(kernel.bind, Vector)
    for parts in (1, 3):
        (got,) = run_native(kernel, signature, arrays, parts, extra=parts - 1)
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=5e-7)


@pytest.mark.parametrize(("name", "few"), [("exp", 2), ("log", 2), ("tanh", 3), ("erf", 6), ("sigmoid", 3)])
def test_interpreted_functions_are_within_few_units_of_the_last_place(name: str, few: int) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([10.0 ** rng.uniform(-40, 38, 20_000), rng.uniform(0, 100, 40_000)]).astype(np.float32)
    arrays = [x if name == "log" else np.concatenate([x, -x])]
    schema = find(name)
    signature = sign(schema, arrays, {})
    exact = schema.sign([spec_of(a).with_dtype("float64") for a in arrays], {})
    (got,) = run(schema.kernel(signature, (NUMBA,)), signature, arrays)
    (precise,) = run(schema.kernel(exact, (NUMPY,)), exact, [a.astype(np.float64) for a in arrays])
    with np.errstate(over="ignore"):
        wanted = precise.astype(np.float32)
    finite = np.isfinite(wanted)
    unit = np.spacing(np.abs(wanted[finite])).astype(np.float64)
    beyond = 1e-37 if name == "sigmoid" else 0.0  # exp(-x) overflows, as numpy's
    assert (np.abs(got[finite].astype(np.float64) - precise[finite]) <= few * unit + beyond).all()
    assert (got[~finite] == wanted[~finite]).all()


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0, 3.0, -1.0, 2.5])
def test_powers_with_a_known_exponent_are_instructions_or_numpys(exponent: float) -> None:
    x, e = np.linspace(0.1, 9, 99, dtype=np.float32), np.asarray(exponent, np.float32)
    program = (step_of("pow", 0, 1), step_of("neg", 2))
    for schema, attrs, factor in ((FUSED_ELEMENTWISE, {"program": program}, -1), (find("pow"), {}, 1)):
        signature = sign(schema, [x, e], attrs, {1})
        kernel = schema.kernel(signature, (NUMBA,))
        np.testing.assert_allclose(run(kernel, signature, [x, e])[0], factor * x**e, rtol=3e-7)


def test_programs_without_instructions_are_left_to_numpy() -> None:
    x = np.ones((3, 4), np.float32)
    for name in ("sin", "mod"):
        program = (step_of("neg", 0), step_of(name, *range(1, 1 + find(name).arity[0])))
        arrays = [x, x][: find(name).arity[0]]
        assert not _VECTOR.supports(_sign(arrays, program))
    assert not _VECTOR.supports(_sign([x.astype(np.float64)], (step_of("neg", 0),)))
    assert not _VECTOR.supports(_sign([x], (step_of("neg", 0), *(step_of("add", i, i) for i in range(1, 80)))))


def test_a_program_of_many_values_has_small_blocks() -> None:
    """The second half reads all results of the first."""
    x = np.linspace(-1, 1, 5000, dtype=np.float32)
    ups = tuple(step_of("add", i, 0) for i in range(14))
    downs = tuple(step_of("add", 14 + i, 14 - i) for i in range(14))
    program = (*ups, *downs)
    assert bits(run(_VECTOR, _sign([x], program), [x])[0]) == bits(_wanted([x], program))


def test_the_elementwise_interpreter_allocates_nothing() -> None:
    arrays = [_numbers(np.random.default_rng(0), s) for s in ((64, 30, 30, 16), (16,))]
    signature = _sign(arrays, (step_of("mul", 0, 1), step_of("gelu", 2)))
    assert _VECTOR.workspace(signature) == 0
    run_without_allocation(_VECTOR, signature, arrays)


def test_loops_are_joined_where_all_arrays_step_over_the_inner_one() -> None:
    dense, channel = (480, 120, 24, 4), (0, 4, 0, 0)
    assert collapse((2, 4, 5, 6), [dense, dense]).shape == (1, 240)
    assert collapse((2, 4, 5, 6), [channel, dense]).shape == (2, 4, 30)
    assert collapse((2, 4, 5, 6), [dense[::-1], dense[::-1]]).shape[0] == 6
    assert collapse((), [(), ()]).shape == (1, 1)


def test_an_interpreted_program_of_too_many_instructions_does_not_fit() -> None:
    script = Script(1)
    for _ in range(40):
        script.append("neg", 0)
    assert not fits(script)


def test_an_interpreted_program_with_an_empty_output_needs_no_call() -> None:
    kernel: Kernel = find("exp").kernel(find("exp").sign([spec_of(np.ones((0, 3), np.float32))], {}))
    x = np.ones((0, 3), np.float32)
    kernel.bind(Binding(sign(find("exp"), [x], {}), (x,), (x.copy(),)))()
