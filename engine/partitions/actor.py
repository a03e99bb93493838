"""The worker's side of a pipeline: parts that stay in a process from run to run."""

from collections.abc import Mapping
from typing import Any

from attrs import define, frozen

from engine.api import Executable, compile_graph
from engine.graph.graph import Graph
from engine.saved.embedded import EmbeddedPlan
from ops.tensor.spec import Array


@frozen(eq=False)
class Program:
    """A part to be compiled: its graph and its plan, with the options of `engine.compile`."""

    graph: Graph
    plan: EmbeddedPlan
    options: Mapping[str, Any]


@frozen(eq=False)
class State:
    """Where a part is: after so many runs, its parameters have these values. Those that no run changes are left out."""

    runs: int
    values: Mapping[str, Array]


@frozen(eq=False)
class Answer:
    """The outputs of a run, and where the part is behind it."""

    outputs: Mapping[str, Array]
    state: State


@define(eq=False)
class _Loaded:
    executable: Executable
    runs: int


_LOADED: dict[str, _Loaded] = {}
"""The parts of this process, by keys that no two pipelines share."""


def run_part(
    key: str, feeds: Mapping[str, Array], at: State, program: Program | None, returned: tuple[str, ...]
) -> Answer | None:
    """Runs a part once, from the state `at`. Returns None where this process does not have the part in that state.

    With a `program` the part is compiled and its parameters are loaded. `returned` are the parameters whose values come
    back, as runs change them.
    """
    if program is not None:
        executable = compile_graph(program.graph, embedded=program.plan, **program.options)
        executable.load(at.values)
        _LOADED[key] = _Loaded(executable, at.runs)
    loaded = _LOADED.get(key)
    if loaded is None or loaded.runs != at.runs:
        return None
    loaded.runs = -1  # a run that fails leaves parameters that nobody knows
    outputs = loaded.executable.run(feeds)
    loaded.runs = at.runs + 1
    values = loaded.executable.parameters if returned else {}
    return Answer(outputs, State(loaded.runs, {name: values[name] for name in returned}))


def forget(key: str) -> None:
    """Lets go of a part."""
    _LOADED.pop(key, None)
