"""Hole filling: other values are placed in bytes of a value that are reserved but not yet written.

A value in which others are nested is alive from the first of them on. Until a call writes a part of it, the bytes of
that part are a hole. Chains of overwrites whose lifetime ends before the write are placed in holes, the largest chain
first, each at the lowest offset that is free during its lifetime. A value with nested values can be placed in a hole
together with all of them, and its own holes are filled too.
"""

from collections.abc import Collection, Iterator, Mapping

from attrs import define, evolve, field, frozen

from allocator.derive.chunks import Chunks
from allocator.problem import Problem, align_up
from engine.lower.calls import Lowered, Role, Value, arena_ids
from engine.nesting.search import Nesting, SubBuffer
from ops.tensor.layout import Layout

MOST_BLOCKS = 256
"""The most blocks that are tried, the largest first. More blocks take more planning time and save few bytes."""
_MOVABLE = frozenset({Role.ACTIVATION, Role.COPY, Role.WORKSPACE})


@frozen(eq=False)
class Occupied:
    """Bytes [low, high) of a host that are in use in the ticks [begin, end)."""

    low: int
    high: int
    begin: int
    end: int

    def overlaps(self, other: "Occupied") -> bool:
        """Returns whether the two share a byte in some tick."""
        at_once = self.begin < other.end and other.begin < self.end
        return at_once and self.low < other.high and other.low < self.high


@frozen(eq=False)
class _Host:
    """A value with holes: its bytes, its lifetime [begin, end), and its bytes in use.

    Parts of it are in use from their first write on, blocks in holes as long as they are alive.
    """

    nbytes: int
    begin: int
    end: int
    occupied: list[Occupied]


@frozen(eq=False)
class Block:
    """A chain of overwrites that is placed as a whole.

    `values` has pairs (value, byte of the block at which the value begins). The block has `size` bytes and is alive in
    the ticks [begin, end).
    """

    values: tuple[tuple[int, int], ...]
    size: int
    begin: int
    end: int


def fill_holes(nesting: Nesting, joined: Lowered, chunks: Chunks, problem: Problem, alignment: int) -> Nesting:
    """Returns the nesting with blocks placed in its holes, each at a multiple of `alignment` bytes.

    `joined` is the graph with the nesting applied; `chunks` and `problem` are derived from `joined`.
    """
    filling = _HoleFilling(joined, chunks, arena_ids(joined), dict(nesting.sub_buffers), alignment)
    writes = _first_writes(joined, nesting.roots)
    for host in sorted(nesting.roots, key=lambda root: -joined.values[root].spec.nbytes):
        filling.add_host(host, writes[host])
    for block in sorted(_blocks(filling, problem), key=lambda b: (-b.size, b.begin))[:MOST_BLOCKS]:
        filling.place(block)
    sub_buffers = {value: filling.resolved(buffer) for value, buffer in filling.sub_buffers.items()}
    joins = {tick: tuple(map(filling.resolved, buffers)) for tick, buffers in nesting.joins.items()}
    return evolve(nesting, sub_buffers=sub_buffers, joins=joins)


@define(eq=False)
class _HoleFilling:
    """The state of hole filling. `hosts` has the values with holes, the largest first."""

    joined: Lowered
    chunks: Chunks
    ids: Mapping[int, int]
    sub_buffers: dict[int, SubBuffer]
    alignment: int
    hosts: dict[int, _Host] = field(factory=dict)

    def chunk(self, value: int) -> int:
        """Returns the chunk of a value of the arena."""
        return int(self.chunks.chunk_of[self.ids[value]])

    def add_host(self, host: int, first_writes: Mapping[tuple[int, int], int]) -> None:
        """Makes the holes of a host available: each part of it is occupied only from its first write on."""
        chunk = self.chunk(host)
        begin, end = int(self.chunks.begin[chunk]), int(self.chunks.end[chunk])
        occupied = [Occupied(low, high, tick, end) for (low, high), tick in first_writes.items()]
        self.hosts[host] = _Host(self.joined.values[host].spec.nbytes, begin, end, occupied)

    def place(self, block: Block) -> None:
        """Places a block in the first host that has a free place for it, if any has."""
        for number, host in self.hosts.items():
            if host.nbytes < block.size:
                return  # as all hosts behind it
            inside = host.begin <= block.begin and block.end <= host.end
            if not inside or any(value == number for value, _ in block.values):
                continue
            free = _lowest_place(block, host.occupied, host.nbytes, self.alignment)
            if free.high:
                host.occupied.append(free)
                for value, at in block.values:
                    layout = Layout.dense(self.joined.values[value].spec, free.low + at)
                    self.sub_buffers[value] = SubBuffer(number, layout)
                return

    def resolved(self, buffer: SubBuffer) -> SubBuffer:
        """Returns the same bytes, counted from a value that is nested in no other."""
        while buffer.root in self.sub_buffers:
            outer = self.sub_buffers[buffer.root]
            layout = evolve(buffer.layout, offset=buffer.layout.offset + outer.layout.offset)
            buffer = SubBuffer(outer.root, layout, buffer.until)
        return buffer


def _first_writes(joined: Lowered, hosts: Collection[int]) -> dict[int, dict[tuple[int, int], int]]:
    """Returns, by host, the ticks of the first writes of its bytes [low, high)."""
    writes: dict[int, dict[tuple[int, int], int]] = {host: {} for host in hosts}
    for call in joined.calls:
        for value in (joined.values[v] for v in call.outputs):
            if value.owner in writes:
                writes[value.owner].setdefault(value.layout.extent, call.tick)
    return writes


def _lowest_place(block: Block, occupied: list[Occupied], nbytes: int, alignment: int) -> Occupied:
    """Returns the lowest place that is free during the lifetime of a block; one of no bytes where there is none."""
    rivals = [o for o in occupied if o.begin < block.end and block.begin < o.end]
    for low in sorted({0, *(align_up(o.high, alignment) for o in rivals)}):
        place = Occupied(low, low + block.size, block.begin, block.end)
        if place.high <= nbytes and not any(map(place.overlaps, rivals)):
            return place
    return Occupied(0, 0, 0, 0)


def _blocks(filling: _HoleFilling, problem: Problem) -> Iterator[Block]:
    """Yields the chains that may be placed in a hole."""
    chain, members = problem.chains, dict[int, list[Value]]()
    for value in filling.joined.values:
        if value.id in filling.ids and not value.is_view:
            members.setdefault(int(chain.root[filling.chunk(value.id)]), []).append(value)
    kept = {*filling.joined.parameters.keys(), *filling.joined.parameters.values()}
    for root, values in members.items():
        if problem.size[root] and all(v.role in _MOVABLE and v.id not in kept for v in values):
            rows = [filling.chunk(v.id) for v in values]
            places = tuple((v.id, int(chain.offset[row])) for v, row in zip(values, rows, strict=True))
            begin, end = int(problem.begin[rows].min()), int(problem.end[rows].max())
            yield Block(places, int(problem.size[root]), begin, end)
