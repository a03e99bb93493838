"""Fused elementwise programs: the bits of their steps one after the other, for any blocks, layouts and overwrites."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.elementwise import fused
from ops.elementwise.fused import FUSED_ELEMENTWISE
from ops.elementwise.program import Step, assign_buffers, signatures
from ops.registry import REGISTRY
from ops.schema.backends import NUMPY
from ops.schema.schema import OpSchema, any_strides, evaluate, no_contiguity
from ops.tensor.errors import ArityError, AttributeValueError, SchemaError, ShapeError
from ops.tensor.spec import TensorSpec
from tests.helpers.ops.elementwise_programs import Case, bits, programs, seeded_program, step_of
from tests.helpers.ops.kernel_checks import check_overwrites, run, run_without_allocation, same, sign, strided_copies
from tests.helpers.ops.sample_arrays import normal

_NUMPY = FUSED_ELEMENTWISE.kernels[-1]
"""The reference. What the compiled kernel does is tested in test_ops_vector_elementwise.py."""


@pytest.fixture(
    params=[1, 200, 2 << 20], ids=["blocks of few", "blocks of some", "one block"], autouse=True, scope="module"
)
def block_bytes(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused, "CACHED_BYTES", request.param)
        yield


def _check(case: Case) -> None:
    kernel, wanted = _NUMPY, case.wanted
    for apart in (False, True):
        signature = sign(FUSED_ELEMENTWISE, case.arrays, {"program": case.program, "apart": apart})
        assert (signature.y.shape, signature.y.dtype) == (wanted.shape, wanted.dtype)
        (got,) = run(kernel, signature, case.arrays)
        assert bits(got) == bits(wanted)


@settings(max_examples=30)
@given(programs())
def test_fused_elementwise_has_the_bits_of_its_steps(case: Case) -> None:
    _check(case)
    with np.errstate(all="ignore"):
        for apart in (False, True):
            check_overwrites(FUSED_ELEMENTWISE, case.arrays, program=case.program, apart=apart)


@settings(max_examples=20)
@given(programs(4))
def test_fused_elementwise_takes_inputs_of_any_strides(case: Case) -> None:
    signature = sign(FUSED_ELEMENTWISE, case.arrays, {"program": case.program})
    kernel = _NUMPY
    for stored in zip(*(strided_copies(a) for a in case.arrays), strict=True):
        same(run(kernel, signature, stored)[0], case.wanted, rtol=1e-6)


@settings(max_examples=20)
@given(programs(), st.integers(0, 31))
def test_fused_elementwise_takes_packed_constants(case: Case, which: int) -> None:
    constants = frozenset(i for i in range(len(case.arrays)) if which >> i & 1)
    signature = sign(FUSED_ELEMENTWISE, case.arrays, {"program": case.program}, constants)
    kernel = _NUMPY
    same(run(kernel, signature, case.arrays)[0], case.wanted, rtol=1e-6)


@pytest.mark.slow
def test_many_elementwise_chains_have_the_bits_of_their_steps() -> None:
    for seed in range(200):
        _check(seeded_program(seed))


def test_squares_of_a_constant_exponent_are_squares() -> None:
    """Checks that a step reads what it packed: a square has other bits than a power."""
    x = normal(0, (1000,))[0]
    program, two = (step_of("pow", 0, 1), step_of("neg", 2)), np.asarray(2, np.float32)
    signature = sign(FUSED_ELEMENTWISE, [x, two], {"program": program}, {1})
    kernel = _NUMPY
    assert run(kernel, signature, [x, two])[0].tobytes() == (-np.square(x)).tobytes()
    assert [len(a) for a in map(np.atleast_1d, kernel.pack(signature, {1: two}))] == [2, 1]


def test_fused_elementwise_of_large_tensors_needs_a_block_at_most() -> None:
    arrays = normal(0, (64, 100, 100), (64, 1, 1), (64, 100, 100))
    program = (step_of("mul", 0, 1), step_of("add", 3, 2), step_of("swish", 4), step_of("sub", 5, 0))
    signature = sign(FUSED_ELEMENTWISE, arrays, {"program": program})
    kernel = _NUMPY
    assert kernel.workspace(signature) <= 1 << 20
    if fused.CACHED_BYTES > 200:  # with tiny blocks there are too many to bind
        y = run_without_allocation(kernel, signature, arrays)
        assert y.tobytes() == Case(program, arrays).wanted.tobytes()
    assert FUSED_ELEMENTWISE.cost(signature).bytes == sum(a.nbytes for a in arrays) + signature.y.nbytes


def _forwards(specs: list[TensorSpec], *program: Step, apart: bool) -> set[int]:
    signature = FUSED_ELEMENTWISE.sign(specs, {"program": program, "apart": apart})
    forwards = FUSED_ELEMENTWISE.forwards(signature)
    assert all((o.output, o.offset) == (0, 0) for o in forwards)
    return {o.input for o in forwards}


@pytest.mark.parametrize("apart", [False, True])
def test_an_output_overwrites_what_its_first_writer_may_or_what_is_read_no_more(apart: bool) -> None:
    specs = [TensorSpec((8, 8), np.dtype(d)) for d in ("bool", "float32", "float32", "float32")]
    chosen = step_of("neg", 3), step_of("where", 0, 1, 4)
    assert _forwards(specs, *chosen, apart=apart) == ({1, 2, 3} if apart else {2, 3})
    floats = [specs[1]] * 2
    assert _forwards(floats, step_of("less", 0, 1), step_of("where", 2, 0, 0), apart=apart) == {0, 1}
    assert _forwards(floats, step_of("neg", 0), step_of("add", 2, 1), apart=apart) == ({0, 1} if apart else {0})


def test_a_chain_needs_no_scratch_unless_its_output_is_apart() -> None:
    specs, program = [TensorSpec((8, 8), np.dtype("float32"))] * 2, (step_of("neg", 0), step_of("add", 2, 1))
    kernel = _NUMPY
    assert kernel.workspace(FUSED_ELEMENTWISE.sign(specs, {"program": program})) == 0
    assert kernel.workspace(FUSED_ELEMENTWISE.sign(specs, {"program": program, "apart": True})) > 0


def test_a_chain_has_one_buffer_and_a_fork_two() -> None:
    spec = TensorSpec((8,), np.dtype("float32"))
    chain = (step_of("abs", 0), step_of("sqrt", 1), step_of("neg", 2), step_of("exp", 3))
    assert assign_buffers(chain, signatures(chain, (spec,)), 1) == (0, 0, 0)
    fork = (step_of("abs", 0), step_of("sqrt", 1), step_of("neg", 1), step_of("add", 2, 3))
    assert assign_buffers(fork, signatures(fork, (spec,)), 1) == (0, 1, 0)


def test_an_elementwise_program_reads_as_text() -> None:
    assert str(step_of("leaky_relu", 3, alpha=0.5)) == "leaky_relu($3 alpha=0.5)"
    assert str(step_of("add", 0, 1)) == "add($0,$1)"


def test_fused_elementwise_refuses_programs_that_are_no_chain() -> None:
    x, row = TensorSpec((3, 4), np.dtype("float32")), TensorSpec((4,), np.dtype("float32"))
    with pytest.raises(AttributeValueError, match="one step or more"):
        FUSED_ELEMENTWISE.sign([x], {"program": ()})
    with pytest.raises(ArityError, match="reads a value that is not there yet"):
        FUSED_ELEMENTWISE.sign([x], {"program": (step_of("neg", 1),)})
    with pytest.raises(ShapeError, match=r"neg\(\$1\) has shape \(4,\), and the output \(3, 4\)"):
        FUSED_ELEMENTWISE.sign([x, row], {"program": (step_of("neg", 1), step_of("add", 0, 2))})
    with pytest.raises(SchemaError, match="split has 2 outputs"):
        FUSED_ELEMENTWISE.sign([x], {"program": (step_of("split", 0, sizes=(1, 2), axis=0),)})
    assert evaluate(FUSED_ELEMENTWISE, np.ones(3, np.float32), program=(step_of("neg", 0),))[0].tolist() == [-1, -1, -1]


_CODES = {"look_up", "quantised_add"}
"""Compiled, they want neighbours side by side; steps of a chain are numpy's kernels."""
ELEMENTWISE = [schema for schema in REGISTRY.values() if schema.elementwise]


@pytest.mark.parametrize("schema", ELEMENTWISE, ids=lambda schema: schema.name)
def test_kernels_of_elementwise_operators_read_any_part_of_their_inputs(schema: OpSchema) -> None:
    for kernel in schema.kernels:
        if kernel.backend == NUMPY or schema.name not in _CODES:
            assert (kernel.contiguous, kernel.reads) == (no_contiguity, any_strides)


def test_elementwise_operators_declare_that_they_are() -> None:
    names = {schema.name for schema in ELEMENTWISE}
    assert names >= {"add", "relu", "clip", "where", "cast", "pow", "gelu", "sum", "less", "is_inf", "prelu", "not"}
    assert names.isdisjoint({"softmax", "layer_norm", "concat", "transpose", "reduce_sum", "batch_norm", "identity"})
