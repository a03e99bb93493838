"""The compiled kernel of LSTM: products of whole blocks of time steps, then the steps of both directions at once."""

from collections.abc import Iterator, Mapping

import numpy as np
from attrs import frozen

from allocator.machine_code.door import address
from ops.native.aligned import aligned_zeros
from ops.native.call import Native, Step, joined
from ops.native.emit.tile_shapes import NONE, tile_shape
from ops.native.records import pack_args
from ops.products.compiled import SINGLE, Multiplication, multiply, packed_panels, panels_shape
from ops.recurrent.args import LSTM_ARGS
from ops.recurrent.scratch import BLOCK
from ops.recurrent.shapes import Case, Family, case_for
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, all_contiguous, unless
from ops.tensor.spec import Array, TensorSpec

_W, _R, _BIAS = 1, 2, 3
_PLAIN = {"bias", "initial_h", "initial_c"}
"""Operands behind x, w and r that the compiled steps take."""


@frozen(eq=False)
class _Block:
    """Time steps that run together, counted in the order in which they run."""

    begin: int
    count: int

    def times(self, case: Case, *, backwards: bool) -> slice:
        """Returns the rows of x of these steps."""
        first = case.time - self.begin - self.count if backwards else self.begin
        return slice(first, first + self.count)


def _block_steps(case: Case) -> int:
    """Returns the number of time steps of one block, of which there is at least one."""
    return max(1, min(case.time, BLOCK // max(case.directions * case.batch * case.width, 1)))


def _blocks(case: Case) -> Iterator[_Block]:
    step = _block_steps(case)
    for begin in range(0, max(case.time, 1), step):
        yield _Block(begin, min(step, case.time - begin))


def _backwards(case: Case, signature: Signature) -> tuple[bool, ...]:
    reverse = signature.attrs["direction"] == "reverse"
    return (False, True) if case.directions > 1 else (reverse,)


def _temporaries(case: Case) -> Specs:
    """Returns the specs of gates, h and c."""
    state = TensorSpec((case.directions, case.batch, case.hidden), SINGLE)
    return TensorSpec((case.directions, _block_steps(case), case.batch, case.width), SINGLE), state, state


def _supports(family: Family, signature: Signature) -> bool:
    attrs, case = signature.attrs, case_for(family, signature)
    named = attrs["given"]
    names = tuple(activation.name for activation in case.activations)
    constants = {_W, _R, _BIAS} if "bias" in named else {_W, _R}
    plain = not attrs["layout"] and attrs["clip"] is None and not attrs["input_forget"]
    fits = case.dtype == SINGLE and names == family.activations * case.directions and constants <= signature.constants
    return plain and fits and set(named) <= _PLAIN


def _pack(family: Family, signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    """Returns the weights of x and of h as panels, and the sums of both biases, of each direction."""
    case = case_for(family, signature)
    packed = tuple(aligned_zeros(spec.shape, spec.dtype) for spec in _packed_specs(family, signature))
    for target, source in zip(packed, (constants[_W], constants[_R]), strict=False):
        for panels, matrix in zip(target, source, strict=True):
            panels[...] = packed_panels(matrix.T, 1.0)
    if "bias" in signature.attrs["given"]:
        np.add(constants[_BIAS][:, : case.width], constants[_BIAS][:, case.width :], packed[2])
    return packed


def _packed_specs(family: Family, signature: Signature) -> Specs:
    case = case_for(family, signature)
    shapes = (panels_shape((depth, case.width)) for depth in (case.inputs, case.hidden))
    panels = (TensorSpec((case.directions, *shape), SINGLE) for shape in shapes)
    return *panels, TensorSpec((case.directions, case.width), SINGLE)


def _projections(call: Binding, case: Case, gates: Array, block: _Block) -> Iterator[Native]:
    """Yields the products of x of a block and the weights of each direction."""
    w, _, bias = call.packed
    for direction, backwards in enumerate(_backwards(case, call.signature)):
        x = call.x[block.times(case, backwards=backwards)].reshape((block.count * case.batch, case.inputs))
        y = gates[direction, : block.count].reshape((block.count * case.batch, case.width))
        weights = call.inputs[_W][direction].T
        product = multiply(Multiplication(x, weights, y, (bias[direction],), panels=(w[direction],)))
        if isinstance(product, Native):
            yield product


def _steps(call: Binding, case: Case, buffers: tuple[Array, ...], block: _Block) -> Native:
    gates, h, c = buffers
    inputs = dict(zip(call.attrs["given"], call.inputs[3:], strict=True))
    first_h, first_c = (inputs[name].ctypes.data if name in inputs else 0 for name in ("initial_h", "initial_c"))
    *sequences, last_h, last_c = call.outputs
    args = pack_args(
        LSTM_ARGS,
        gates=gates.ctypes.data,
        panels=call.packed[1].ctypes.data,
        h=h.ctypes.data,
        c=c.ctypes.data,
        first_h=first_h,
        first_c=first_c,
        y=sequences[0].ctypes.data if sequences else 0,
        last_h=last_h.ctypes.data,
        last_c=last_c.ctypes.data,
        time=case.time,
        batch=case.batch,
        hidden=case.hidden,
        directions=case.directions,
        begin=block.begin,
        count=block.count,
        block=_block_steps(case),
        backwards=(*map(int, _backwards(case, call.signature)), 0)[:2],
        starts=int(block.begin == 0),
        ends=int(block.begin + block.count == case.time),
        kind=NONE,
        low=0.0,
        high=0.0,
        slope=0.0,
    )
    return Native((Step(address("ops.recurrent.code", f"run_{tile_shape().name}"), args),))


def lstm_kernel(family: Family) -> Kernel:
    """Returns the compiled kernel of LSTM."""

    def bind(call: Binding) -> Thunk:
        case = case_for(family, call.signature)
        buffers = call.temporaries
        natives = list[Native]()
        for block in _blocks(case):
            natives += [*_projections(call, case, buffers[0], block), _steps(call, case, buffers, block)]
        return joined([*natives, Native((), (*call.inputs, *call.outputs, *call.packed, *call.temporaries))])

    reason = "not float32, or weights that are not constant, or lengths, peepholes, other activations or attributes"
    return Kernel(
        "native",
        bind,
        lambda signature: _temporaries(case_for(family, signature)),
        contiguous=all_contiguous,
        pack=lambda signature, constants: _pack(family, signature, constants),
        packed_specs=lambda signature: _packed_specs(family, signature),
        unread_after_pack=lambda signature: (_W, _R, _BIAS) if "bias" in signature.attrs["given"] else (_W, _R),
        unsupported=unless(lambda signature: _supports(family, signature), reason),
        backend=NUMBA,
    )
