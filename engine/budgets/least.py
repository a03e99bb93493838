"""Bytes that every way to a budget needs, which are known before any is planned."""

from attrs import frozen

from engine.graph.graph import Graph
from engine.text.errors import BudgetError
from engine.text.units import format_bytes


@frozen
class Least:
    """Bytes below which no arena is, and why: whatever is cut, in whatever order, and computed however often."""

    nbytes: int
    why: str

    def check(self, graph: Graph, budget: int, asked_bytes: int) -> None:
        """Raises BudgetError where the budget has fewer bytes; `asked_bytes` are those of the plan as asked."""
        if budget < self.nbytes:
            raise BudgetError(
                f"no way of {graph.name!r} fits in {budget} bytes ({format_bytes(budget)}): all need at least "
                f"{self.nbytes} bytes ({format_bytes(self.nbytes)}), as {self.why}; as asked, it needs {asked_bytes} "
                f"bytes ({format_bytes(asked_bytes)})",
                asked_bytes,
                budget,
                self.nbytes,
            )


def least_of_all(graph: Graph, passed: Graph, caller_buffers: tuple[str, ...]) -> Least:
    """Returns the bytes of all inputs, or of the largest output; `passed` is the graph after all passes.

    A run begins with all inputs in the arena, and ends with an output, in their own types. What lies in arrays of the
    caller does not count, nor does an output that is a constant or a view, which may have fewer bytes.
    """
    fed = sum(var.spec.nbytes for name, var in graph.inputs.items() if name not in caller_buffers)
    written = {v for operator in passed.operators if not operator.shows_its_input for v in operator.outputs}
    outputs = [
        Least(var.spec.nbytes, f"output {name!r} is whole when a run ends")
        for name, var in passed.outputs.items()
        if name not in caller_buffers and var in written
    ]
    return max([Least(fed, "its inputs are whole when a run begins"), *outputs], key=lambda least: least.nbytes)
