"""An operator that computes in float32 on tensors that are stored in 16 bits, stripe after stripe.

A stripe of each input is converted into a scratch array, the operator's own kernel computes there, and its result is
rounded into the output. Scratch arrays are a fraction of the tensors, and sums are those of float32.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import evolve, frozen

from ops.common.thunks import in_turn
from ops.common.tiling import counted, elementwise_rows, elementwise_stripes
from ops.half.convert import native_copy, plain_copy
from ops.schema.attributes import Attribute, element_type
from ops.schema.backends import EVERY, NUMBA, NUMPY, ONEDNN, PLAIN
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Index,
    Kernel,
    OpSchema,
    Overwrite,
    Signature,
    Specs,
    Stripe,
    Stripes,
    Thunk,
    any_strides,
    unless,
)
from ops.schema.workspace import bytes_spec, carve, dense_bytes
from ops.tensor.errors import AttributeValueError, DtypeError, OpError, SchemaError
from ops.tensor.layout import Layout
from ops.tensor.spec import BFLOAT16, FLOATS, HALVES, Array, TensorSpec

SINGLE = np.dtype("float32")
LEAST, MOST = 16 << 10, 128 << 10
"""Elements that a stripe should have in all its scratch arrays: up to half a megabyte, which stays in a cache."""
_STRIPES = 8
"""Stripes of smaller tensors: with fewer, scratch arrays are as large as the tensors. None is shorter than LEAST."""
_ASKED: Mapping[str, Sequence[str]] = MappingProxyType({ONEDNN: EVERY, NUMBA: PLAIN, NUMPY: (NUMPY,)})
"""The back-ends that are asked for the kernels of stripes, by the back-end that computes them all."""
_MOST_STRIPES = 4096
"""Stripes of the largest tensors, whose stripes are longer than MOST: each is bound."""


@frozen(eq=False)
class Inner:
    """The operator that computes, with its attributes."""

    schema: OpSchema
    attrs: Attrs

    def __str__(self) -> str:
        return self.schema.name


def _inner(value: Any) -> Inner:
    if not isinstance(value, Inner):
        raise TypeError("it must be an operator with its attributes")
    return value


def wide(spec: TensorSpec) -> TensorSpec:
    """Returns the spec in float32 of a tensor that is stored in 16 bits, and other specs as they are."""
    return spec.with_dtype(SINGLE) if spec.dtype in HALVES else spec


def widened(signature: Signature) -> Signature:
    """Returns the signature of the inner operator."""
    inner: Inner = signature.attrs["operator"]
    signed = inner.schema.sign([wide(s) for s in signature.inputs], inner.attrs, signature.constants)
    return evolve(signed, threads=signature.threads)


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    inner: Inner = attrs["operator"]
    if attrs["to"] not in HALVES:
        raise AttributeValueError(f"stores in float16 or bfloat16, not in {attrs['to']}")
    outputs = inner.schema.sign([wide(s) for s in inputs], inner.attrs).outputs
    if len(outputs) != 1:
        raise SchemaError(f"{inner} has {len(outputs)} outputs; it must have one")
    return tuple(s.with_dtype(attrs["to"]) if s.dtype == SINGLE else s for s in outputs)


@frozen(eq=False)
class Part:
    """A kind of stripe, as a call of the inner operator."""

    signature: Signature
    kernel: Kernel


def _stripes(whole: Signature, schema: OpSchema) -> Stripes:
    """Returns the stripes of the inner operator."""
    elements = counted(whole)
    most = max(min(MOST, max(LEAST, elements // _STRIPES)), elements // _MOST_STRIPES)
    return (elementwise_stripes if schema.elementwise else schema.stripes)(whole, most)


def _parts(signature: Signature, backends: Sequence[str]) -> tuple[Part, ...]:
    """Returns the kinds of stripes, in their order."""
    whole = widened(signature)
    schema: OpSchema = signature.attrs["operator"].schema
    stripes = _stripes(whole, schema)
    parts = []
    for stripe in map(stripes.at, stripes.kinds):
        inputs = [_cut(s, i) for s, i in zip(whole.inputs, stripe.inputs, strict=True)]
        part = evolve(schema.sign(inputs, stripe.attrs, whole.constants), threads=whole.threads)
        parts.append(Part(part, schema.kernel(part, backends)))
    names = {part.kernel.name for part in parts}
    if len(names) > 1:  # all stripes share one set of packed arrays
        parts = [Part(p.signature, schema.kernel(p.signature, (NUMPY,))) for p in parts]
    return tuple(parts)


def _cut(spec: TensorSpec, index: tuple[slice, ...]) -> TensorSpec:
    lengths = [len(range(*s.indices(n))) for s, n in zip(index, spec.shape, strict=False)]
    return spec.with_shape((*lengths, *spec.shape[len(lengths) :]))


def _scratch_specs(part: Part) -> tuple[TensorSpec, ...]:
    """Returns the specs of scratch arrays: for each input that is not constant, for the output and for the kernel."""
    changing = tuple(s for i, s in enumerate(part.signature.inputs) if i not in part.signature.constants)
    return *changing, part.signature.y, *part.kernel.temporaries(part.signature)


Copy = Callable[[Array, Array], Thunk]


def _bind(backends: Sequence[str], copy: Copy, call: Binding) -> Thunk:
    parts, inner = _parts(call.signature, backends), call.attrs["operator"]
    stripes = _stripes(widened(call.signature), inner.schema)
    steps = (_steps(parts[stripes.kind(i)], stripe, copy, call) for i, stripe in enumerate(stripes))
    return in_turn(*chain.from_iterable(steps))


def _steps(part: Part, stripe: Stripe, copy: Copy, call: Binding) -> list[Thunk]:
    """Returns the steps of one stripe: convert, compute, round."""
    scratch = carve(call.temporaries[0], *_scratch_specs(part))
    kept, packed = _constants(part, call.packed)
    constants = part.signature.constants
    changing = len(part.signature.inputs) - len(constants)
    narrow, y, temporaries = iter(scratch[:changing]), scratch[changing], scratch[changing + 1 :]
    steps: list[Thunk] = []
    inputs: list[Array] = []
    for position, index in enumerate(stripe.inputs):
        if position in kept:
            inputs.append(_readable(part, position, kept[position][_places(index)]))
        elif position in constants:
            inputs.append(_nothing(part.signature.inputs[position]))
        else:
            inputs.append(next(narrow))
            steps.append(copy(call.inputs[position][_places(index)], inputs[-1]))
    steps.append(part.kernel.bind(Binding(part.signature, tuple(inputs), (y,), temporaries, packed)))
    steps.append(copy(y, call.y[_places(stripe.output)]))
    return steps


def _constants(part: Part, packed: tuple[Array, ...]) -> tuple[dict[int, Array], tuple[Array, ...]]:
    """Returns the constants that the inner kernel reads as they are, by position, and what it has packed of them."""
    kept = _kept(part)
    own = len(packed) - len(kept)
    return dict(zip(kept, packed[own:], strict=True)), packed[:own]


def _kept(part: Part) -> list[int]:
    """Returns the positions of constants that the inner kernel reads as they are."""
    return sorted(part.signature.constants.difference(part.kernel.unread_after_pack(part.signature)))


def _places(index: Index) -> Any:
    """Returns the index with an ellipsis, so that it selects an array even from a tensor without axes."""
    return (*index, ...)


def _readable(part: Part, position: int, array: Array) -> Array:
    """Returns a part of a constant in a layout that the kernel reads; it may be copied once, when it is bound."""
    reads = part.kernel.accepts(part.signature, position, Layout.of(array))
    return array if reads else np.array(array, order="C")


def _temporaries(backends: Sequence[str], signature: Signature) -> Specs:
    """Returns the spec of bytes that are enough for each part: the parts use them in turn."""
    needed = (dense_bytes(*_scratch_specs(part)) for part in _parts(signature, backends))
    return (bytes_spec(max(needed, default=0)),)


def _pack(backends: Sequence[str], signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    """Returns the packed arrays of the inner kernel, then the constants that it reads as they are, in float32."""
    first, *_ = _parts(signature, backends)
    whole = {i: np.array(a, wide(signature.inputs[i]).dtype, order="C") for i, a in constants.items()}
    return (*first.kernel.pack(first.signature, whole), *(whole[i] for i in _kept(first)))


def _packed_specs(backends: Sequence[str], signature: Signature) -> Specs:
    first, *_ = _parts(signature, backends)
    return (*first.kernel.packed_specs(first.signature), *(wide(signature.inputs[i]) for i in _kept(first)))


def _nothing(spec: TensorSpec) -> Array:
    """Returns a stand-in for a constant that is read only when it is packed: of that shape, filled with NaN or 0."""
    return np.broadcast_to(np.full((), np.nan if spec.dtype in FLOATS else 0, spec.dtype), spec.shape)


def _all_constants(signature: Signature) -> tuple[int, ...]:
    return tuple(sorted(signature.constants))


def inner_kernel(signature: Signature, backend: str) -> Kernel:
    """Returns the kernel that computes the stripes on a back-end; it packs the constants for all of them."""
    first, *_ = _parts(signature, _ASKED[backend])
    return first.kernel


def _supports(backend: str, backends: Sequence[str], signature: Signature) -> bool:
    """Returns whether a back-end has its own kernel for all stripes."""
    parts = _parts(signature, backends)
    return bool(parts) and all(part.kernel.backend == backend for part in parts)


def _kernel(backend: str, copy: Copy) -> Kernel:
    backends = _ASKED[backend]
    return Kernel(
        backend,
        partial(_bind, backends, copy),
        partial(_temporaries, backends),
        pack=partial(_pack, backends),
        packed_specs=partial(_packed_specs, backends),
        unread_after_pack=_all_constants,
        reads_packed_at_bind=True,
        unsupported=unless(partial(_supports, backend, backends), "not all parts have a kernel of this back-end"),
        writes=any_strides,
        backend=backend,
    )


def _overwrites(signature: Signature) -> tuple[Overwrite, ...]:
    """Returns those of the inner operator over tensors of the same type: a stripe is read before it is written."""
    whole = widened(signature)
    return tuple(
        o
        for o in signature.attrs["operator"].schema.overwrites(whole)
        if not o.offset and signature.inputs[o.input] == signature.outputs[o.output]
    )


def _cost(signature: Signature) -> Cost:
    inner = signature.attrs["operator"].schema.cost(widened(signature))
    return Cost(inner.flops, sum(s.nbytes for s in signature.inputs + signature.outputs))


def _rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of some rows: that of the inner operator, in 16 bits."""
    inner: Inner = signature.attrs["operator"]
    rows = elementwise_rows if inner.schema.elementwise else inner.schema.rows
    stripe = rows(widened(signature), first, last, axis)
    if stripe is None:
        return None
    return evolve(stripe, attrs={**signature.attrs, "operator": Inner(inner.schema, stripe.attrs)})


