"""Kernels bound to arrays: constants packed once, thunks made once."""

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

import numpy as np
from attrs import define, field, frozen

from engine.calls import Call, Lowered, Storage
from engine.errors import KernelError
from engine.placed import PlacedPlan
from engine.views import view_array
from ops.body import Body, bodies
from ops.schema import Binding, Thunk
from ops.spec import Array

NO_BYTES = np.empty(0, np.uint8)
_BUFFER_ELEMENTS = 256
"""Of numpy's iterators. Its own choice, 8192, allocates 32 KiB and more for each broadcast operand, and is slower."""


@contextmanager
def kernel_state() -> Iterator[None]:
    """How kernels want to find numpy: no floating-point warnings, small iterator buffers. Restored on exit."""
    with np.errstate(all="ignore"):
        np.setbufsize(_BUFFER_ELEMENTS)
        yield


@frozen(eq=False)
class Packed:
    """What kernels made of their constants when the network was loaded, by tick of the call.

    Bodies of operators keep what was packed for them themselves.
    """

    arrays: Mapping[int, tuple[Array, ...]]
    bodies: tuple[Body, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of all packed arrays that are not the constants themselves."""
        own = sum(a.nbytes for arrays in self.arrays.values() for a in arrays)
        return own + sum(body.packed_bytes for body in self.bodies)


@define(eq=False)
class Packs:
    """What was packed already, for plans of one graph with other lengths.

    What a kernel packs depends on the constants, on element types and on attributes, never on other lengths.
    """

    shared: frozenset[int] = frozenset()
    made: dict[Hashable, tuple[Array, ...]] = field(factory=dict)

    def pack(self, call: Call, constants: Mapping[int, Array]) -> tuple[Array, ...]:
        """The packed constants of a call."""
        ids = tuple((i, id(a)) for i, a in constants.items())
        if any(a not in self.shared for _, a in ids):
            return _packed(call, constants)
        key = (call.name, call.kernel, ids)
        if key not in self.made:
            self.made[key] = _packed(call, constants)
        return self.made[key]

    @property
    def nbytes(self) -> int:
        """Bytes of all packed arrays."""
        return sum(a.nbytes for arrays in self.made.values() for a in arrays)


def shared_packs(constants: Iterable[Array]) -> Packs:
    """For plans that read the same constants; these arrays must live as long."""
    return Packs(frozenset(id(a) for a in constants))


def pack_constants(lowered: Lowered, packs: Packs | None = None) -> Packed:
    """Lets every kernel pack the inputs that are constants."""
    packs, made = packs or Packs(), {}
    for call in lowered.calls:
        constants = {i: lowered.constants[v] for i, v in enumerate(call.inputs) if i in call.signature.constants}
        made[call.tick] = packs.pack(call, constants) if constants else ()
    inside = (bodies(op.schema, op.attrs) for call in lowered.calls for op in call.operators)
    return Packed(made, tuple(chain(*inside)))


def _packed(call: Call, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    with kernel_state():
        return call.kernel.pack(call.signature, constants)


def place_array(plan: PlacedPlan, value: int, arena: Array, callers: Mapping[int, Array]) -> Array:
    """The array of a value: a view of the arena, a constant, or one of the callers' arrays, by their values."""
    place, lowered = plan.places[value], plan.lowered
    if place.storage is Storage.ARENA:
        buffer = arena
    else:
        buffer = (lowered.constants if place.storage is Storage.CONSTANT else callers)[place.owner]
    return view_array(buffer, place.layout, lowered.values[value].spec.dtype)


def bind_call(call: Call, packed: Packed, array_of: Callable[[int], Array]) -> Thunk:
    """The thunk of one call. Raises KernelError naming the operator."""
    workspace = array_of(call.workspace[0]) if call.workspace else NO_BYTES
    inputs, outputs = (tuple(map(array_of, ids)) for ids in (call.inputs, call.outputs))
    try:
        return call.kernel.bind(Binding(call.signature, inputs, outputs, workspace, packed.arrays[call.tick]))
    except Exception as error:
        raise kernel_error(call, error) from error


def run_in_turn(calls: Sequence[Call], thunks: Sequence[Thunk]) -> None:
    """Calls kernels one after the other. Raises KernelError naming the operator that failed."""
    with kernel_state():
        run_inside(calls, thunks)


def run_inside(calls: Sequence[Call], thunks: Sequence[Thunk]) -> None:
    """`run_in_turn`, inside `kernel_state`."""
    coming = iter(thunks)
    try:
        for thunk in coming:
            thunk()
    except Exception as error:
        done = len(thunks) - operator.length_hint(coming)
        raise kernel_error(calls[done - 1], error) from error


def run_call(call: Call, thunk: Thunk) -> None:
    """Calls one kernel, inside `kernel_state`. Raises KernelError naming its operator."""
    try:
        thunk()
    except Exception as error:
        raise kernel_error(call, error) from error


def kernel_error(call: Call, error: Exception) -> KernelError:
    """The same failure with the operator's name in front."""
    specs = ", ".join(map(str, call.signature.inputs))
    reason = " ".join(str(error).split()) or type(error).__name__
    return KernelError(f"operator {call.name!r} failed on ({specs}): {reason}")
