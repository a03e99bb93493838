"""Kernels of elementwise operators that are instructions of the compiled interpreter."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from allocator.machine_code.door import address
from ops.native.call import Native, Step
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, OpSchema, Signature, Thunk, any_strides, no_packing, unless
from ops.tensor.spec import BOOL, Array, TensorSpec
from ops.vector.bytecode import SINGLE, Script, encode

Encoder = Callable[[Script, Signature, Sequence[int], tuple[Array, ...]], int]
"""Appends an operator's instructions: f(script, signature, values of its inputs, packed arrays) -> value of its output.

Raises NoOpcodeError where it has none.
"""


class NoOpcodeError(Exception):
    """An operator has no instructions; callers never see this."""


def run(script: Script, inputs: Sequence[Array], y: Array) -> Native:
    """Returns the thunk that computes y."""
    if not y.size:
        return Native(())
    step = Step(address("ops.vector.interpreter_code", "elementwise"), encode(script, inputs, y))
    return Native((step,), (*inputs, y))


@frozen(eq=False)
class Vector:
    """`bind` of a kernel of instructions; `otherwise` binds where the operator has none."""

    encoder: Encoder
    otherwise: Callable[[Binding], Thunk] | None = None

    def __call__(self, call: Binding) -> Thunk:
        """Returns a program of this one operator."""
        script = Script(len(call.inputs))
        try:
            self.encoder(script, call.signature, range(len(call.inputs)), call.packed)
        except NoOpcodeError:
            if self.otherwise is None:
                raise
            return self.otherwise(call)
        return run(script, call.inputs, call.y)


def encoder_of(schema: OpSchema, signature: Signature) -> Encoder:
    """Returns the encoder of an operator. Raises NoOpcodeError where it has none."""
    for kernel in schema.kernels:
        if isinstance(kernel.bind, Vector) and all(map(is_lane, (*signature.inputs, *signature.outputs))):
            return kernel.bind.encoder
    raise NoOpcodeError


def is_lane(spec: TensorSpec) -> bool:
    """Returns whether the interpreter computes such elements."""
    return spec.dtype in (SINGLE, BOOL)


def is_single(signature: Signature) -> bool:
    """Returns whether all is float32 or bool; bools alone are left to numpy."""
    specs = (*signature.inputs, *signature.outputs)
    return all(map(is_lane, specs)) and any(s.dtype == SINGLE for s in specs) and len(signature.inputs) < 32


def vector_kernel(encoder: Encoder, **more: Any) -> Kernel:
    """Returns the compiled kernel of an operator."""
    options = {"unsupported": unless(is_single, "not float32"), "writes": any_strides, "pack": no_packing, **more}
    return Kernel("vector", Vector(encoder, options.pop("otherwise", None)), backend=NUMBA, **options)


def opcode(name: str, *numbers: str) -> Kernel:
    """Returns the kernel of an operator that is one instruction with these attributes."""

    def encode_one(script: Script, signature: Signature, values: Sequence[int], _: tuple[Array, ...]) -> int:
        return script.append(name, *values, numbers=tuple(signature.attrs[n] for n in numbers))

    return vector_kernel(encode_one)
