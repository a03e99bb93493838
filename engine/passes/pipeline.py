"""All passes in the order that does most, as often as that changes anything."""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from numbers import Integral

from attrs import frozen

from engine.graph.graph import Graph
from engine.passes.base import Pass
from engine.passes.cleanup.common import COMMON
from engine.passes.cleanup.constants import CONSTANTS
from engine.passes.cleanup.dead_code import DEAD_CODE
from engine.passes.cleanup.movement import MOVEMENT
from engine.passes.cleanup.neutral import NEUTRAL
from engine.passes.cleanup.no_ops import NO_OPS
from engine.passes.fold.batch_norm import FOLD_BATCH_NORM
from engine.passes.fuse.conv import FUSE_CONV
from engine.passes.fuse.elementwise import FUSE_ELEMENTWISE
from engine.passes.fuse.matmul import FUSE_MATMUL
from engine.passes.fuse.quantised import FUSE_QUANTISED
from engine.passes.layout.channels_last import CHANNELS_LAST
from engine.passes.layout.part_convs import PART_CONVS
from engine.passes.quantised.quantise import QUANTISE
from engine.passes.recognise.activations import ACTIVATIONS
from engine.passes.recognise.gemm_flags import GEMM_FLAGS
from engine.passes.recognise.layer_norms import LAYER_NORMS
from engine.passes.recognise.softmaxes import SOFTMAXES
from engine.passes.recognise.transposes import TRANSPOSES
from engine.passes.verify import verify
from engine.text.errors import GraphError, OptionError

CODES: tuple[Pass, ...] = (NO_OPS, QUANTISE)
"""Integers instead of real numbers, while constants still are what they were quantised to."""
CLEANUP: tuple[Pass, ...] = (MOVEMENT, NO_OPS, NEUTRAL, CONSTANTS, COMMON, DEAD_CODE)
"""Equal bits: less is computed, nothing is computed in another way."""
RECOGNITION: tuple[Pass, ...] = (LAYER_NORMS, SOFTMAXES, ACTIVATIONS, TRANSPOSES, GEMM_FLAGS)
"""One operator for the pieces into which an exporter took it."""
FOLDING: tuple[Pass, ...] = (FOLD_BATCH_NORM,)
"""Arithmetic moved into weights."""
FUSION: tuple[Pass, ...] = (FUSE_CONV, FUSE_QUANTISED, FUSE_MATMUL, FUSE_ELEMENTWISE)
"""Several operators in one loop; last, since what is fused is no longer recognised."""
LAYOUT: tuple[Pass, ...] = (CHANNELS_LAST,)
"""Another order of axes; in front of fusion, as more is fused there."""
PARTING: tuple[Pass, ...] = (PART_CONVS,)
"""Sums instead of copies; behind fusion, as convolutions then have what is added and their activation."""
LEVELS = (0, 1, 2, 3)
_MOST_ROUNDS = 16


@frozen
class Phase:
    """Passes that take turns until none of them changes anything, from a level on."""

    level: int
    passes: tuple[Pass, ...]


PHASES = (
    Phase(2, CODES),
    Phase(1, CLEANUP),
    Phase(2, (*RECOGNITION, *FOLDING, *CLEANUP)),
    Phase(3, (*LAYOUT, *CLEANUP)),
    Phase(2, (*FUSION, *CLEANUP)),
    Phase(3, (*PARTING, *CLEANUP)),
)


@frozen(eq=False)
class Applied:
    """One pass that changed something: the graph in front of it and behind it."""

    by: str
    before: Graph
    after: Graph


def optimise(graph: Graph, level: int = 2) -> Graph:
    """A graph that computes the same with less: under the same names of inputs, outputs and parameters.

    Level 0 changes nothing; level 1 leaves every bit of the outputs as it is; level 2 may change last bits; level 3
    turns what lies around convolutions to channels last, too. The very graph where nothing is found. Bodies of control
    flow are left as they are. Raises OptionError for another level, GraphError for a graph with open dimensions
    (`engine.bind` it first; not if data decide them), and for no graph.
    """
    for applied in trail(graph, level):
        graph = applied.after
    return graph


def trail(graph: Graph, level: int = 2) -> Iterator[Applied]:
    """What `optimise` does, one pass after the other; each result has been verified."""
    if not isinstance(graph, Graph):
        raise GraphError(f"{graph!r} is no graph")
    if isinstance(level, bool) or not isinstance(level, Integral) or level not in LEVELS:
        raise OptionError(f"{level!r} is no level of optimisation; there are {', '.join(map(str, LEVELS))}")
    for phase in PHASES:
        if phase.level <= level:
            for applied in in_turn(graph, phase.passes):
                graph = applied.after
                yield applied


def in_turn(graph: Graph, passes: Sequence[Pass]) -> Iterator[Applied]:
    """The passes one after the other, again and again until none of them changes anything."""
    quiet = 0
    for each in chain.from_iterable(repeat(passes, _MOST_ROUNDS)):
        after = each(graph)
        quiet += 1
        if after is not graph:
            verify(graph, after)
            yield Applied(each.name, graph, after)
            graph, quiet = after, 0
        if quiet == len(passes):
            return
