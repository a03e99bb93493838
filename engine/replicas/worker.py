"""The worker's side of training in parallel: a graph that gives the gradients of a share of the batch."""

from collections.abc import Mapping

from attrs import frozen

from engine.api import Executable, compile_graph
from engine.graph.graph import Graph
from engine.planning.options import PlanOptions
from ops.tensor.spec import Array


@frozen(eq=False)
class Program:
    """A graph to be compiled, on so many threads, with options of planning."""

    graph: Graph
    threads: int
    options: PlanOptions


@frozen(eq=False)
class Share:
    """The inputs of a run: a share of the batch, and the parameters. `programs` has the graph, or is empty.

    `held` has the parameters that the run changes.
    """

    key: str
    feeds: Mapping[str, Array]
    held: Mapping[str, Array]
    programs: tuple[Program, ...]


CHANGED = "/changed"
"""What stands behind the name of a parameter that a run has changed."""
_MOST = 8
"""Graphs that a process keeps: workers of a cluster outlive the trainings that they work for."""
_LOADED: dict[str, Executable] = {}
"""The graphs of this process, by keys that no two trainings share."""


def run_share(share: Share) -> dict[str, Array] | None:
    """Returns the loss, the gradients and the changed parameters of a share.

    Returns None where this process does not have the graph.
    """
    for program in share.programs:
        if share.key not in _LOADED:
            for key in [*_LOADED][: len(_LOADED) - _MOST + 1]:
                forget(key)
            _LOADED[share.key] = compile_graph(program.graph, threads=program.threads, **program.options)
    executable = _LOADED.get(share.key)
    if executable is None:
        return None
    executable.load(share.held)
    outputs = executable.run(share.feeds)
    return outputs | {name + CHANGED: array for name, array in executable.parameters.items()}


def forget(key: str) -> None:
    """Lets go of a graph."""
    _LOADED.pop(key, None)
