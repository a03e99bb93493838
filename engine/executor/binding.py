"""Kernels bound to arrays: constants packed once, thunks made once."""

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

import numpy as np
from attrs import define, field, frozen

from engine.graph.deferred import Deferred, Entry, array_of
from engine.graph.mapped import release, release_files
from engine.lower.calls import Call, Lowered, Storage, replaced
from engine.planning.placed import PlacedPlan
from engine.system.arrays import view_array
from engine.text.errors import KernelError
from ops.schema.body import Body, bodies
from ops.schema.schema import Binding, Thunk
from ops.tensor.spec import BFLOAT16, FLOATS, Array, TensorSpec


class ProgramError(Exception):
    """A call of several that run as one thunk failed: `call` is which. Never seen by callers."""

    def __init__(self, call: Call, reason: Exception) -> None:
        super().__init__(str(reason))
        self.call = call


NO_BYTES = np.empty(0, np.uint8)
_WITH_NAN = FLOATS | {BFLOAT16}
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

    Bodies of operators keep what was packed for them themselves. `held` are the constants that kernels read as they
    are, by value: what is deferred stays where it is as long as these are.
    """

    arrays: Mapping[int, tuple[Array, ...]]
    bodies: tuple[Body, ...] = ()
    held: Mapping[int, Array] = field(factory=dict, repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of all packed arrays that are not the constants themselves."""
        own = sum(a.nbytes for arrays in self.arrays.values() for a in arrays)
        return own + sum(body.packed_bytes for body in self.bodies)


@define(eq=False)
class PackCache:
    """What was packed already, for plans of one graph with other lengths.

    What a kernel packs depends on the constants, on element types and on attributes, never on other lengths.
    """

    shared: frozenset[int] = frozenset()
    made: dict[Hashable, tuple[Array, ...]] = field(factory=dict)

    def pack(self, call: Call, constants: Mapping[int, Entry]) -> tuple[Array, ...]:
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


def shared_pack_cache(constants: Iterable[Entry]) -> PackCache:
    """For plans that read the same constants; these must live as long."""
    return PackCache(frozenset(id(a) for a in constants))


def pack_constants(lowered: Lowered, packs: PackCache | None = None) -> Packed:
    """Lets every kernel pack the inputs that are constants, and drops what nobody reads besides."""
    packs, made, entries = packs or PackCache(), {}, lowered.constants.entries
    release_files(e for e in entries.values() if not isinstance(e, Deferred))
    for call in lowered.calls:
        constants = {i: entries[v] for i, v in enumerate(call.inputs) if i in call.signature.constants}
        made[call.tick] = packs.pack(call, constants) if constants else ()
    inside = (bodies(op.schema, op.attrs) for call in lowered.calls for op in call.operators)
    return Packed(made, tuple(chain(*inside)), {v: lowered.constants[v] for v in _still_read(lowered)})


def _still_read(lowered: Lowered) -> dict[int, None]:
    """The deferred constants that somebody reads, other than by what was packed of them, each once."""
    inputs = [v for call in lowered.calls for i, v in enumerate(call.inputs) if i not in replaced(call)]
    owners = dict.fromkeys(lowered.values[v].owner for v in (*inputs, *lowered.outputs.values()))
    entries = lowered.constants.entries
    return {v: None for v in owners if isinstance(entries.get(v), Deferred)}


def _packed(call: Call, entries: Mapping[int, Entry]) -> tuple[Array, ...]:
    """What the kernel packs. What it is made of is let go, as far as it comes again where it is read."""
    constants = {i: array_of(entry) for i, entry in entries.items()}
    with kernel_state():
        packed = call.kernel.pack(call.signature, constants)
    for i in replaced(call):
        release(constants[i])
    return packed


def place_array(plan: PlacedPlan, value: int, arena: Array, callers: Mapping[int, Array]) -> Array:
    """The array of a value: a view of the arena, a constant, or one of the callers' arrays, by their values."""
    place, lowered = plan.places[value], plan.lowered
    if place.storage is Storage.ARENA:
        buffer = arena
    else:
        buffer = (lowered.constants if place.storage is Storage.CONSTANT else callers)[place.owner]
    return view_array(buffer, place.layout, lowered.values[value].spec.dtype)


def bind_call(call: Call, packed: Packed, array: Callable[[int], Array]) -> Thunk:
    """The thunk of one call. Raises KernelError naming the operator."""
    workspace = array(call.workspace[0]) if call.workspace else NO_BYTES
    dropped = replaced(call)
    inputs = tuple(_nothing(s) if i in dropped else array(v) for i, (s, v) in enumerate(_operands(call)))
    outputs = tuple(map(array, call.outputs))
    try:
        return call.kernel.bind(Binding(call.signature, inputs, outputs, workspace, packed.arrays[call.tick]))
    except Exception as error:
        raise kernel_error(call, error) from error


def _operands(call: Call) -> Iterable[tuple[TensorSpec, int]]:
    return zip(call.signature.inputs, call.inputs, strict=True)


def _nothing(spec: TensorSpec) -> Array:
    """An array of that spec with nothing in it (NaN, so that it shows where it is read): what was there is packed."""
    return np.broadcast_to(np.full((), np.nan if spec.dtype in _WITH_NAN else 0, spec.dtype), spec.shape)


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
        call = error.call if isinstance(error, ProgramError) else calls[done - 1]
        raise kernel_error(call, error) from error


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
