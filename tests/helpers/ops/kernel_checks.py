"""Checks of every kernel: results, any strides, permitted overwrites, unchanged inputs, no allocation."""

import tracemalloc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np
from attrs import evolve

from ops.schema.schema import Binding, Kernel, OpSchema, Overwrite, Signature, Thunk
from ops.tensor.layout import Layout
from ops.tensor.spec import FLOATS, Array, TensorSpec, spec_of

MOST_SCRATCH = 8 << 10
"""Bytes that a thunk may take for a moment: iterators and Python objects, but neither an array nor a cast buffer."""
_GARBAGE = 0xA5


def garbage(spec: TensorSpec) -> Array:
    """Returns a dense array of that spec, filled with garbage."""
    return np.full(spec.nbytes, _GARBAGE, np.uint8).view(spec.dtype).reshape(spec.shape)


def garbage_for(kernel: Kernel, signature: Signature) -> tuple[Array, ...]:
    """Returns the temporaries of a call, each by itself and full of garbage."""
    return tuple(map(garbage, kernel.temporaries(signature)))


def sign(
    schema: OpSchema,
    arrays: Sequence[Array],
    attrs: Mapping[str, Any],
    constants: Iterable[int] = (),
    threads: int = 1,
) -> Signature:
    """Returns the signature of the operator for these arrays; `constants` may name inputs that are absent."""
    present = frozenset(constants).intersection(range(len(arrays)))
    return evolve(schema.sign([spec_of(a) for a in arrays], attrs, present), threads=threads)


def kernels(schema: OpSchema, signature: Signature) -> list[Kernel]:
    """Returns all kernels that take the signature; at least one."""
    supported = [k for k in schema.kernels if k.supports(signature)]
    assert supported, f"no kernel of {schema.name} takes {signature.inputs}"
    return supported


def bind(kernel: Kernel, signature: Signature, inputs: Sequence[Array], outputs: Sequence[Array]) -> Thunk:
    """Binds a kernel, with temporaries full of garbage; inputs that must be dense are copied.

    Inputs that are not constant, and can be written, have their data behind that, and so has what is packed, where the
    kernel does not say that it must be there before.
    """
    operands = tuple(
        a if kernel.accepts(signature, i, Layout.of(a)) else np.array(a, order="C")
        for i, a in enumerate(map(np.asarray, inputs))
    )
    packed = pack(kernel, signature, operands)
    operands = without_replaced(kernel, signature, operands)
    later = [(a, a.copy()) for i, a in enumerate(operands) if i not in signature.constants and a.flags.writeable]
    rooms = packed
    if kernel.unread_after_pack(signature) and not kernel.reads_packed_at_bind:
        rooms = tuple(garbage(spec_of(array)) for array in packed)
        later += zip(rooms, packed, strict=True)
    for room, _ in later:
        np.copyto(room, _gone(spec_of(room)))
    thunk = kernel.bind(Binding(signature, operands, tuple(outputs), garbage_for(kernel, signature), rooms))
    for room, array in later:
        np.copyto(room, array)
    return thunk


