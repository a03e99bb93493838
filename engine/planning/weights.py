"""The memory that the constants of a lowered graph take, known before anything is packed or run."""

from collections.abc import Hashable, Iterator
from functools import reduce
from operator import or_

from engine.graph.deferred import Deferred, Entry, sources
from engine.graph.mapped import mapping_of
from engine.lower.calls import Call, Instruction, Lowered, pack_key, row_of_packed, unread_inputs
from ops.schema.body import bodies
from ops.schema.weight_memory import WeightMemory
from ops.tensor.layout import address_of


def weight_memory(lowered: Lowered) -> WeightMemory:
    """Returns the memory of the constants of a graph, and of the bodies of its operators."""
    inside = (b.weight_memory for call in lowered.calls for op in call.operators for b in bodies(op.schema, op.attrs))
    return reduce(or_, inside, _own(lowered))


def resident_of(lowered: Lowered, instruction: Instruction) -> dict[Hashable, int]:
    """Returns what of constants stays in memory for an instruction: bytes of arrays and of packed copies, by identity.

    Instructions in a memory of their own need these bytes each; in one memory what they share counts once.
    """
    entries = lowered.constants.entries
    call = instruction if isinstance(instruction, Call) else None
    unread = unread_inputs(call) if call else frozenset[int]()
    kept = dict(packed_by(call, lowered)) if call else dict[Hashable, int]()
    for position, value in enumerate(instruction.inputs):
        owner = lowered.values[value].owner
        if owner in entries:
            if call and position not in unread:
                kept[identity(entries[owner])] = entries[owner].nbytes
            kept |= {identity(a): a.nbytes for a in sources(entries[owner]) if mapping_of(a) is None}
    return kept


def read_constants(lowered: Lowered) -> set[int]:
    """Returns the constants that kernels read as they are, or that are outputs, as values."""
    inputs = (v for call in lowered.calls for i, v in enumerate(call.inputs) if i not in unread_inputs(call))
    owners = {lowered.values[v].owner for v in (*inputs, *lowered.outputs.values())}
    return owners & lowered.constants.keys()


def is_copy(lowered: Lowered, constant: int) -> bool:
    """Returns whether a constant is a dense copy that lowering added for a kernel."""
    value = lowered.values[constant]
    return value.name != value.source


def packed_by(call: Call, lowered: Lowered) -> Iterator[tuple[Hashable, int]]:
    """Yields the arrays that a call packs. Calls that pack alike share those of the same constants."""
    constants = sorted(call.signature.constants)
    if not constants or row_of_packed(lowered, call):
        return
    packed_from = tuple(identity(lowered.constants.entries[call.inputs[i]]) for i in constants)
    alike = pack_key(call)
    for number, spec in enumerate(call.kernel.packed_specs(call.signature)):
        yield (alike, packed_from, number), spec.nbytes


def _own(lowered: Lowered) -> WeightMemory:
    entries, read = lowered.constants.entries, read_constants(lowered)
    weights = {identity(e): e.nbytes for v, e in entries.items() if not is_copy(lowered, v)}
    prepacked = {identity(entries[v]): entries[v].nbytes for v in read if is_copy(lowered, v)}
    kept = {identity(entries[v]): entries[v].nbytes for v in read if not is_copy(lowered, v)}
    for entry in entries.values():
        kept |= {identity(a): a.nbytes for a in sources(entry) if mapping_of(a) is None}
    for call in lowered.calls:
        prepacked |= dict(packed_by(call, lowered))
    return WeightMemory(weights, prepacked, kept)


def identity(entry: Entry) -> Hashable:
    """Returns a key that is equal for entries with the same bytes in memory."""
    return id(entry) if isinstance(entry, Deferred) else (address_of(entry), entry.nbytes)