IN_SINGLE = OpSchema(
    "in_single",
    _infer,
    (
        _kernel(ONEDNN, native_copy),
        _kernel(NUMBA, native_copy),
        _kernel(NUMPY, plain_copy),
    ),
    arity=(1, 1 << 16),
    attributes=(Attribute("operator", _inner), Attribute("to", element_type)),
    overwrites=_overwrites,
    cost=_cost,
    rows=_rows,
    summary="An operator of float32 on tensors stored in 16 bits; `to` is how its output is stored.",
)
OPS = (IN_SINGLE,)


def stored(schema: OpSchema, inputs: Sequence[TensorSpec], attrs: Attrs) -> tuple[OpSchema, Attrs] | None:
    """Returns the operator that computes in float32 on bfloat16; None if inputs have no bfloat16, or other floats."""
    floats = {s.dtype for s in inputs if s.dtype in FLOATS or s.dtype == BFLOAT16}
    return None if schema is IN_SINGLE or floats != {BFLOAT16} else (IN_SINGLE, _in_single(schema, attrs))


def _in_single(schema: OpSchema, attrs: Attrs) -> Attrs:
    return {"operator": Inner(schema, attrs), "to": BFLOAT16}


def sign_stored(
    schema: OpSchema, inputs: Sequence[TensorSpec], attrs: Attrs, constants: frozenset[int]
) -> tuple[OpSchema, Signature]:
    """Returns the operator and its signature, or those in float32 if it does not take bfloat16. Raises OpError.

    Bfloat16 beside other floats raises, as it does elsewhere, and so do operators with several outputs.
    """
    try:
        return schema, schema.sign(inputs, attrs, constants)
    except DtypeError as error:
        other = stored(schema, inputs, attrs)
        if other is None:
            raise
        try:
            return IN_SINGLE, IN_SINGLE.sign(inputs, other[1], constants)
        except OpError:
            raise error from None
