"""What a pass is."""

from collections.abc import Callable
from typing import Protocol

from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.passes.edit import Edit


class Pass(Protocol):
    """Takes a graph with numbers for all its dimensions, gives one that computes the same under the same names.

    Where nothing changed it gives back the very graph; so a pass of what a pass gave is that object.
    """

    @property
    def name(self) -> str:
        """For people, as in "constant folding"."""

    def __call__(self, graph: Graph) -> Graph:
        """The graph, changed or not. Raises GraphError for a graph with open dimensions."""


Rule = Callable[[Edit, Operator], object]
"""Looks at one operator of an edit, and may change what is around it."""
_MOST_SWEEPS = 1000


@frozen(eq=False)
class RulePass:
    """A pass that shows every operator to a rule, in order, again and again until it changes nothing."""

    name: str
    rule: Rule

    def __call__(self, graph: Graph) -> Graph:
        """The graph, changed or not. Raises GraphError for a graph with open dimensions."""
        return rewrite(graph, self.rule)


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """The graph after a rule changes nothing any more; the very graph where it never did."""
    edit = Edit(graph)
    for _ in range(_MOST_SWEEPS):
        before = edit.changes
        for number in edit.numbers():
            if edit.has(number):
                rule(edit, edit.operator(number))
        if edit.changes == before:
            break
    return edit.graph()
