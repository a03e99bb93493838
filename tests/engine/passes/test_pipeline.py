"""The pipeline runs a pass only where it may change something."""

from collections import Counter
from collections.abc import Callable

from attrs import define, field

import ops
from engine import Graph
from engine.passes.base import Pass
from engine.passes.edit import Edit
from engine.passes.pipeline import until_unchanged


@define(eq=False)
class _Counted(Pass):
    """A pass that counts how often it runs on a graph with so many operators."""

    change: Callable[[Edit], object]
    name: str = "counted"
    runs: Counter[int] = field(factory=Counter)

    def apply(self, edit: Edit) -> None:
        self.runs[len(edit.operators)] += 1
        self.change(edit)


def _drop_last(edit: Edit) -> None:
    last = edit.operators[-1]
    if len(edit.operators) > 2:
        edit.replace(last.outputs[0], last.inputs[0])


def test_a_pass_runs_once_on_a_graph_that_it_leaves_as_it_is() -> None:
    graph = Graph()
    x = graph.input("x", (2,))
    for _ in range(5):
        x = ops.relu(x)
    graph.output(x, "y")
    idle, dropping = _Counted(lambda _: None), _Counted(_drop_last)
    applied = list(until_unchanged(graph, [idle, dropping, idle]))
    assert [len(each.after.operators) for each in applied] == [4, 3, 2]
    assert dropping.runs == {5: 1, 4: 1, 3: 1, 2: 1}
    assert idle.runs == dropping.runs
