"""The judge of places: what was asked for beside the calls is kept. It believes no problem, only options and addresses.

- Each element lies at a multiple of its size.
- What owns its bytes lies at a multiple of the alignment, and temporaries at one of `STEP`. What overwrites an input
  lies where that one lies, and what is computed inside another value where a join wants it.
- Behind what owns its bytes lie as many bytes of padding, in which nothing alive lies.
- A value that is pinned lies at its offset, and nothing lies in reserved bytes.
"""

from collections.abc import Iterator, Mapping

from attrs import define, field, frozen

from engine.check.byte_map import ByteMap
from engine.check.plans import PlanLike
from engine.check.spans import Span, spans
from engine.lower.calls import Alias, Instruction, Join, Lowered, Role, Storage
from engine.text.errors import PlacementError
from ops.schema.workspace import STEP

_NOBODY = -1


@frozen(eq=False)
class Asked:
    """What was asked for, in bytes: the offsets of pinned values, by id, and ranges [low, high) that stay free."""

    alignment: int = 1
    padding: int = 0
    pinned: Mapping[int, int] = field(factory=dict)
    reserved: tuple[tuple[int, int], ...] = ()


def check_placement(plan: PlanLike, asked: Asked) -> None:
    """Raises PlacementError with the first value that does not lie as was asked. O(n log n) in the accesses."""
    judge = _PlacementJudge(plan, asked, spans(plan, _NOBODY))
    judge.check_pinned()
    judge.check_alignment()
    judge.check_reserved()
    if asked.padding:
        judge.check_padding()


@define(eq=False)
class _PlacementJudge:
    plan: PlanLike
    asked: Asked
    spans: tuple[Span, ...]

    def check_pinned(self) -> None:
        for value, offset in self.asked.pinned.items():
            if self.spans[value].low != offset:
                raise PlacementError(f"{self._at(value)}, and is pinned to {offset}")

    def check_alignment(self) -> None:
        lowered, exempt = self.plan.lowered, self._exempt()
        for value in lowered.values:
            layout = self.plan.places[value.id].layout
            if self._lies(value.id) and any(n % layout.itemsize for n in (layout.offset, *layout.strides)):
                raise PlacementError(f"{self._at(value.id)}; its elements have {layout.itemsize} bytes")
        for value_id in _written(lowered):
            wanted = self.asked.alignment if value_id not in exempt else 1
            if lowered.values[value_id].role is Role.WORKSPACE and lowered.target.is_host:
                wanted = max(wanted, STEP)
            if self._lies(value_id) and self.spans[value_id].low % wanted:
                raise PlacementError(f"{self._at(value_id)}; the alignment is {wanted}")

    def check_reserved(self) -> None:
        for value in self.plan.lowered.values:
            for low, high in self.asked.reserved if self._lies(value.id) else ():
                if max(self.spans[value.id].low, low) < min(self.spans[value.id].high, high):
                    raise PlacementError(f"{self._at(value.id)}; bytes [{low}, {high}) are reserved")

    def check_padding(self) -> None:
        """Replays all writes, and remembers who wrote each byte last and whose padding it is."""
        lowered, last, taken = self.plan.lowered, _last_reads(self.plan.lowered), self._overwriters()
        written, padded = ByteMap(_NOBODY), ByteMap(_NOBODY)
        for tick, value in _writes(lowered):
            owner = lowered.values[value].owner
            if not self._lies(value):
                continue
            for other in dict.fromkeys(padded.pieces_in(self.spans[value].runs)[2].tolist()):
                self._require_dead(other, owner, tick, last, value)
            written.write_all(self.spans[value].runs, owner)
            if owner not in taken and owner not in self.asked.pinned:
                end = self.spans[owner].high
                for _, _, other in written.pieces(end, end + self.asked.padding):
                    self._require_dead(other, owner, tick, last, owner)
                padded.write(end, end + self.asked.padding, owner)

    def _require_dead(self, other: int, owner: int, tick: int, last: Mapping[int, int], value: int) -> None:
        if other not in (_NOBODY, owner) and last.get(other, 0) >= tick:
            padding = f"{self.asked.padding} bytes of padding"
            raise PlacementError(f"{self._at(value)}, and {self._at(other)}: there are no {padding} between them")

    def _exempt(self) -> set[int]:
        """Returns the values that lie where others make them lie: pinned, overwriting, or parts of what is joined."""
        return {*self.asked.pinned, *self._overwriters(), *self._joined()}

    def _joined(self) -> set[int]:
        """Returns the values that a join wants at a place in its output, also by way of views and overwrites."""
        joined: set[int] = set()
        for instruction in reversed(self.plan.lowered.instructions):
            placed = joined.intersection(instruction.outputs)
            if isinstance(instruction, Join) or (isinstance(instruction, Alias) and placed):
                joined.update(instruction.inputs)
            elif placed:
                spans = [self.spans[value] for value in placed]
                joined.update(v for v in instruction.inputs if any(self.spans[v].meets(span) for span in spans))
        return joined

    def _overwriters(self) -> set[int]:
        """Returns the values that are written to bytes of an input of their call."""
        return {
            value
            for call in self.plan.lowered.calls
            for value in call.outputs
            if any(self.spans[value].meets(self.spans[read]) for read in call.inputs)
        }

    def _lies(self, value: int) -> bool:
        """Returns whether a value has bytes in the arena."""
        return self.plan.places[value].storage is Storage.ARENA and self.spans[value].low < self.spans[value].high

    def _at(self, value: int) -> str:
        return f"{self.plan.lowered.values[value].name!r} lies at byte {self.spans[value].low}"


def _writes(lowered: Lowered) -> Iterator[tuple[int, int]]:
    """Yields the tick and the value of each write, in order; the caller's come first."""
    yield from ((0, v) for v in (*lowered.inputs.values(), *lowered.parameters))
    for call in lowered.calls:
        yield from ((call.tick, v) for v in call.outputs + call.workspace)


def _written(lowered: Lowered) -> Iterator[int]:
    return (value for _, value in _writes(lowered))


def _last_reads(lowered: Lowered) -> dict[int, int]:
    """Returns the tick of the last instruction that writes to each owner or reads it, or a view of it."""
    last: dict[int, int] = {}
    for tick, value in _writes(lowered):
        last[lowered.values[value].owner] = tick
    for instruction in lowered.instructions:
        for value in _reads(instruction):
            owner = lowered.values[value].owner
            last[owner] = max(last.get(owner, 0), instruction.tick)
    for value in (*lowered.outputs.values(), *lowered.parameters.values()):
        last[lowered.values[value].owner] = len(lowered.instructions) + 1
    return last


def _reads(instruction: Instruction) -> tuple[int, ...]:
    return () if isinstance(instruction, Alias) else instruction.inputs
