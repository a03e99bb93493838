"""A chain of elementwise operators as one loop: block after block goes through all steps while it is in the cache.

The kernels are those of the steps, and so are the bits (but for the sign of a NaN, which depends on where it lies);
what lies between two steps is no larger than a block.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from attrs import evolve, frozen

from ops.common.blocks import aligned, blocks
from ops.common.thunks import in_turn
from ops.common.tiling import elementwise_rows
from ops.elementwise.program import (
    Program,
    assign_buffers,
    check_shapes,
    output_buffer,
    overwritable,
    read_program,
    signatures,
)
from ops.schema.attributes import Attribute, flag
from ops.schema.backends import NUMBA, NUMPY
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Overwrite,
    Signature,
    Specs,
    Thunk,
    any_strides,
    no_packing,
    unless,
)
from ops.schema.workspace import bytes_spec, carve
from ops.tensor.spec import Array, Shape, TensorSpec, spec_of
from ops.vector.bytecode import Script, fits
from ops.vector.kernel import NoOpcodeError, encoder_of, run

CACHED_BYTES = 2 << 20
"""Most bytes of one block: of the output, of whole inputs and of what lies between. Trades cache misses of large blocks
for calls of small ones; tools/bench_kernels.py --operators fused_elementwise times chains."""
_COUNT = np.dtype("int64")


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    signed = signatures(attrs["program"], inputs)
    check_shapes(attrs["program"], signed)
    return signed[-1].outputs


@frozen(eq=False)
class _Loop:
    """The facts of a program that need no arrays."""

    signature: Signature

    @property
    def program(self) -> Program:
        """Returns the steps."""
        program: Program = self.signature.attrs["program"]
        return program

    @cached_property
    def signed(self) -> tuple[Signature, ...]:
        """Returns the signatures of the steps."""
        return signatures(self.program, self.signature.inputs, self.signature.constants)

    @cached_property
    def buffers(self) -> tuple[int, ...]:
        """Returns the buffer of each step but the last."""
        return assign_buffers(self.program, self.signed, len(self.signature.inputs))

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Returns the bytes of an element of each buffer."""
        sizes = [s.y.dtype.itemsize for s in self.signed]
        return tuple(
            max(size for size, buffer in zip(sizes, self.buffers, strict=False) if buffer == number)
            for number in range(max(self.buffers, default=-1) + 1)
        )

    @cached_property
    def size(self) -> int:
        """Returns the number of elements of one block."""
        y = self.signature.y
        whole = sum(s.dtype.itemsize for s in self.signature.inputs if s.shape == y.shape)
        each = whole + y.dtype.itemsize + sum(self.widths)
        return max(1, min(y.size, CACHED_BYTES // each // 64 * 64))

    @cached_property
    def at_output(self) -> int:
        """Returns the buffer that lies in the output; -1 where there is none, or the attribute `apart` forbids it.

        It saves a buffer; but then the output may not be written over what is read later.
        """
        if self.signature.attrs["apart"]:
            return -1
        return output_buffer(self.program, self.signed, self.buffers, len(self.signature.inputs))

    @property
    def first_write(self) -> int:
        """Returns the first step that writes into the output."""
        return self.buffers.index(self.at_output) if self.at_output >= 0 else len(self.buffers)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """Returns the kernel of each step, always numpy's: others take longer to start, once for each block."""
        return tuple(step.schema.kernel(s, (NUMPY,)) for step, s in zip(self.program, self.signed, strict=True))

    def of_block(self, number: int, operands: Sequence[TensorSpec], shape: Shape) -> Signature:
        """Returns the signature of a step on a block."""
        signed = self.signed[number]
        return evolve(signed, inputs=tuple(operands), outputs=(signed.y.with_shape(shape),))

    @cached_property
    def temporaries(self) -> tuple[TensorSpec, ...]:
        """Returns the specs of the buffers, and of the bytes that the steps use in turn."""
        most = max(map(self._scratch_bytes, range(len(self.program))))
        own = (0 if buffer == self.at_output else width for buffer, width in enumerate(self.widths))
        sizes = (*(width * self.size for width in own), most)
        return tuple(map(bytes_spec, sizes))

    def _scratch_bytes(self, number: int) -> int:
        """Returns the bytes of temporaries that a step needs for its largest block."""
        y = self.signature.y
        operands = [
            s.with_shape((self.size,) if s.shape == y.shape else () if s.size == 1 else (self.size,))
            for s in self.signed[number].inputs
        ]
        return self.kernels[number].workspace(self.of_block(number, operands, (self.size,)))


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    """Returns how many arrays each step has packed, and then these arrays."""
    loop, counts, arrays = _Loop(signature), [], list[Array]()
    for step, signed, kernel in zip(loop.program, loop.signed, loop.kernels, strict=True):
        own = {i: constants[v] for i, v in enumerate(step.operands) if i in signed.constants}
        packed = kernel.pack(signed, own) if own else ()
        counts.append(len(packed))
        arrays += packed
    return (np.array(counts, _COUNT), *arrays) if arrays else ()


def _packed_specs(signature: Signature) -> Specs:
    loop = _Loop(signature)
    steps = zip(loop.signed, loop.kernels, strict=True)
    specs = [spec for signed, kernel in steps if signed.constants for spec in kernel.packed_specs(signed)]
    return (TensorSpec((len(loop.program),), _COUNT), *specs) if specs else ()


def _unpack(packed: tuple[Array, ...], steps: int) -> list[tuple[Array, ...]]:
    """Returns the arrays that each step has packed."""
    if not packed:
        return [()] * steps
    ends = packed[0].cumsum() + 1
    return [packed[end - count : end] for count, end in zip(packed[0].tolist(), ends.tolist(), strict=True)]


def _bind(call: Binding) -> Thunk:
    return in_turn(*_steps(call, _Loop(call.signature)))


def _steps(call: Binding, loop: _Loop) -> Iterator[Thunk]:
    """Returns all steps of one block, then of the next."""
    *places, scratch = call.temporaries
    packed = _unpack(call.packed, len(loop.program))
    inputs, y = aligned(call.inputs, call.y)
    for index in blocks(y.shape, loop.size):
        here = y[index]
        values = [a[index] if a.ndim else a for a in inputs]
        for number, (step, kernel) in enumerate(zip(loop.program, loop.kernels, strict=True)):
            operands = tuple(values[i] for i in step.operands)
            inside = number == len(loop.buffers) or loop.buffers[number] == loop.at_output
            out = here if inside else _fitted(places[loop.buffers[number]], loop.signed[number], here)
            signature = loop.of_block(number, tuple(map(spec_of, operands)), here.shape)
            temporaries = carve(scratch, *kernel.temporaries(signature))
            values.append(out)
            yield kernel.bind(Binding(signature, operands, (out,), temporaries, packed[number]))


def _fitted(buffer: Array, signature: Signature, like: Array) -> Array:
    """Returns the first bytes of a buffer as an array of the output's dtype and of the shape of `like`."""
    dtype = signature.y.dtype
    array: Array = buffer[: like.size * dtype.itemsize].view(dtype).reshape(like.shape)
    return array


def _script(signature: Signature, packed: tuple[Array, ...] = ()) -> Script:
    """Writes the program as instructions of the compiled interpreter. Raises NoOpcodeError where a step has none."""
    loop, script = _Loop(signature), Script(len(signature.inputs))
    values = list(range(len(signature.inputs)))
    own = _unpack(packed, len(loop.program))
    for step, signed, constants in zip(loop.program, loop.signed, own, strict=True):
        values.append(encoder_of(step.schema, signed)(script, signed, [values[i] for i in step.operands], constants))
    return script


def _is_vector(signature: Signature) -> bool:
    """Returns whether all steps are instructions of the interpreter, and their number is not above its limit."""
    try:
        return fits(_script(signature))
    except NoOpcodeError:
        return False


_not_vector = unless(_is_vector, "a step that the interpreter does not have, or too many steps")


def _bind_vector(call: Binding) -> Thunk:
    try:
        script = _script(call.signature, call.packed)
    except NoOpcodeError:
        return _bind(call)
    return run(script, call.inputs, call.y)


def _vector_temporaries(signature: Signature) -> Specs:
    """Returns numpy's temporaries where packed data (the exponent of a power) decide whether it is an instruction."""
    loop = _Loop(signature)
    unsure = any(k.pack is not no_packing and s.constants for k, s in zip(loop.kernels, loop.signed, strict=True))
    return loop.temporaries if unsure else ()


def _temporaries(signature: Signature) -> Specs:
    return _Loop(signature).temporaries


def _overwrites(signature: Signature) -> tuple[Overwrite, ...]:
    loop = _Loop(signature)
    inputs = overwritable(loop.program, loop.signed, signature.inputs, loop.first_write)
    return tuple(Overwrite(0, i) for i in inputs)


def _cost(signature: Signature) -> Cost:
    loop = _Loop(signature)
    flops = sum(step.schema.cost(s).flops for step, s in zip(loop.program, loop.signed, strict=True))
    return Cost(flops, sum(s.nbytes for s in (*signature.inputs, signature.y)))


FUSED_ELEMENTWISE = OpSchema(
    name="fused_elementwise",
    summary="Elementwise operators one after the other; all of them have the shape of the output.",
    infer=_infer,
    kernels=(
        Kernel(
            "vector",
            _bind_vector,
            _vector_temporaries,
            pack=_pack,
            packed_specs=_packed_specs,
            unsupported=_not_vector,
            writes=any_strides,
            backend=NUMBA,
        ),
        Kernel("blocks", _bind, _temporaries, pack=_pack, packed_specs=_packed_specs),
    ),
    arity=(0, 2**31 - 1),
    attributes=(Attribute("program", read_program), Attribute("apart", flag, False)),
    overwrites=_overwrites,
    cost=_cost,
    rows=elementwise_rows,
)
OPS = (FUSED_ELEMENTWISE,)
