"""The interface of a pass, and passes that apply one rewriting rule."""

from collections.abc import Callable
from typing import Protocol

from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.passes.edit import Edit


class Pass(Protocol):
    """A function from a graph to one that computes the same under the same names. All dimensions must have numbers.

    It returns the very graph where it changes nothing. So a second run on its own result returns that object.
    """

    @property
    def name(self) -> str:
        """Returns the name for people, such as "constant folding"."""

    def __call__(self, graph: Graph) -> Graph:
        """Returns the graph, changed or not. Raises GraphError for a graph with open dimensions."""


Rule = Callable[[Edit, Operator], object]
"""A rewriting rule: examines one operator of an edit, and may change the operators around it."""
_MOST_SWEEPS = 1000
"""A bound on the sweeps of one pass, so that two rules that undo each other end. Rules of this project need few."""


@frozen(eq=False)
class RulePass:
    """A pass that applies a rule to every operator, in order, until a whole sweep changes nothing."""

    name: str
    rule: Rule

    def __call__(self, graph: Graph) -> Graph:
        """Returns the graph, changed or not. Raises GraphError for a graph with open dimensions."""
        return rewrite(graph, self.rule)


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """Returns the graph after sweeps of a rule until one changes nothing; the very graph where the first does not."""
    edit = Edit(graph)
    for _ in range(_MOST_SWEEPS):
        before = edit.changes
        for operator_id in edit.operator_ids():
            if edit.has_operator(operator_id):
                edit.insert_behind(operator_id)
                rule(edit, edit.operator(operator_id))
        if edit.changes == before:
            break
    return edit.graph()
