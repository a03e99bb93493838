"""What each pass does for a network: operators, bytes, seconds of a run, and how far it moves the outputs."""

from collections.abc import Mapping
from typing import Any

from attrs import asdict, frozen

from allocator.progress import Activity
from engine.api import Executable, compile_graph
from engine.cli.comparison import interleaved
from engine.cli.oracle import TOLERANCE
from engine.graph.graph import Graph
from engine.passes.pipeline import applied_passes
from engine.planning.options import PlanOptions
from engine.system.arrays import largest_difference
from engine.text.screen import UNBOUNDED
from engine.text.tables import in_columns, joined
from ops.tensor.spec import Array

AS_GIVEN = "as given"
ROUNDINGS = 16
"""The roundings to 16 bits by which outputs may differ: with other passes, other tensors are rounded."""
_ROUNDING: Mapping[str, float] = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance of 1 from the next number of a type."""
_HEAD: tuple[str, ...] = ("pass", "operators", "arena", "weights", "run", "as given", "difference")


@frozen
class PassCosts:
    """A network after one pass and all before it; `before` and `operators` count operators.

    `seconds` is the least time of a run, and `seconds_as_given` that of the network as it was, in turn with it.
    `difference` is the largest of all outputs from those of the network as it was, over their largest value.
    """

    by: str
    before: int
    operators: int
    arena_bytes: int
    weights_bytes: int
    seconds: float
    seconds_as_given: float
    difference: float


@frozen(eq=False)
class PassComparison:
    """The network as given, then the network after each pass that changed something.

    `store` is the type of 16 bits in which tensors are stored, with passes and without; "" for their own.
    """

    model: str
    level: int
    store: str
    runs: int
    rows: tuple[PassCosts, ...]

    @property
    def tolerance(self) -> float:
        """The largest difference that is no error: none at level 1."""
        if self.store:
            return ROUNDINGS * _ROUNDING[self.store]
        return TOLERANCE if self.level > 1 else 0.0

    @property
    def outputs_equal(self) -> bool:
        """Returns whether all outputs are near enough."""
        return all(row.difference <= self.tolerance for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return asdict(self) | {"outputs_equal": self.outputs_equal}

    def text(self, width: int = UNBOUNDED) -> str:
        """Returns a table."""
        stored = f", tensors stored as {self.store}" if self.store else ""
        turns = f"least of {self.runs} runs in turn with the network as given"
        head = f"{self.model}: passes of level {self.level}{stored}, {turns}"
        rows = [_HEAD, *map(_cells, self.rows)]
        notes = [] if self.outputs_equal else ["the outputs DIFFER by more than passes may change them"]
        return joined((head, *in_columns(rows, set(range(1, 7)), width), *notes))


def compare_passes(
    graph: Graph, feeds: Mapping[str, Array], level: int, *, runs: int, options: PlanOptions
) -> PassComparison:
    """Plans and runs a network after each pass that changes it; all are stored as the options say.

    Raises GraphError where sizes are open.
    """
    options = {**options, "optimise": 0}
    begun = compile_graph(graph, **options)
    against = _Against(begun, feeds, begun.run(feeds), runs)
    rows = [against.row(AS_GIVEN, graph, begun)]
    for applied in applied_passes(graph, level):
        with Activity("behind", applied.by):
            rows.append(against.row(applied.by, applied.before, compile_graph(applied.after, **options)))
    return PassComparison(graph.name, level, options.get("store", ""), runs, tuple(rows))


@frozen(eq=False)
class _Against:
    """The network as given, and the outputs of its first run, as parameters may change."""

    begun: Executable
    feeds: Mapping[str, Array]
    outputs: Mapping[str, Array]
    runs: int

    def row(self, by: str, before: Graph, executable: Executable) -> PassCosts:
        """Measures a network; only two of them are alive at a time, as packed weights are large."""
        difference = 0.0 if executable is self.begun else largest_difference(executable.run(self.feeds), self.outputs)
        ours, theirs = interleaved(
            self.runs, lambda: executable.run(self.feeds, copy=False), lambda: self.begun.run(self.feeds, copy=False)
        )
        return PassCosts(
            by=by,
            before=len(before.operators),
            operators=len(executable.graph.operators),
            arena_bytes=executable.arena_bytes,
            weights_bytes=executable.plan.weights_bytes,
            seconds=min(ours),
            seconds_as_given=min(theirs),
            difference=difference,
        )


def _cells(row: PassCosts) -> tuple[str, ...]:
    change = f"{row.before} -> {row.operators}" if row.by != AS_GIVEN else str(row.operators)
    times = (f"{t * 1e3:.2f} ms" for t in (row.seconds, row.seconds_as_given))
    return (row.by, change, f"{row.arena_bytes} B", f"{row.weights_bytes} B", *times, f"{row.difference:.1e}")
