"""Kernels of the library in place of compiled ones, or beside them where its maxima may differ from numpy's.

Which of both computes must not change a bit because of where tensors lie. Sums have other last bits in the library, and
maxima of rows another sign of 0: these kernels take dense arrays only. Maxima of windows have the same bits in both.
"""

from collections.abc import Callable

from attrs import evolve, frozen

from allocator.machine_code.door import address as compiled
from ops.native.call import Native, Step
from ops.native.records import offset, pack_args
from ops.native.runners import FOREIGN
from ops.onednn.args import CALL, FALLBACK, SEARCH, call_args
from ops.onednn.declarations import SOURCE, TARGET
from ops.onednn.descriptors import Tensor
from ops.onednn.library import Library, library
from ops.onednn.nan_safe import call as plain_call
from ops.onednn.openmp import team_addresses
from ops.onednn.primitives import Case, Operand, prepare, primitives
from ops.schema.backends import ONEDNN
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, all_contiguous, dense_only
from ops.schema.workspace import bytes_spec
from ops.tensor.layout import Layout, address_of
from ops.tensor.spec import TensorSpec

_CODE = "ops.onednn.guard_code"
Refusal = Callable[[Signature], str]
"""Says why a signature is not taken; nothing where it is."""


@frozen(eq=False)
class Plan:
    """A case, and f(library, call), which returns all its operands except the scratchpad."""

    case: Case
    operands: Callable[[Library, Binding], list[Operand]]


def one_to_one(x: Tensor, y: Tensor) -> Callable[[Library, Binding], list[Operand]]:
    """Returns the operands of a plan that reads the first input, as `x` lies, and writes the first output."""

    def operands(at: Library, call: Binding) -> list[Operand]:
        return [Operand(SOURCE, x.descriptor(at), call.x), Operand(TARGET, y.descriptor(at), call.y)]

    return operands


def only_dense(kernel: Kernel) -> Kernel:
    """Returns the kernel for dense arrays."""
    return evolve(kernel, contiguous=all_contiguous, writes=dense_only)


def instead(kernel: Kernel, plan: Callable[[Signature], Plan], unsupported: Refusal) -> Kernel:
    """Returns the library's kernel, on dense arrays.

    It takes calls that the compiled kernel takes and `unsupported` has no reason against.
    """

    def temporaries(signature: Signature) -> Specs:
        return (_scratchpad(plan, signature),)

    def bind(call: Binding) -> Thunk:
        planned, threads = plan(call.signature), call.signature.threads
        return plain_call(planned.case, planned.operands(library(), call), call.temporaries[0], threads)

    refused = _refusal(kernel, plan, unsupported)
    dense = only_dense(kernel)
    return evolve(dense, name="onednn", bind=bind, temporaries=temporaries, unsupported=refused, backend=ONEDNN)


def beside(kernel: Kernel, plan: Callable[[Signature], Plan], unsupported: Refusal, start: int) -> Kernel:
    """Returns the library's kernel of a maximum or minimum, for the same calls as `instead`.

    The compiled kernel computes arrays that are not dense, if it takes them. It computes again if an operation was
    invalid, as maxima of NaN are, or if y contains the number with the bits `start`, with which the library begins:
    only infinities leave it there.
    """

    def temporaries(signature: Signature) -> Specs:
        return _scratchpad(plan, signature), *kernel.temporaries(signature)

    def bind(call: Binding) -> Thunk:
        other = kernel.bind(evolve(call, temporaries=call.temporaries[1:]))
        if not all(Layout.of(a).is_dense for a in (*call.inputs, *call.outputs)):
            return other
        assert isinstance(other, Native), f"{kernel.name} is no compiled kernel"
        return _watched(call, plan(call.signature), other, start)

    refused = _refusal(kernel, plan, unsupported)
    return evolve(kernel, name="onednn", bind=bind, temporaries=temporaries, unsupported=refused, backend=ONEDNN)


def is_fast(case: Case, threads: int) -> bool:
    """Returns whether the library has a fast implementation that takes all memory from the scratchpad."""
    return any(p.planned for p in primitives(case, threads))


def _refusal(kernel: Kernel, plan: Callable[[Signature], Plan], unsupported: Refusal) -> Refusal:
    def refused(signature: Signature) -> str:
        reason = kernel.unsupported(signature) or unsupported(signature)
        if reason or is_fast(plan(signature).case, signature.threads):
            return reason
        return "the library has only reference code for it"

    return refused


def _scratchpad(plan: Callable[[Signature], Plan], signature: Signature) -> TensorSpec:
    return bytes_spec(primitives(plan(signature).case, signature.threads)[0].scratchpad)


def _watched(call: Binding, plan: Plan, other: Native, start: int) -> Native:
    (primitive,) = primitives(plan.case, call.signature.threads)
    prepared = prepare(primitive, plan.operands(library(), call), call.temporaries[0])
    region = compiled("ops.onednn.execute_code", "gather")
    args = call_args(prepared.fields, parallel=team_addresses()[0], region=region)
    run = Step(compiled(_CODE, "execute_flagged"), (address_of(args), 0, 0, 0), FOREIGN)
    mark = address_of(args) + offset(CALL, "otherwise")
    search = pack_args(SEARCH, mark=mark, values=address_of(call.y), count=call.y.size, bits=start)
    fallbacks = [pack_args(FALLBACK, mark=mark, function=s.address, args=address_of(s.args)) for s in other.steps]
    after = [Step(compiled(_CODE, "otherwise"), fallback) for fallback in fallbacks]
    return Native((run, Step(compiled(_CODE, "seek"), search), *after), (args, prepared, other))
