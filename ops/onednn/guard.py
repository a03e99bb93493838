"""Kernels of the library with compiled ones beside them, which run where the library's results differ from numpy's.

The compiled kernel also takes arrays that are not dense. Addresses and strides are known when a call is bound, so a
layout that the compiled kernel reads or writes is never a reason to copy.
"""

from collections.abc import Callable
from enum import Enum

from attrs import evolve, frozen

from ops.native.call import FOREIGN, Native, Step
from ops.native.door import address as compiled
from ops.native.door import foreign_address, region_address
from ops.native.records import offset, pack_args
from ops.onednn.args import CALL, FALLBACK, SEARCH, call_args
from ops.onednn.declarations import SOURCE, TARGET
from ops.onednn.descriptors import Tensor
from ops.onednn.library import Library, library
from ops.onednn.openmp import team_addresses
from ops.onednn.primitives import Case, Operand, prepare, primitives
from ops.schema.backends import ONEDNN
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk
from ops.schema.workspace import bytes_spec
from ops.tensor.layout import Layout, address_of
from ops.tensor.spec import Array

_CODE = "ops.onednn.guard_code"


class Watch(Enum):
    """Says when the compiled kernel runs instead.

    NOTHING: never. INPUTS: if an input is beyond 2 ** 30, or NaN. FLAG: if an operation was invalid, as maxima of NaN
    are, or if y contains the start value of a reduction, which only infinities leave there.
    """

    NOTHING = 0
    INPUTS = 1
    FLAG = 2


@frozen(eq=False)
class Plan:
    """A case, and f(library, call), which returns all its operands except the scratchpad."""

    case: Case
    operands: Callable[[Library, Binding], list[Operand]]
    watch: Watch = Watch.NOTHING
    start: int = 0


def one_to_one(x: Tensor, y: Tensor) -> Callable[[Library, Binding], list[Operand]]:
    """Returns the operands of a plan that reads the first input, as `x` lies, and writes the first output."""

    def operands(at: Library, call: Binding) -> list[Operand]:
        return [Operand(SOURCE, x.descriptor(at), call.x), Operand(TARGET, y.descriptor(at), call.y)]

    return operands


def beside(kernel: Kernel, plan: Callable[[Signature], Plan], unsupported: Callable[[Signature], str]) -> Kernel:
    """Returns the library's kernel of calls that the compiled one takes and `unsupported` has no reason against."""

    def refused(signature: Signature) -> str:
        reason = kernel.unsupported(signature) or unsupported(signature)
        if reason or is_fast(plan(signature).case, signature.threads):
            return reason
        return "the library has only reference code for it"

    def temporaries(signature: Signature) -> Specs:
        scratchpad = primitives(plan(signature).case, signature.threads)[0].scratchpad
        return bytes_spec(scratchpad), *kernel.temporaries(signature)

    def bind(call: Binding) -> Thunk:
        if not all(Layout.of(a).is_dense for a in (*call.inputs, *call.outputs)):
            return kernel.bind(_of_compiled(call))
        return _bind(call, plan(call.signature), kernel)

    return evolve(kernel, name="onednn", bind=bind, temporaries=temporaries, unsupported=refused, backend=ONEDNN)


def is_fast(case: Case, threads: int) -> bool:
    """Returns whether the library has a fast implementation that takes all memory from the scratchpad."""
    return any(p.planned for p in primitives(case, threads))


def _of_compiled(call: Binding) -> Binding:
    """Returns the call with the temporaries of the compiled kernel, which stand behind the scratchpad."""
    return evolve(call, temporaries=call.temporaries[1:])


def _bind(call: Binding, plan: Plan, kernel: Kernel) -> Native:
    (primitive,) = primitives(plan.case, call.signature.threads)
    operands = plan.operands(library(), call)
    prepared = prepare(primitive, operands, call.temporaries[0])
    region = region_address("ops.onednn.execute_code", "gather")
    args = call_args(prepared.fields, parallel=team_addresses()[0], region=region)
    function = ("execute_ordinary", "execute_flagged")[plan.watch is Watch.FLAG]
    run = Step(foreign_address(_CODE, function), (address_of(args), 0, 0, 0), FOREIGN)
    keep = (args, prepared, *call.inputs, *call.outputs)
    if plan.watch is Watch.NOTHING:
        return Native((run,), keep)
    mark, (y,) = address_of(args) + offset(CALL, "otherwise"), call.outputs
    before, after = list[Step](), list[Step]()
    if plan.watch is Watch.INPUTS:
        before = [_search("scan", address_of(args) + offset(CALL, "strange"), a) for a in call.inputs]
    else:
        after = [_search("seek", mark, y, plan.start)]
    other = kernel.bind(_of_compiled(call))
    assert isinstance(other, Native), f"{kernel.name} is no compiled kernel"
    fallbacks = [pack_args(FALLBACK, mark=mark, function=s.address, args=address_of(s.args)) for s in other.steps]
    after += [Step(compiled(_CODE, "otherwise"), fallback) for fallback in fallbacks]
    return Native((*before, run, *after), (*keep, other))


def _search(function: str, mark: int, array: Array, bits: int = 0) -> Step:
    args = pack_args(SEARCH, mark=mark, values=address_of(array), count=array.size, bits=bits)
    return Step(compiled(_CODE, function), args)