def pack(kernel: Kernel, signature: Signature, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Returns what the kernel packs. Fails where it did not declare these specs, or returns bytes of a constant."""
    if not signature.constants:
        return ()
    packed = kernel.pack(signature, {i: inputs[i] for i in signature.constants})
    assert tuple(map(spec_of, packed)) == kernel.packed_specs(signature), f"{kernel.name} packed other arrays"
    for array in packed:
        assert not any(np.may_share_memory(array, a) for a in inputs), f"{kernel.name} packed no copy"
    return packed


def without_replaced(kernel: Kernel, signature: Signature, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Returns the inputs; those whose data the kernel has packed hold NaN, or garbage."""
    dropped = signature.constants.intersection(kernel.unread_after_pack(signature))
    return tuple(_gone(s) if i in dropped else a for i, (s, a) in enumerate(zip(signature.inputs, inputs, strict=True)))


def _gone(spec: TensorSpec) -> Array:
    return np.full(spec.shape, np.nan, spec.dtype) if spec.dtype in FLOATS else garbage(spec)


def run(kernel: Kernel, signature: Signature, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Returns new outputs. Fails where the kernel changes an input."""
    before = [a.tobytes() for a in inputs]
    outputs = tuple(garbage(s) for s in signature.outputs)
    thunk = bind(kernel, signature, inputs, outputs)
    with np.errstate(all="ignore"):
        thunk()
    assert [a.tobytes() for a in inputs] == before, f"{kernel.name} changed an input"
    return outputs


def run_over(
    kernel: Kernel, signature: Signature, inputs: Sequence[Array], position: int, shared: Array | None = None
) -> tuple[Array, ...]:
    """Returns the outputs, of which the first is written over a copy of an input, or over `shared`, which equals it."""
    over = np.array(inputs[position], order="C") if shared is None else shared
    outputs = (over, *(garbage(s) for s in signature.outputs[1:]))
    thunk = bind(kernel, signature, [over if i == position else a for i, a in enumerate(inputs)], outputs)
    with np.errstate(all="ignore"):
        thunk()
    return outputs


def _every(step: int, ndim: int) -> tuple[slice | EllipsisType, ...]:
    return (*(slice(None, None, step) for _ in range(ndim)), ...)


def strided_copies(array: Array) -> Iterator[Array]:
    """Yields the same elements in other layouts: axes reversed, with gaps, backwards."""
    yield np.array(array.T, order="C").T
    gaps = garbage(TensorSpec(tuple(2 * n for n in array.shape), array.dtype))
    every_second = gaps[_every(2, array.ndim)]
    every_second[...] = array
    yield every_second
    backwards = _every(-1, array.ndim)
    yield np.array(array[backwards], order="C")[backwards]


def nested_copy(array: Array, axis: int) -> Array:
    """Returns a copy inside an array that is longer along an axis, where that array has it; so concatenations lie."""
    if axis >= array.ndim:
        return np.array(array, order="C")
    wider = garbage(TensorSpec(tuple(n + 3 * (i == axis) for i, n in enumerate(array.shape)), array.dtype))
    inside = wider[(*(slice(None),) * axis, slice(1, 1 + array.shape[axis]))]
    inside[...] = array
    return inside


def same(got: Array, wanted: Array, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Fails where shapes, dtypes or (beyond the tolerances) elements differ; NaN equals NaN."""
    assert got.shape == wanted.shape, f"shape {got.shape}, not {wanted.shape}"
    assert got.dtype == wanted.dtype, f"dtype {got.dtype}, not {wanted.dtype}"
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)


def check_results(
    schema: OpSchema,
    arrays: Sequence[Array],
    wanted: Sequence[Array],
    rtol: float = 0.0,
    atol: float = 0.0,
    **attrs: Any,
) -> None:
    """Checks that every kernel gives `wanted`, which was computed independently."""
    signature = sign(schema, arrays, attrs)
    for kernel in kernels(schema, signature):
        for got, want in zip(run(kernel, signature, arrays), wanted, strict=True):
            same(got, want, rtol, atol)


def check_strides(
    schema: OpSchema, arrays: Sequence[Array], rtol: float = 0.0, atol: float = 0.0, **attrs: Any
) -> None:
    """Checks that every kernel gives the same for inputs in any layout, and the same bits inside wider arrays."""
    signature = sign(schema, arrays, attrs)
    dense = [np.array(a, order="C") for a in arrays]
    for kernel in kernels(schema, signature):
        wanted = run(kernel, signature, dense)
        for axis in range(max((a.ndim for a in arrays), default=0)):
            for got, want in zip(run(kernel, signature, [nested_copy(a, axis) for a in arrays]), wanted, strict=True):
                same(got, want)
        for stored in zip(*(strided_copies(a) for a in arrays), strict=True):
            for got, want in zip(run(kernel, signature, stored), wanted, strict=True):
                same(got, want, rtol, atol)


def _run_overwriting(
    kernel: Kernel, signature: Signature, arrays: Sequence[Array], way: Overwrite
) -> tuple[Array, ...]:
    taken, spec = arrays[way.input], signature.outputs[way.output]
    assert way.offset >= 0
    assert way.offset + spec.nbytes <= taken.nbytes, f"{way} leaves the input"
    shared = np.array(taken, order="C")
    room = shared.reshape(-1).view(np.uint8)[way.offset : way.offset + spec.nbytes]
    outputs = [garbage(s) for s in signature.outputs]
    outputs[way.output] = room.view(spec.dtype).reshape(spec.shape)
    inputs = [shared if i == way.input else a for i, a in enumerate(arrays)]
    thunk = kernel.bind(Binding(signature, tuple(inputs), tuple(outputs), garbage_for(kernel, signature)))
    with np.errstate(all="ignore"):
        thunk()
    return tuple(outputs)


def check_overwrites(schema: OpSchema, arrays: Sequence[Array], **attrs: Any) -> int:
    """Checks that every declared overwrite gives the bits of a run without it; returns how many were declared."""
    dense = [np.array(a, order="C") for a in arrays]
    signature = sign(schema, dense, attrs)
    ways = schema.overwrites(signature)
    for kernel in kernels(schema, signature):
        wanted = run(kernel, signature, dense)
        for way in ways:
            for got, want in zip(_run_overwriting(kernel, signature, dense, way), wanted, strict=True):
                same(got, want)
    return len(ways)


def scratch_bytes(thunk: Thunk) -> int:
    """Returns the most bytes that a call of a thunk holds beyond those held before it: the least of three calls.

    The first call is not counted. What other threads of the process take as it runs is counted, hence the least.
    numpy's iterators own buffers of a fixed number of elements; they are made small, so that only arrays are seen.
    """
    with np.errstate(all="ignore"):
        np.setbufsize(16)
        thunk()
        tracemalloc.start()
        try:
            return min(_peak_of(thunk) for _ in range(3))
        finally:
            tracemalloc.stop()


def _peak_of(thunk: Thunk) -> int:
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    thunk()
    return tracemalloc.get_traced_memory()[1] - before


def run_without_allocation(
    kernel: Kernel,
    signature: Signature,
    inputs: Sequence[Array],
    y: Array | None = None,
    scratch_limit: int = MOST_SCRATCH,
) -> Array:
    """Returns the first output, in `y` if that is given. Fails where the kernel takes memory of its own as it runs."""
    outputs = [garbage(s) for s in signature.outputs] if y is None else [y]
    taken = scratch_bytes(bind(kernel, signature, inputs, outputs))
    assert taken <= scratch_limit, f"{kernel.name} took {taken} bytes while it ran"
    return outputs[0]


def check_no_allocation(
    schema: OpSchema, arrays: Sequence[Array], scratch_limit: int = MOST_SCRATCH, **attrs: Any
) -> None:
    """Checks that no kernel allocates memory while it runs.

    Tensors must have at least 128 KiB, or nothing would be seen.
    """
    signature = sign(schema, arrays, attrs)
    assert max(s.nbytes for s in signature.inputs + signature.outputs) >= 16 * scratch_limit, (
        "too small to see an allocation"
    )
    for kernel in kernels(schema, signature):
        run_without_allocation(kernel, signature, arrays, scratch_limit=scratch_limit)


def check_kernels(
    schema: OpSchema,
    arrays: Sequence[Array],
    wanted: Sequence[Array],
    rtol: float = 0.0,
    atol: float = 0.0,
    **attrs: Any,
) -> None:
    """Checks results, strides and overwrites together, on small arrays."""
    check_results(schema, arrays, wanted, rtol, atol, **attrs)
    check_strides(schema, arrays, rtol, atol, **attrs)
    check_overwrites(schema, arrays, **attrs)
