"""Training in parallel: workers give the gradients of shares of a batch, which are summed in a fixed tree.

What runs change besides, such as running means of a normalization, is summed in the same way: each share starts from
the same values, and the mean of what they end with is taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Unpack
from uuid import uuid4

import numpy as np
from attrs import define, evolve, field

from engine.api import Executable, compile_graph
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.planning.options import PlanOptions
from engine.replicas.worker import CHANGED, Program, Share, forget, run_share
from engine.system.threads import MOST_THREADS, check_threads
from engine.text.errors import EngineError, FeedError, GraphError, OptionError
from engine.training.autodiff import gradients
from engine.training.training import Optimiser
from engine.workers.flow import in_order
from engine.workers.names import PROCESSES
from engine.workers.place import Place
from engine.workers.places import opened
from ops.tensor.spec import Array

Arrays = dict[str, Array]
_LOSS, _DONE = "loss", "done"
_GRADIENT = "/gradient"


@define(eq=False)
class ParallelTraining:
    """A network that is trained by workers. Its parameters and the state of the optimiser live in this process."""

    shares: int
    _graph: Graph
    _update: Executable
    _place: Place
    _program: Program
    _key: str = field(factory=lambda: uuid4().hex)
    _is_sent: bool = False
    _is_closed: bool = False

    def step(self, feeds: Mapping[str, Any]) -> float:
        """Trains on a batch, which is cut along its first axis into a share for each replica; returns the loss.

        Raises FeedError, WorkerError, EngineError behind the block, GraphError where shares change an integer in
        different ways, and what runs raise; the parameters are then as they were.
        """
        if self._is_closed:
            raise EngineError("the block of train_parallel has ended, and its workers with it; open it again")
        values, updates = self._update.parameters, {v.name for v in self._graph.updates}
        fixed = {v.name: values[v.name] for v in self._graph.parameters if v.name not in updates}
        held = {name: values[name] for name in updates}
        outputs = self._run([Share(self._key, {**fed, **fixed}, held, ()) for fed in self._cut(feeds)])
        means = {name: _mean(name, [out[name] for out in outputs]) for name in outputs[0]}
        self._update.run({name: means[name] for name in self._update.graph.inputs})
        return float(means[_LOSS])

    @property
    def parameters(self) -> Arrays:
        """Returns the present values of the parameters, and of the state of the optimiser, by name."""
        return self._update.parameters

    def _cut(self, feeds: Mapping[str, Any]) -> list[Arrays]:
        wanted = self._graph.inputs
        if feeds.keys() != wanted.keys():
            raise FeedError(f"the inputs are {', '.join(map(repr, wanted))}, and not {', '.join(map(repr, feeds))}")
        arrays = {name: np.asarray(value) for name, value in feeds.items()}
        for name, var in wanted.items():
            shape = (self.shares * int(var.shape[0]), *var.shape[1:])
            if arrays[name].shape != shape:
                raise FeedError(f"input {name!r} has shape {arrays[name].shape}, and {self.shares} shares have {shape}")
        cut = {name: np.split(array, self.shares) for name, array in arrays.items()}
        return [{name: np.ascontiguousarray(cut[name][i]) for name in cut} for i in range(self.shares)]

    def _run(self, shares: Sequence[Share]) -> list[Arrays]:
        """Returns the outputs of each share; a process that does not have the graph gets it."""
        program = () if self._is_sent else (self._program,)
        answers = self._answers([evolve(share, programs=program) for share in shares])
        self._is_sent = True
        lacking = [i for i, answer in enumerate(answers) if answer is None]
        again = self._answers([evolve(shares[i], programs=(self._program,)) for i in lacking])
        late = dict(zip(lacking, again, strict=True))
        return [answer for answer in (late.get(i, a) for i, a in enumerate(answers)) if answer is not None]

    def _answers(self, shares: Sequence[Share]) -> list[Arrays | None]:
        outcomes = list(in_order(self._place, run_share, shares, ahead=len(shares)))
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
        return [outcome.value for outcome in outcomes]


@contextmanager
def train_parallel(
    graph: Graph,
    optimiser: Optimiser,
    *,
    loss: str = _LOSS,
    workers: int = 2,
    on: str = PROCESSES,
    threads: int = 1,
    **options: Unpack[PlanOptions],
) -> Iterator[ParallelTraining]:
    """Opens a training by so many replicas of a graph for the block.

    The graph is that of one share of the batch; `loss` is its output that is the mean over the share. Each worker runs
    the forward and the backward pass in one arena, on `threads` threads. Gradients are summed in a tree that depends on
    the number of replicas alone, so the same number of replicas gives the same bits, wherever they run. Parameters that
    runs change, such as running means and variances, become the mean of what the replicas make of them, summed in the
    same tree; integers and truth values must be the same in all. `on` is "processes", "here", or "dask://HOST:PORT".
    Raises OptionError, GraphError, EngineError.
    """
    if not isinstance(workers, int) or isinstance(workers, bool) or not 1 <= workers <= MOST_THREADS:
        raise OptionError(f"workers {workers!r} is no integer from 1 to {MOST_THREADS}")
    check_threads(threads, 1)
    if not isinstance(optimiser, Optimiser):
        raise OptionError(f"{optimiser!r} is no optimiser; arenaplan.SGD(...) and arenaplan.Adam(...) are")
    _check(graph, loss)
    program = Program(_gradient_graph(graph, loss), threads, options)
    update = compile_graph(_update_graph(graph, optimiser), threads=threads)
    with opened(on, workers if on == PROCESSES else 0) as place:
        training = ParallelTraining(workers, graph, update, place, program)
        try:
            yield training
        finally:
            training._is_closed = True
            forget(training._key)


def tree_sum(arrays: Sequence[Array]) -> Array:
    """Returns the sum of neighbours, then of neighbours of these sums, and so on: only the number decides the tree."""
    while len(arrays) > 1:
        pairs = [arrays[i] + arrays[i + 1] for i in range(0, len(arrays) - 1, 2)]
        arrays = [*pairs, *arrays[2 * len(pairs) :]]
    return arrays[0]


def _mean(name: str, arrays: Sequence[Array]) -> Array:
    """Returns the mean of what shares gave; short floats are summed as float32, which does not overflow.

    Raises GraphError for integers that differ, as they have no mean.
    """
    first, *others = arrays
    if np.issubdtype(first.dtype, np.inexact):
        wide = [array.astype(np.result_type(array.dtype, np.float32), copy=False) for array in arrays]
        return (tree_sum(wide) * np.float64(1 / len(arrays))).astype(first.dtype)
    if any(not np.array_equal(first, other) for other in others):
        what = name.removesuffix(CHANGED)
        raise GraphError(f"shares of the batch change {what!r} in different ways, and {first.dtype} has no mean")
    return first


def _check(graph: Graph, loss: str) -> None:
    if loss not in graph.outputs:
        raise GraphError(
            f"graph {graph.name!r} has no output {loss!r}; there are {', '.join(map(repr, graph.outputs))}"
        )
    if graph.is_symbolic:
        raise GraphError(f"graph {graph.name!r} has dimensions that are names; arenaplan.bind gives them lengths")
    if not any(parameter.trainable for parameter in graph.parameters.values()):
        raise GraphError(f"graph {graph.name!r} has no trainable parameter; see Graph.parameter")
    changed = next((v.name for v in graph.updates if graph.parameters[v].trainable), None)
    if changed is not None:
        raise GraphError(f"runs of graph {graph.name!r} change {changed!r}, which the optimiser is to change")
    scalar = next((v.name for v in graph.inputs.values() if not v.shape), None)
    if scalar is not None:
        raise GraphError(f"input {scalar!r} of graph {graph.name!r} has no axis that a batch can be cut along")


def _gradient_graph(graph: Graph, loss: str) -> Graph:
    """Returns a graph whose inputs are those of a graph and its parameters; its outputs are the loss and gradients.

    Parameters that runs change stay parameters.
    """
    new, vars = Graph(f"{graph.name}/gradients"), dict[Var, Var]()
    for var in graph.inputs.values():
        vars[var] = new.input(var.name, var.shape, var.dtype)
    for var, kept in graph.parameters.items():
        is_held = var in graph.updates
        vars[var] = (
            new.parameter(kept.initial, var.name, trainable=False)
            if is_held
            else new.input(var.name, var.shape, var.dtype)
        )
    for var, entry in graph.constants.entries.items():
        vars[var] = new.add_constant(var.name, var.spec, entry)
    for op in graph.operators:
        outputs = new.add_signed(
            op.schema, [vars[v] for v in op.inputs], op.signature, op.name, [v.name for v in op.outputs]
        )
        vars |= dict(zip(op.outputs, outputs, strict=True))
    for var, value in graph.updates.items():
        new.assign(vars[var], vars[value])
    trained = [v for v, p in graph.parameters.items() if p.trainable]
    of = gradients(vars[graph.outputs[loss]], [vars[v] for v in trained])
    new.output(vars[graph.outputs[loss]], _LOSS)
    for var, gradient in zip(trained, of, strict=True):
        new.output(gradient, var.name + _GRADIENT)
    return new


def _update_graph(graph: Graph, optimiser: Optimiser) -> Graph:
    """Returns a graph from mean gradients, and means of what runs change, to new parameters, which it keeps."""
    new = Graph(f"{graph.name}/update")
    held = {v: new.parameter(p.initial, v.name, trainable=p.trainable) for v, p in graph.parameters.items()}
    ready = optimiser.begin(new)
    for var, parameter in graph.parameters.items():
        if parameter.trainable:
            ready(held[var], new.input(var.name + _GRADIENT, var.shape, var.dtype))
    for var in graph.updates:
        new.assign(held[var], new.input(var.name + CHANGED, var.shape, var.dtype))
    new.output(new.constant(np.zeros(1, np.float32)), _DONE)
    return new
