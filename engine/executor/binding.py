"""Kernels bound to arrays: constants are packed once, and each call becomes a thunk."""

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import chain

import numpy as np
from attrs import define, field, frozen

from engine.executor.arenas import Arena
from engine.graph.deferred import Deferred, Entry, array_of
from engine.graph.mapped import release, release_files
from engine.lower.calls import Call, Lowered, Storage, pack_key, row_of_packed, unread_inputs
from engine.planning.placed import PlacedPlan
from engine.planning.weights import is_copy, read_constants
from engine.system.arrays import view_array
from engine.system.process_memory import trim
from engine.text.errors import KernelError
from ops.schema.body import Body, bodies
from ops.schema.schema import Binding, Thunk
from ops.schema.workspace import carve
from ops.tensor.errors import SchemaError
from ops.tensor.layout import Layout
from ops.tensor.spec import BFLOAT16, FLOATS, Array, TensorSpec, spec_of


class ProgramError(Exception):
    """The failure of one call of several that run as one thunk; `call` is that call. Callers never see it."""

    def __init__(self, call: Call, reason: Exception) -> None:
        super().__init__(str(reason))
        self.call = call


NO_BYTES = np.empty(0, np.uint8)
_MOST_FREED = 1 << 23
"""Bytes of constants after whose packing the pages of temporary arrays go back to the system: the C library keeps them,
and what is packed next may not fit there (tools/bench_load.py)."""
_WITH_NAN = FLOATS | {BFLOAT16}
_BUFFER_ELEMENTS = 256
"""Buffer size of numpy's iterators. Its default, 8192, allocates 32 KiB or more for each broadcast operand."""


@contextmanager
def kernel_state() -> Iterator[None]:
    """Sets the state of numpy that kernels expect: no floating-point warnings, small iterator buffers.

    Restores it on exit.
    """
    with np.errstate(all="ignore"):
        np.setbufsize(_BUFFER_ELEMENTS)
        yield


