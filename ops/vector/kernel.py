"""Kernels of elementwise operators that are instructions of the compiled interpreter."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from ops.native.call import Native, Step
from ops.native.door import address
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, OpSchema, Signature, Thunk, any_strides, no_packing, unless
from ops.tensor.spec import BOOL, Array, TensorSpec
from ops.vector.bytecode import SINGLE, Script, encode

Phrase = Callable[[Script, Signature, Sequence[int], tuple[Array, ...]], int]
"""Says an operator: f(script, signature, values of its inputs, what it packed) -> value of its output.

Raises UnsaidError where that cannot be said.
"""


class UnsaidError(Exception):
    """An operator that is no instruction; never seen by callers."""


def run(script: Script, inputs: Sequence[Array], y: Array) -> Native:
    """The thunk that computes y."""
    if not y.size:
        return Native(())
    step = Step(address("ops.vector.interpreter_code", "elementwise"), encode(script, inputs, y))
    return Native((step,), (*inputs, y))


@frozen(eq=False)
class Vector:
    """`bind` of a kernel that says its operator, or else does it another way."""

    phrase: Phrase
    otherwise: Callable[[Binding], Thunk] | None = None

    def __call__(self, call: Binding) -> Thunk:
        """A program of this one operator."""
        script = Script(len(call.inputs))
        try:
            self.phrase(script, call.signature, range(len(call.inputs)), call.packed)
        except UnsaidError:
            if self.otherwise is None:
                raise
            return self.otherwise(call)
        return run(script, call.inputs, call.y)


def phrase_of(schema: OpSchema, signature: Signature) -> Phrase:
    """How the operator is said. Raises UnsaidError where it is not."""
    for kernel in schema.kernels:
        if isinstance(kernel.bind, Vector) and all(map(is_lane, (*signature.inputs, *signature.outputs))):
            return kernel.bind.phrase
    raise UnsaidError


def is_lane(spec: TensorSpec) -> bool:
    """Whether the interpreter knows such elements."""
    return spec.dtype in (SINGLE, BOOL)


def is_single(signature: Signature) -> bool:
    """Whether all is float32 or bool, and not bool alone, for which numpy is faster."""
    specs = (*signature.inputs, *signature.outputs)
    return all(map(is_lane, specs)) and any(s.dtype == SINGLE for s in specs) and len(signature.inputs) < 32


def vector_kernel(phrase: Phrase, **more: Any) -> Kernel:
    """The compiled kernel of an operator."""
    given = {"unsupported": unless(is_single, "not float32"), "writes": any_strides, "pack": no_packing, **more}
    return Kernel("vector", Vector(phrase, given.pop("otherwise", None)), backend=NUMBA, **given)


def opcode(name: str, *numbers: str) -> Kernel:
    """The kernel of an operator that is one instruction with these attributes."""

    def say(script: Script, signature: Signature, values: Sequence[int], _: tuple[Array, ...]) -> int:
        return script.say(name, *values, numbers=tuple(signature.attrs[n] for n in numbers))

    return vector_kernel(say)
