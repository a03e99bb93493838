"""The pipeline of all passes: phases by level of optimisation, each run until no pass changes anything."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from types import MappingProxyType

from attrs import frozen

from engine.graph.graph import Graph
from engine.passes.base import LAST_BITS, MOST_ROUNDS, Pass
from engine.passes.bodies import BODIES, BodiesPass
from engine.passes.cleanup.common import COMMON
from engine.passes.cleanup.constants import CONSTANTS
from engine.passes.cleanup.redundant import DEAD_CODE, MOVEMENT, NEUTRAL, NO_OPS
from engine.passes.edit import Edit
from engine.passes.fold.batch_norm import FOLD_BATCH_NORM
from engine.passes.fuse.conv import FUSE_CONV
from engine.passes.fuse.elementwise import FUSE_ELEMENTWISE
from engine.passes.fuse.matmul import FUSE_MATMUL
from engine.passes.fuse.quantised import FUSE_QUANTISED
from engine.passes.layout.channels_last import CHANNELS_LAST
from engine.passes.layout.split_convs import SPLIT_CONVS
from engine.passes.quantised.codes import CODES
from engine.passes.quantised.quantise import QUANTISE
from engine.passes.recognise.activations import ACTIVATIONS
from engine.passes.recognise.layer_norms import LAYER_NORMS
from engine.passes.recognise.softmaxes import SOFTMAXES
from engine.passes.recognise.transposes import GEMM_FLAGS, TRANSPOSES
from engine.passes.verify import verify
from engine.planning.options import HIGHEST_LEVEL, check_level
from engine.text.errors import GraphError

QUANTISATION: tuple[Pass, ...] = (NO_OPS, CODES, QUANTISE)
"""Integer arithmetic for quantised networks; first, while constants still are the quantised values."""
CLEANUP: tuple[Pass, ...] = (MOVEMENT, NO_OPS, NEUTRAL, CONSTANTS, COMMON, DEAD_CODE)
"""Redundant operators. The outputs keep every bit: less is computed, and nothing in another way."""
RECOGNITION: tuple[Pass, ...] = (LAYER_NORMS, SOFTMAXES, ACTIVATIONS, TRANSPOSES, GEMM_FLAGS)
"""One operator in place of a formula of several, as exporters write it."""
FOLDING: tuple[Pass, ...] = (FOLD_BATCH_NORM,)
"""Arithmetic that moves into constant weights."""
FUSION: tuple[Pass, ...] = (FUSE_CONV, FUSE_QUANTISED, FUSE_MATMUL, FUSE_ELEMENTWISE)
"""One loop for several operators; behind recognition, which does not know fused operators."""
LAYOUT: tuple[Pass, ...] = (CHANNELS_LAST,)
"""Channels last; in front of fusion, because convolutions with channels last fuse more."""
SPLITTING: tuple[Pass, ...] = (SPLIT_CONVS,)
"""Sums in place of concatenations; behind fusion, when convolutions have their additions and activations."""


GROUPS: Mapping[str, tuple[Pass, ...]] = MappingProxyType(
    {
        "quantised operators": QUANTISATION,
        "clean-up": CLEANUP,
        "formulas and folding": (*RECOGNITION, *FOLDING),
        "channels last": LAYOUT,
        "fusion": FUSION,
        "convolutions in parts": SPLITTING,
    }
)
"""The groups of passes by name: what may be left out where the arena would grow."""
CHOICES = (BODIES, *GROUPS)
"""The names of all groups; that of bodies of control flow has the passes of all others."""
FAST = ("quantised operators", "channels last", "fusion")
"""The groups that runs owe most of their speed to."""


@frozen
class Phase:
    """Groups of passes that run one after the other until nothing changes any more, from a level of optimisation on.

    The clean-up behind the first group is for what that one leaves.
    """

    level: int
    groups: tuple[str, ...]

    def passes(self, left_out: Collection[str]) -> tuple[Pass, ...]:
        """Returns the passes of the groups that are not left out; none where the first group is."""
        if self.groups[0] in left_out:
            return ()
        return tuple(each for group in self.groups if group not in left_out for each in GROUPS[group])


PHASES = (
    Phase(2, ("quantised operators",)),
    Phase(1, ("clean-up",)),
    Phase(2, ("formulas and folding", "clean-up")),
    Phase(3, ("channels last", "clean-up")),
    Phase(2, ("fusion", "clean-up")),
    Phase(3, ("convolutions in parts", "clean-up")),
)


@frozen(eq=False)
class Applied:
    """A pass that changed something: its name and its promise, and the graph before and after it."""

    by: str
    before: Graph
    after: Graph
    tolerance: float = LAST_BITS


def optimise(graph: Graph, level: int = HIGHEST_LEVEL) -> Graph:
    """Returns a graph that computes the same with less, with the same names of inputs, outputs and parameters.

    Level 0 changes nothing. Level 1 keeps every formula, and so every bit, but where a folded weight lets a kernel pack
    it. Level 2 may change last bits. Level 3 also computes regions around convolutions with channels last. The very
    graph is returned where no pass changes it. Open dimensions stay, and all guards; what depends on lengths that are
    not known is left as it is. Bodies of control flow are changed as well. Raises OptionError for another level,
    GraphError for something that is no graph.
    """
    for applied in applied_passes(graph, level):
        graph = applied.after
    return graph


def applied_passes(graph: Graph, level: int = HIGHEST_LEVEL, *, left_out: Collection[str] = ()) -> Iterator[Applied]:
    """Yields the passes of `optimise` that change something, one after the other; each result has been verified.

    `left_out` has names of groups of passes that do not run.
    """
    if not isinstance(graph, Graph):
        raise GraphError(f"{graph!r} is no graph")
    check_level(level)
    in_bodies = BodiesPass(partial(optimise, level=level), tolerance=LAST_BITS if level > 1 else 0.0)
    bodies = () if BODIES in left_out or not level else (in_bodies,)
    state = _State(graph)
    for passes in (bodies, *(phase.passes(left_out) for phase in PHASES if phase.level <= level)):
        yield from state.run(passes)


def until_unchanged(graph: Graph, passes: Sequence[Pass]) -> Iterator[Applied]:
    """Yields the passes that change something, running them in rounds until none of them does."""
    return _State(graph).run(passes)


class _State:
    """A graph between passes, with its edit and the passes that would not change it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._edit = Edit(graph)
        self._settled: set[Pass] = set()

    def run(self, passes: Sequence[Pass]) -> Iterator[Applied]:
        """Runs passes in rounds until none of them changes the graph; yields those that do."""
        for each in chain.from_iterable(repeat(passes, MOST_ROUNDS)):
            if self._settled.issuperset(passes):
                break
            if each not in self._settled:
                yield from self._apply(each)

    def _apply(self, each: Pass) -> Iterator[Applied]:
        each.apply_to(self._edit)
        before, after = self._graph, self._edit.graph()
        if after is before:
            self._settled.add(each)
            return
        verify(before, after)
        self._graph, self._edit, self._settled = after, Edit(after), set()
        yield Applied(each.name, before, after, each.tolerance)
