"""Batches through one network: workers run them, and outputs come in their order."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from attrs import frozen

from engine.api import Executable, make_plan
from engine.graph.graph import Graph
from engine.models.named import NamedModel
from engine.saved import embed
from engine.spool import Contents, open_spool, spooled
from engine.system.arrays import read_array
from engine.system.threads import check_threads
from engine.text.errors import FeedError, OptionError
from engine.workers.flow import Outcome, in_order
from engine.workers.names import AS_MANY_AS_PROCESSORS, PROCESSES
from engine.workers.place import WorkerError
from engine.workers.places import check_place, opened
from ops.tensor.spec import Array

Outputs = dict[str, Array]
Model = Executable | Graph | str | PathLike[str]


@frozen(eq=False)
class Batch:
    """One run: where the network lies, and its inputs, as arrays or as .npy files."""

    spool: Path
    feeds: Mapping[str, Any]


def map_batches(
    model: Model,
    batches: Iterable[Any],
    *,
    workers: int = AS_MANY_AS_PROCESSORS,
    on: str | Executor = PROCESSES,
    ahead: int = 0,
    threads: int = 1,
    folder: str | PathLike[str] = "",
    **options: Any,
) -> Iterator[Outputs]:
    """Runs a network on batch after batch; returns an iterator of the outputs, by name, in the order of the batches.

    `model` is an executable, or a graph, an ONNX file or a name such as "zoo:resnet50", which are planned once with
    `options`, those of `arenaplan.compile`. A batch has the arrays by the inputs' names; a network with one input takes
    arrays, too, and `batches` may be a Dask array, each block of which is one. `batches` are read as they are needed:
    at most `ahead` have been read whose outputs were not taken, by default two for each worker.

    Workers are as for `arenaplan.sweep`, each with an arena of its own and `threads` threads. The weights, and what
    kernels make of them, lie once in the memory of a machine: in files in memory, or inside `folder`, which workers on
    other machines must see under the same path. A batch whose worker died runs on another one. An error of a batch is
    raised in its turn. Raises OptionError, EngineError.
    """
    check_threads(threads, 1)
    check_threads(ahead, 0, "two for each worker")
    check_place(on, workers)
    contents = _contents(model, threads, options)
    names, home = tuple(contents.graph.inputs), Path(folder).absolute() if folder else None
    feeds = (_feeds(batch, names) for batch in _each(batches))
    return _outputs(mapped_batches(contents, feeds, workers=workers, on=on, ahead=ahead, folder=home))


def mapped_batches(
    contents: Contents,
    feeds: Iterable[Mapping[str, Any]],
    *,
    workers: int,
    on: str | Executor,
    ahead: int = 0,
    folder: Path | None = None,
) -> Iterator[Outcome[Batch, Outputs]]:
    """Yields the outcome of each run in turn; `feeds` has arrays or the paths of .npy files by the inputs' names."""
    with ExitStack() as stack:
        place = stack.enter_context(opened(on, workers))
        spool = stack.enter_context(spooled(contents, folder))
        yield from in_order(place, run_batch, (Batch(spool, one) for one in feeds), ahead=ahead)


def run_batch(batch: Batch) -> Outputs:
    """Runs one batch, in a worker. Raises WorkerError where the network's files are not on its machine."""
    feeds = {name: read_array(value) if isinstance(value, Path) else value for name, value in batch.feeds.items()}
    return _executable(batch.spool).run(feeds)


@lru_cache(maxsize=1)
def _executable(spool: Path) -> Executable:
    """Opens a network; the last one is kept."""
    if not spool.is_dir():
        raise WorkerError(f"a worker does not see {spool}, where the weights are; give a folder that all machines see")
    return open_spool(spool)


def _outputs(outcomes: Iterator[Outcome[Batch, Outputs]]) -> Iterator[Outputs]:
    """Yields the outputs. Raises the error of a batch in its turn."""
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
        yield outcome.value or {}


def _contents(model: Model, threads: int, options: Mapping[str, Any]) -> Contents:
    """Returns what workers compile: with the plan of an executable, or with one that is made here."""
    if isinstance(model, Executable):
        if options:
            raise OptionError(f"an executable has been compiled already; leave out {', '.join(options)}")
        _, (graph, asked, plan, parameters) = model.__reduce__()
        return Contents(graph, {**asked, "threads": threads}, plan, parameters)
    graph = model if isinstance(model, Graph) else NamedModel(Path(model)).read()
    return planned_contents(graph, {**options, "threads": threads})


def planned_contents(graph: Graph, options: Mapping[str, Any]) -> Contents:
    """Returns a graph with its plan; without one where its lengths are open: then workers plan as they are fed."""
    if graph.is_symbolic:
        return Contents(graph, options, None, {})
    rest = {name: value for name, value in options.items() if name not in ("mode", "debug", "embedded")}
    plan = make_plan(graph, embedded=options.get("embedded"), **rest)
    return Contents(graph, {name: v for name, v in options.items() if name != "embedded"}, embed(plan), {})


def _each(batches: Any) -> Iterable[Any]:
    """Returns the batches one by one; of a Dask array its blocks, each computed when it is its turn."""
    blocks: Callable[[], Any] | None = getattr(getattr(batches, "blocks", None), "ravel", None)
    if blocks is not None and hasattr(batches, "dask"):
        return (block.compute() for block in blocks())
    each: Iterable[Any] = batches
    return each


def _feeds(batch: Any, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Returns the arrays of a batch by name. Raises FeedError."""
    if isinstance(batch, Mapping):
        return batch
    if len(names) != 1:
        raise FeedError(f"a batch is no mapping, and the network has {len(names)} inputs: {', '.join(names)}")
    return {names[0]: batch}
