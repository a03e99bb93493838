"""Who may lie in bytes of a value that are still to be written: what is over before that.

A value in which others lie is there from the first of them on. Until the call that writes a part of it, the part is a
room like any other: chains of overwrites that live no longer move in, the largest first, each at the lowest place that
is free for as long as it lives. What holds others itself may move in with all of them, and its own rooms are let too.
"""

from collections.abc import Iterator, Mapping

from attrs import define, evolve, field, frozen

from allocator.derive.chains import chains
from allocator.derive.chunks import Chunks
from allocator.problem import Problem
from engine.lower.calls import Lowered, Role, Value, arena_ids
from engine.nesting.search import Nest, Nesting
from ops.tensor.layout import Layout

_ALIGNMENT = 64
"""Of a lodger in its host; chunks are aligned as much as a rule."""
MOST_BLOCKS = 256
"""That are asked to move: the largest are what matters."""
_LODGES = frozenset({Role.ACTIVATION, Role.COPY, Role.WORKSPACE})


@frozen(eq=False)
class Stay:
    """Bytes [low, high) of a host are somebody's in the ticks [begin, end)."""

    low: int
    high: int
    begin: int
    end: int

    def meets(self, other: "Stay") -> bool:
        """Whether both have a byte in one tick."""
        at_once = self.begin < other.end and other.begin < self.end
        return at_once and self.low < other.high and other.low < self.high


@frozen(eq=False)
class Unit:
    """A chain of chunks that lie in each other, as (value, byte from the first one of the chain)."""

    values: tuple[tuple[int, int], ...]
    size: int
    begin: int
    end: int


def fill_holes(nesting: Nesting, joined: Lowered, chunks: Chunks, problem: Problem) -> Nesting:
    """The nesting with lodgers; `joined` is the graph that it makes, and these are its chunks."""
    letting = _Letting(joined, chunks, arena_ids(joined), dict(nesting.nests))
    for host in sorted(nesting.roots, key=lambda root: -joined.values[root].spec.nbytes):
        letting.open(host)
    for unit in sorted(_units(letting, problem), key=lambda u: (-u.size, u.begin))[:MOST_BLOCKS]:
        letting.lodge(unit)
    nests = {value: letting.settled(nest) for value, nest in letting.nests.items()}
    joins = {tick: tuple(map(letting.settled, places)) for tick, places in nesting.joins.items()}
    return Nesting(nests, joins)


@define(eq=False)
class _Letting:
    """`stays` has, by host, who has which bytes when: parts of the host from their first write on, and lodgers."""

    joined: Lowered
    chunks: Chunks
    ids: Mapping[int, int]
    nests: dict[int, Nest]
    stays: dict[int, list[Stay]] = field(factory=dict)

    def chunk(self, value: int) -> int:
        """The chunk of a value of the arena."""
        return int(self.chunks.chunk_of[self.ids[value]])

    def open(self, host: int) -> None:
        """Lets what is not written yet of a host."""
        first_writes: dict[tuple[int, int], int] = {}
        for call in self.joined.calls:
            for value in (self.joined.values[v] for v in call.outputs):
                if value.owner == host:
                    first_writes.setdefault(value.layout.extent, call.tick)
        end = int(self.chunks.end[self.chunk(host)])
        self.stays[host] = [Stay(low, high, tick, end) for (low, high), tick in first_writes.items()]

    def lodge(self, unit: Unit) -> None:
        """Lets a unit move in where it fits, if it does anywhere."""
        for host, stays in self.stays.items():
            chunk = self.chunk(host)
            inside = self.chunks.begin[chunk] <= unit.begin and unit.end <= self.chunks.end[chunk]
            if not inside or any(value == host for value, _ in unit.values):
                continue
            stay = _lowest(unit, stays, self.joined.values[host].spec.nbytes)
            if stay.high:
                stays.append(stay)
                for value, at in unit.values:
                    layout = Layout.dense(self.joined.values[value].spec, stay.low + at)
                    self.nests[value] = Nest(host, layout)
                return

    def settled(self, nest: Nest) -> Nest:
        """The same bytes, counted from a value that lies in no other."""
        while nest.root in self.nests:
            outer = self.nests[nest.root]
            layout = evolve(nest.layout, offset=nest.layout.offset + outer.layout.offset)
            nest = Nest(outer.root, layout, nest.until)
        return nest


def _lowest(unit: Unit, stays: list[Stay], nbytes: int) -> Stay:
    """The lowest place that is free while a unit lives; one of no bytes where there is none."""
    rivals = [s for s in stays if s.begin < unit.end and unit.begin < s.end]
    for low in sorted({0, *(-(-s.high // _ALIGNMENT) * _ALIGNMENT for s in rivals)}):
        stay = Stay(low, low + unit.size, unit.begin, unit.end)
        if stay.high <= nbytes and not any(map(stay.meets, rivals)):
            return stay
    return Stay(0, 0, 0, 0)


def _units(letting: _Letting, problem: Problem) -> Iterator[Unit]:
    """The chains that may move."""
    chain, members = chains(problem), dict[int, list[Value]]()
    for value in letting.joined.values:
        if value.id in letting.ids and not value.is_view:
            members.setdefault(int(chain.root[letting.chunk(value.id)]), []).append(value)
    kept = {*letting.joined.parameters.keys(), *letting.joined.parameters.values()}
    for root, values in members.items():
        if problem.size[root] and all(v.role in _LODGES and v.id not in kept for v in values):
            rows = [letting.chunk(v.id) for v in values]
            places = tuple((v.id, int(chain.offset[row])) for v, row in zip(values, rows, strict=True))
            begin, end = int(problem.begin[rows].min()), int(problem.end[rows].max())
            yield Unit(places, int(problem.size[root]), begin, end)