@frozen(eq=False)
class Packed:
    """The packed constants of a network, by tick of the call.

    Bodies of operators keep their packed constants. `held` has the deferred constants that kernels read as they are, by
    value: they are not computed again as long as this exists. `copies` are those of them that lowering added. A call of
    `rows`, by tick, has its packed arrays one behind the other in that value.
    """

    arrays: Mapping[int, tuple[Array, ...]]
    bodies: tuple[Body, ...] = ()
    held: Mapping[int, Array] = field(factory=dict, repr=False)
    copies: frozenset[int] = frozenset()
    rows: Mapping[int, int] = field(factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of all packed arrays and dense copies, each array once; they are no constants of the graph."""
        own = {id(a): a.nbytes for arrays in self.arrays.values() for a in arrays}
        bodies = {id(body): body.prepacked_bytes for body in self.bodies}
        return sum((*own.values(), *bodies.values(), *(self.held[v].nbytes for v in self.copies)))


@define(eq=False)
class PackCache:
    """A cache of packed constants, for plans of one graph with different lengths.

    The packed arrays depend on the constants, on element types and on attributes, never on other lengths.
    """

    shared: frozenset[int] = frozenset()
    arrays: dict[Hashable, tuple[Array, ...]] = field(factory=dict)

    def pack(self, call: Call, constants: Mapping[int, Entry]) -> tuple[Array, ...]:
        """Returns the packed constants of a call."""
        ids = tuple((i, id(a)) for i, a in constants.items())
        if any(a not in self.shared for _, a in ids):
            return self.make(call, constants)
        key = (pack_key(call), ids)
        if key not in self.arrays:
            self.arrays[key] = self.make(call, constants)
        return self.arrays[key]

    def make(self, call: Call, constants: Mapping[int, Entry]) -> tuple[Array, ...]:
        """Packs the constants of a call."""
        return pack_call(call, constants)

    def hold(self, value: int, entry: Deferred) -> Array:  # noqa: ARG002 (caches in files name it by its value)
        """Returns the array of a deferred constant that kernels read as it is."""
        return entry.array()

    @property
    def nbytes(self) -> int:
        """Bytes of all packed arrays."""
        return sum(a.nbytes for arrays in self.arrays.values() for a in arrays)


def shared_pack_cache(constants: Iterable[Entry]) -> PackCache:
    """Returns a cache for plans that read these constants, which must exist as long as the cache."""
    return PackCache(frozenset(id(a) for a in constants))


_SHARED: ContextVar[PackCache | None] = ContextVar("packs", default=None)


@contextmanager
def packs_from(cache: PackCache) -> Iterator[None]:
    """Makes executors that are made in the block take their packed constants from a cache.

    In a block inside another one they come from the cache of the outer one.
    """
    token = _SHARED.set(_SHARED.get() or cache)
    try:
        yield
    finally:
        _SHARED.reset(token)


def pack_constants(lowered: Lowered, packs: PackCache | None = None) -> Packed:
    """Lets every kernel pack its constant inputs, and releases those that nothing else reads.

    Calls that pack alike share the arrays.
    """
    packs, entries = packs or _SHARED.get() or PackCache(), lowered.constants.entries
    arrays = dict[int, tuple[Array, ...]]()
    release_files(e for e in entries.values() if not isinstance(e, Deferred))
    freed, shared = 0, dict[Hashable, tuple[Array, ...]]()
    rows = {call.tick: row for call in lowered.calls for row in row_of_packed(lowered, call)}
    for call in lowered.calls:
        if call.tick in rows:
            arrays[call.tick] = ()
            continue
        constants = {i: entries[v] for i, v in enumerate(call.inputs) if i in call.signature.constants}
        key = pack_key(call), tuple((i, id(entry)) for i, entry in constants.items())
        if key not in shared:
            shared[key] = packs.pack(call, constants) if constants else ()
        arrays[call.tick] = shared[key]
        freed += sum(entry.nbytes for entry in constants.values())
        if freed > _MOST_FREED:
            trim()
            freed = 0
    inside = (bodies(op.schema, op.attrs) for call in lowered.calls for op in call.operators)
    held = _held(lowered, packs)
    return Packed(arrays, tuple(chain(*inside)), held, frozenset(v for v in held if is_copy(lowered, v)), rows)


def _held(lowered: Lowered, packs: PackCache) -> dict[int, Array]:
    """Returns the deferred constants that kernels read as they are, by value."""
    held, freed = dict[int, Array](), 0
    for value in sorted(read_constants(lowered)):
        entry = lowered.constants.entries[value]
        if isinstance(entry, Deferred):
            held[value] = packs.hold(value, entry)
            freed += entry.nbytes
        if freed > _MOST_FREED:
            trim()
            freed = 0
    return held


def pack_call(call: Call, entries: Mapping[int, Entry]) -> tuple[Array, ...]:
    """Returns the packed constants of a call; releases the pages of their sources, which can be read again."""
    constants = {i: array_of(entry) for i, entry in entries.items()}
    with kernel_state():
        packed = call.kernel.pack(call.signature, constants)
    declared, specs = call.kernel.packed_specs(call.signature), tuple(map(spec_of, packed))
    if specs != declared:
        raise kernel_error(call, SchemaError(f"kernel {call.kernel.name!r} packs {specs}, but declares {declared}"))
    for i in unread_inputs(call):
        release(constants[i])
    return packed


def place_array(plan: PlacedPlan, value: int, arena: Arena, callers: Mapping[int, Array]) -> Array:
    """Returns the array of a value: a view of the arena, a constant, or one of the callers' arrays, by value."""
    place, lowered = plan.places[value], plan.lowered
    layout = place.layout
    if place.storage is Storage.ARENA:
        buffer, start = arena.row_with(layout.offset)
        if start:
            layout = Layout(layout.offset - start, layout.shape, layout.strides, layout.itemsize)
    else:
        buffer = (lowered.constants if place.storage is Storage.CONSTANT else callers)[place.owner]
    return view_array(buffer, layout, lowered.values[value].spec.dtype)


def bind_call(call: Call, packed: Packed, array: Callable[[int], Array]) -> Thunk:
    """Returns the thunk of a call. Raises KernelError naming the operator."""
    workspace = array(call.workspace[0]) if call.workspace else NO_BYTES
    return bind_with(call, packed, array, carve(workspace, *call.kernel.temporaries(call.signature)))


def bind_with(call: Call, packed: Packed, array: Callable[[int], Array], temporaries: tuple[Array, ...]) -> Thunk:
    """Returns the same with these temporaries."""
    dropped = unread_inputs(call)
    inputs = tuple(_nothing(s) if i in dropped else array(v) for i, (s, v) in enumerate(_operands(call)))
    outputs = tuple(map(array, call.outputs))
    arrays = packed.arrays[call.tick]
    if call.tick in packed.rows:
        arrays = carve(array(packed.rows[call.tick]), *call.kernel.packed_specs(call.signature))
    try:
        return call.kernel.bind(Binding(call.signature, inputs, outputs, temporaries, arrays))
    except Exception as error:
        raise kernel_error(call, error) from error


def _operands(call: Call) -> Iterable[tuple[TensorSpec, int]]:
    return zip(call.signature.inputs, call.inputs, strict=True)


@lru_cache
def _nothing(spec: TensorSpec) -> Array:
    """Returns an array of that spec without data (NaN, so that a read shows): its data are packed."""
    return np.broadcast_to(np.full((), np.nan if spec.dtype in _WITH_NAN else 0, spec.dtype), spec.shape)


def run_in_turn(calls: Sequence[Call], thunks: Sequence[Thunk]) -> None:
    """Calls kernels one after the other. Raises KernelError naming the operator that failed."""
    with kernel_state():
        run_inside(calls, thunks)


def run_inside(calls: Sequence[Call], thunks: Sequence[Thunk]) -> None:
    """Calls kernels as `run_in_turn`, inside `kernel_state`."""
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
    """Returns the failure as a KernelError with the operator's name in front."""
    specs = ", ".join(map(str, call.signature.inputs))
    reason = " ".join(str(error).split()) or type(error).__name__
    return KernelError(f"operator {call.name!r} failed on ({specs}): {reason}")
