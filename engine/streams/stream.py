"""A network that reads, computes and hands out images stripe after stripe of rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from allocator.progress import each
from engine.api import Executable
from engine.execution_plan import ExecutionPlan
from engine.executor.feeds import check_names, check_unshared, out_arrays, read_feeds, read_outs
from engine.executor.rows import RowSource, row_source
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.text.errors import FeedError
from engine.text.units import counted, format_bytes
from ops.common.tiling import ROWS, cut
from ops.tensor.spec import Array, TensorSpec


@frozen
class StreamStripe:
    """Rows [first, last) of the outputs. `reads` has the rows that are read of inputs, by name.

    `constants` has the rows of constants that have other values for other rows, by the name of the plan's input that
    takes them. `kind` is the position of the plan that computes the stripe.
    """

    first: int
    last: int
    reads: Mapping[str, tuple[int, int]]
    constants: Mapping[str, tuple[int, int]]
    kind: int


@frozen(eq=False)
class Stream:
    """A network that computes images stripe after stripe; see `arenaplan.stream`. One stripe is computed at a time.

    `stripes` are in order, `plans` has one plan for each kind of stripe, and `axes` the axis of rows of each input and
    output that is streamed. All plans run in one arena, and share packed weights. `share` is the part of all operations
    that is done again, as rows between two stripes are computed for both. `whole_bytes` is the arena of whole images.
    `kept` has the tensors of which a stripe keeps rows for the next one, by name, with the most rows.
    """

    graph: Graph
    stripes: Sequence[StreamStripe]
    plans: Sequence[ExecutionPlan]
    axes: Mapping[str, int]
    share: float
    whole_bytes: int
    kept: Mapping[str, TensorSpec]
    _executables: Sequence[Executable] = field(repr=False)
    _constants: Mapping[str, RowSource] = field(repr=False)

    @property
    def arena_bytes(self) -> int:
        """The bytes of the arena: those of the largest plan, and of the rows that are kept beside it."""
        return max(plan.arena_bytes for plan in self.plans) + self.kept_bytes

    @property
    def kept_bytes(self) -> int:
        """The bytes of the rows that stripes keep."""
        return sum(spec.nbytes for spec in self.kept.values())

    @property
    def height(self) -> int:
        """The rows of the outputs of one stripe; the last one may have fewer."""
        return self.stripes[0].last

    @property
    def rows_read(self) -> Mapping[str, int]:
        """How many rows are read of each input, by name; rows that two stripes need count twice."""
        rows = dict.fromkeys(self.stripes[0].reads, 0)
        for stripe in self.stripes:
            for name, (first, last) in stripe.reads.items():
                rows[name] += last - first
        return rows

    @property
    def _whole(self) -> list[str]:
        """The inputs that stripes read whole, and those that nothing reads and that have no rows."""
        read = {name for executable in self._executables for name in executable.graph.inputs}
        named = ((name, var) for name, var in self.graph.inputs.items() if name not in self.stripes[0].reads)
        return [name for name, var in named if name in read or var.ndim <= self.axes[name]]

    def run(self, feeds: Mapping[str, Any], *, out: Mapping[str, Any] | None = None) -> dict[str, Array]:
        """Computes all stripes; returns the outputs by name.

        An input is an array, such as a numpy.memmap, something with a shape that gives arrays for slices, or an
        iterable of stripes in order, of any heights. `out` gives arrays that outputs are written to, such as
        numpy.memmap; others are allocated. A run that fails has written the stripes in front of the one where it failed
        into them. Raises FeedError for arrays that do not fit, and `out` that shares bytes with an input; KernelError;
        ArenaInUseError where another thread computes a stripe.
        """
        arrays = out_arrays(out or {})
        specs = {name: var.spec for name, var in self.graph.outputs.items()}
        read_outs(arrays, specs)
        outs = {n: arrays[n] if n in arrays else np.empty(spec.shape, spec.dtype) for n, spec in specs.items()}
        for _ in self._run(feeds, outs):
            pass
        return outs

    def stream(self, feeds: Mapping[str, Any]) -> Iterator[dict[str, Array]]:
        """Returns an iterator over the stripes of the outputs, by name, in order; inputs are those of `run`.

        Stripes are new arrays. Raises FeedError, and the iterator the errors of `run`: what is wrong with a stripe of
        an input shows when it is read, and rows that are missing or too many behind the last one, in the end.
        """
        return self._run(feeds, {})

    def _run(self, feeds: Mapping[str, Any], outs: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
        inputs = self.graph.inputs
        check_names("input", feeds, inputs, complete=True)
        specs = {name: inputs[name].spec for name in self._whole}
        if coming := [name for name in specs if isinstance(feeds[name], Iterator)]:
            raise FeedError(
                f"input {coming[0]!r} comes in stripes, but each stripe of outputs reads it whole; give an array"
            )
        whole = read_feeds({name: feeds[name] for name in specs}, specs)
        streamed = {n: row_source(n, feeds[n], inputs[n].spec, self.axes[n]) for n in inputs if n not in whole}
        return self._each(streamed, whole, outs)

    def _each(
        self, streamed: Mapping[str, RowSource], whole: dict[str, Array], outs: Mapping[str, Array]
    ) -> Iterator[dict[str, Array]]:
        sources = {**streamed, **self._constants}
        kept = {name: np.empty(spec.shape, spec.dtype) for name, spec in self.kept.items()}
        for stripe in each("stripe", self.stripes, lambda s: f"rows {s.first} to {s.last}"):
            executable = self._executables[stripe.kind]
            spans = {**stripe.reads, **stripe.constants}
            fed = {name: sources[name].take(*span) for name, span in spans.items()}
            fed |= _held(kept, executable.graph.inputs)
            fed |= {name: whole[name] for name in executable.graph.inputs if name not in fed}
            check_unshared(whole | {name: source.memory for name, source in streamed.items()}, outs)
            into = {n: array[cut(self.axes[n], stripe.first, stripe.last)] for n, array in outs.items()}
            computed = executable.run(fed, out=into | _held(kept, executable.graph.outputs))
            yield {name: computed[name] for name in self.graph.outputs}
        for source in streamed.values():
            source.end()

    def __repr__(self) -> str:
        """Returns one line."""
        return f"<stream of {self.graph!r}: {self.text}>"

    @property
    def text(self) -> str:
        """What it costs, in one line."""
        kept = f"; rows of {counted(len(self.kept), 'tensor')} are kept" if self.kept else ""
        return (
            f"{counted(len(self.stripes), 'stripe')} of {counted(self.height, 'row')}, {len(self.plans)} of them "
            f"different, in an arena of {format_bytes(self.arena_bytes)} (whole images: "
            f"{format_bytes(self.whole_bytes)}); {self.share:.1%} more operations{kept}"
        )


def _held(kept: Mapping[str, Array], needed: Mapping[str, Var]) -> dict[str, Array]:
    """Returns the first rows of those kept tensors that are inputs or outputs of a stripe, as many as it has."""
    return {name: array[:, : needed[name].shape[ROWS]] for name, array in kept.items() if name in needed}
