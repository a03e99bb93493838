"""The judge of values on the passes over a graph, with random inputs; lengths that are names are small."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from attrs import evolve

from engine.graph.graph import Graph
from engine.passes import cascade
from engine.passes.automatic import CASCADES
from engine.passes.base import LAST_BITS
from engine.passes.pipeline import Applied, applied_passes
from engine.passes.values import Outputs, check_values, compute
from engine.planning.options import Options
from engine.planning.placed import Optimisation
from engine.stages.bind import bind, input_shapes
from engine.stages.compiling import staged
from engine.stages.template import template
from engine.system.arrays import random_arrays
from engine.text.errors import EngineError
from ops.tensor.errors import OpError
from ops.tensor.spec import Array, TensorSpec

_LOG = logging.getLogger("arenaplan")


def judge_passes(graph: Graph, options: Options, done: Sequence[Optimisation] = ()) -> None:
    """Raises PassError where a pass that the options ask for moves an output by more than it promises.

    `done` says which groups of passes are left out, and which cascades were found. A graph that cannot be computed from
    random inputs, for example as they are no positions that exist, or as it is too large for this machine, is named in
    the log: nothing is compared.
    """
    if not options.level and not done:
        return
    lengths = small_lengths(graph)
    shapes = input_shapes(graph, lengths)
    feeds = random_arrays({name: TensorSpec(shapes[name], var.dtype) for name, var in graph.inputs.items()}, 0)
    run, least = _computation(graph, options, lengths, feeds)
    try:
        run(graph)
    except (OpError, EngineError, MemoryError) as error:
        _LOG.warning("passes over graph %r are not compared: it cannot be computed now: %s", graph.name, error)
        return
    check_values(_applied(graph, options, done), run, least)


def _applied(graph: Graph, options: Options, done: Sequence[Optimisation]) -> Iterator[Applied]:
    """Yields the passes that change a graph as the options ask, and then its cascades."""
    left_out = tuple(name for one in done for name in one.left_out)
    for applied in applied_passes(graph, options.level, left_out=left_out):
        graph = applied.after
        yield applied
    for cascaded in (each for one in done for each in one.cascades):
        yield Applied(CASCADES, graph, cascade.with_cascades(graph, cascaded.cascades))


def small_lengths(graph: Graph) -> dict[str, int]:
    """Returns a number for each dimension that is a name: the smallest sample without a length of 1, where one fits."""
    samples = [{name: dim.samples[j] for name, dim in graph.symbols.items()} for j in graph.samples.alive]
    return min(samples, key=lambda lengths: (1 in lengths.values(), sum(lengths.values())), default={})


def _computation(
    graph: Graph, options: Options, lengths: Mapping[str, int], feeds: Mapping[str, Array]
) -> tuple[Callable[[Graph], Outputs], float]:
    """Returns what computes a graph, and what it may move outputs by itself: it plans where data decide sizes."""
    if not graph.is_symbolic:
        return partial(compute, feeds=feeds), 0.0
    prepared = template(graph)
    if not prepared.is_staged:
        deciding = {name: feeds[name] for name in prepared.data}
        return lambda each: compute(bind(each, lengths, deciding), feeds), 0.0
    plain = evolve(options, optimise=0, prepack=False)

    def run(each: Graph) -> Outputs:
        executor = staged(each, plain, mode="dynamic", budget="", length_ranges={}, plan_cache_size=1)
        return executor.run(feeds, {}, True)

    return run, LAST_BITS
