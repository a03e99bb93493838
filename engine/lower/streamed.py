"""Constants that calls may read in a copy elsewhere: a weight in a slow memory has a slot in a fast one for some calls.

The copy of a constant that a kernel packs is one of what was packed: a row of bytes, with all packed arrays of the call
one behind the other. All calls that read it must pack alike.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial

from attrs import evolve, frozen

from engine.graph.deferred import Deferred
from engine.lower.calls import Call, Lowered, Value, pack_key, packed_row, unread_inputs
from ops.schema.schema import Signature
from ops.schema.workspace import bytes_spec, dense_bytes
from ops.tensor.spec import TensorSpec


@frozen(eq=False)
class Streamed:
    """What a copy of a constant has: the same elements, or, where a call packs it, the bytes of what it packs."""

    spec: TensorSpec
    packing: tuple[Call, ...] = ()

    def row(self, lowered: Lowered) -> Deferred:
        """Returns the packed arrays of the call in one row of bytes."""
        (call,) = self.packing
        entries = lowered.constants.entries
        return Deferred(
            self.spec, partial(packed_row, call, tuple((i, entries[call.inputs[i]]) for i in _packed(call)))
        )


def streamed(lowered: Lowered) -> Mapping[int, Streamed]:
    """Returns the constants of which calls may read a copy, by value.

    Those are constants of the graph that calls alone read, as they are; no output, and no view or join, is made of one.
    """
    readers: dict[int, list[tuple[Call, int]]] = defaultdict(list)
    others = set(lowered.outputs.values())
    for instruction in lowered.instructions:
        if not isinstance(instruction, Call):
            others.update(instruction.inputs)
            continue
        for position, value in enumerate(instruction.inputs):
            readers[value].append((instruction, position))
    values = (lowered.values[v] for v in lowered.constants if v in readers and v not in others)
    return {v.id: stream for v in values if _is_of_graph(lowered, v) for stream in _of(lowered, v, readers[v.id])}


def unpacked(call: Call, position: int) -> Signature:
    """Returns the signature of a call of which one input is no constant any more."""
    return evolve(call.signature, constants=call.signature.constants - {position})


def _is_of_graph(lowered: Lowered, value: Value) -> bool:
    return value.name == value.source and lowered.graph.vars[value.source] in lowered.graph.constants


def _of(lowered: Lowered, value: Value, readers: list[tuple[Call, int]]) -> Iterator[Streamed]:
    """Yields what a copy of a constant has, where all calls can read one."""
    if all(_reads_raw(call, position, lowered) for call, position in readers):
        yield Streamed(value.spec)
    elif len({(pack_key(call), position, _operands(call)) for call, position in readers}) == 1:
        call, position = readers[0]
        if _reads_packed(lowered, call, position):
            yield Streamed(bytes_spec(dense_bytes(*call.kernel.packed_specs(call.signature))), (call,))


def _reads_raw(call: Call, position: int, lowered: Lowered) -> bool:
    """Returns whether the kernel reads the input where it lies, be it constant or not."""
    if position not in call.signature.constants:
        return True
    kernel, other = call.kernel, unpacked(call, position)
    is_packed = kernel.packed_specs(call.signature) or not kernel.supports(other) or kernel.packed_specs(other)
    return not is_packed and lowered.workspace_bytes(call) == lowered.workspace_bytes(evolve(call, signature=other))


def _reads_packed(lowered: Lowered, call: Call, position: int) -> bool:
    """Returns whether the kernel reads only what it packed, and that is mostly this input."""
    constants = _packed(call)
    largest = max(constants, key=lambda i: lowered.values[call.inputs[i]].spec.nbytes, default=position)
    are_plain = all(_is_of_graph(lowered, lowered.values[call.inputs[i]]) for i in constants)
    is_read_late = not call.kernel.reads_packed_at_bind
    return largest == position and position in unread_inputs(call) and are_plain and is_read_late


def _packed(call: Call) -> list[int]:
    return sorted(call.signature.constants)


def _operands(call: Call) -> tuple[int, ...]:
    return tuple(call.inputs[i] for i in _packed(call))
