"""Dead code: operators and constants that no output and no parameter needs."""

from engine.graph.graph import Graph
from engine.passes.edit import Edit


class _DeadCode:
    """Takes away what no output and no parameter needs. Inputs stay: they are what the caller feeds."""

    name = "dead code"

    def __call__(self, graph: Graph) -> Graph:
        """The graph, changed or not. Raises GraphError for a graph with open dimensions."""
        edit = Edit(graph)
        edit.drop()
        return edit.graph()


DEAD_CODE = _DeadCode()
