"""A partition of a graph: its parts, what they need and send, and how good it is."""

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from allocator.cuts.problem import TRAFFIC
from engine.graph.graph import Graph
from engine.partitions.parts import PartGraph
from engine.planning.placed import PlacedPlan
from engine.text.tables import in_columns, joined
from engine.text.units import counted, format_bytes

OPTIMAL, WITHIN = "optimal", "within gap"
_CLOSE = 1e-9
_HEAD = ("part", "operators", "weights", "arena", "bound", "capacity", "full", "receives", "time", "from", "to")


@frozen(eq=False)
class Part:
    """A part with its plan. Bytes it receives from other parts in a run; seconds of its operators by the cost model."""

    part: PartGraph
    plan: PlacedPlan
    capacity: int
    operators: tuple[str, ...]
    received_bytes: int
    seconds: float

    @property
    def weights_bytes(self) -> int:
        """Bytes that stay in memory for weights."""
        return self.plan.resident_weights_bytes

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena."""
        return self.plan.arena_bytes

    @property
    def nbytes(self) -> int:
        """Bytes of weights and arena."""
        return self.weights_bytes + self.arena_bytes

    @property
    def fill(self) -> float:
        """The share of the capacity that is used."""
        return self.nbytes / max(self.capacity, 1)


@frozen
class Send:
    """A tensor that one part computes and another reads; parts are counted from 0."""

    tensor: str
    nbytes: int
    maker: int
    reader: int


@frozen(eq=False)
class Partition:
    """A graph in parts, each of which fits its capacity.

    `graph` is the whole after passes. `value` is the objective: bytes sent between parts, or seconds of the slowest
    part; no partition has less than `bound`. `bandwidth` is in bytes a second.
    """

    graph: Graph
    parts: tuple[Part, ...]
    objective: str
    value: float
    bound: float
    bandwidth: int

    @property
    def gap(self) -> float:
        """How much better a partition may be, as a share of the objective; 0 where this is proved to be the best."""
        lack = self.value - self.bound
        return lack / self.value if lack > _CLOSE * self.value else 0.0

    @property
    def status(self) -> str:
        """Whether the partition is proved to be the best."""
        return WITHIN if self.gap else OPTIMAL

    @property
    def sends(self) -> tuple[Send, ...]:
        """What parts send to each other, by the part that reads it."""
        return tuple(self._sends())

    @property
    def traffic_bytes(self) -> int:
        """Bytes that are sent between parts in a run."""
        return sum(part.received_bytes for part in self.parts)

    @property
    def part_seconds(self) -> tuple[float, ...]:
        """Seconds that each part takes of a pipeline: of its operators, and of what it receives."""
        return tuple(part.seconds + part.received_bytes / self.bandwidth for part in self.parts)

    @property
    def speedup(self) -> float:
        """The throughput of the pipeline by the model, over that of all operators one after the other."""
        return sum(part.seconds for part in self.parts) / max(*self.part_seconds, 1e-300)

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return {
            "model": self.graph.name,
            "objective": self.objective,
            "status": self.status,
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "traffic_bytes": self.traffic_bytes,
            "bandwidth": self.bandwidth,
            "slowest_seconds": max(self.part_seconds),
            "speedup": self.speedup,
            "parts": [self._part_data(number) for number in range(len(self.parts))],
            "sends": [{"tensor": s.tensor, "bytes": s.nbytes, "from": s.maker, "to": s.reader} for s in self.sends],
        }

    def text(self) -> str:
        """Returns a table of the parts, and how good the partition is."""
        parts = counted(len(self.parts), "part")
        head = f"{self.graph.name}: {parts}, {self._what()}; {self._how_good()}"
        rows = [_HEAD, *(self._row(number) for number in range(len(self.parts)))]
        sums = (
            f"sent between parts in a run: {format_bytes(self.traffic_bytes)} in {counted(len(self.sends), 'tensor')}",
            f"slowest part by the model of costs: {_milliseconds(max(self.part_seconds))}, {self.speedup:.2f} times "
            "the throughput of one process",
        )
        return joined((head, *in_columns(rows, set(range(9))), *sums))

    def _what(self) -> str:
        if self.objective == TRAFFIC:
            return f"{format_bytes(int(self.value))} sent between them"
        return f"{_milliseconds(self.value)} for the slowest"

    def _how_good(self) -> str:
        if not self.gap:
            return "no partition has less"
        bound = format_bytes(int(self.bound)) if self.objective == TRAFFIC else _milliseconds(self.bound)
        return f"no partition has less than {bound}, a gap of {self.gap:.1%}"

    def _row(self, number: int) -> tuple[str, ...]:
        part = self.parts[number]
        sizes = (part.weights_bytes, part.arena_bytes, part.plan.plan.lower_bound, part.capacity)
        return (
            f"{number + 1}",
            f"{len(part.operators)}",
            *map(format_bytes, sizes),
            f"{part.fill:.1%}",
            format_bytes(part.received_bytes),
            _milliseconds(self.part_seconds[number]),
            part.operators[0],
            part.operators[-1],
        )

    def _part_data(self, number: int) -> dict[str, Any]:
        part = self.parts[number]
        return {
            "weights_bytes": part.weights_bytes,
            "arena_bytes": part.arena_bytes,
            "lower_bound": part.plan.plan.lower_bound,
            "capacity": part.capacity,
            "received_bytes": part.received_bytes,
            "seconds": self.part_seconds[number],
            "operators": list(part.operators),
        }

    def _sends(self) -> Iterator[Send]:
        maker = {name: number for number, part in enumerate(self.parts) for name in part.part.sent}
        for number, part in enumerate(self.parts):
            for name in part.part.received:
                yield Send(name, part.part.graph.vars[name].spec.nbytes, maker[name], number)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
