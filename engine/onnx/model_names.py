"""The names that a model gives to tensors and nodes, and what became of those that its graph lacks."""

from collections.abc import Mapping

from attrs import define, field

from engine.graph.graph import Graph
from engine.graph.symbols import Derived
from engine.graph.vanished import FOLDED, INSIDE, READ, SAME, Fate, Vanished
from engine.graph.var import Var
from ops.tensor.spec import Array

Value = Var | Array | Derived
"""A tensor: a var of the graph, an array where it is constant, or derived where open dimensions decide it."""


@define(eq=False)
class ModelNames:
    """The names that were read so far.

    `tensors` has the value of each name. `nodes` has rows of a name, the number of operators in front of the node, and
    the value of its first output. None stands for what is no tensor.
    """

    tensors: dict[str, Value | None] = field(factory=dict)
    nodes: list[tuple[str, int, Value | None]] = field(factory=list)

    def lost_in(self, graph: Graph, constants: Mapping[int, Var]) -> Vanished:
        """Returns what became of the names that a graph lacks; `constants` has its vars of arrays, by their ids."""
        makers = {v: (i, op.name) for i, op in enumerate(graph.operators) for v in op.outputs}
        lost = {name: _place(v, constants) for name, v in self.tensors.items() if name not in graph.vars}
        tensors = {name: Fate(SAME, place) if place else Fate(READ) for name, place in lost.items()}
        fates, computed = dict[str, Fate](), dict[str, list[str]]()
        for name, first, value in self.nodes:
            place = _place(value, constants)
            position, maker = makers.get(value, (-1, "")) if isinstance(value, Var) else (-1, "")
            if position >= first:
                computed.setdefault(name, []).append(maker)
                fates.setdefault(name, Fate(INSIDE, maker))
            else:
                how = SAME if isinstance(value, Var) else FOLDED if place else READ
                fates.setdefault(name, Fate(how, place))
        present = {op.name for op in graph.operators}
        operators = {name: fate for name, fate in fates.items() if name not in present}
        namesakes = {name: tuple(makers_of) for name, makers_of in computed.items() if len(makers_of) > 1}
        return Vanished(tensors, operators, namesakes)


def _place(value: Value | None, constants: Mapping[int, Var]) -> str:
    """Returns the name of the var of a value; "" where it has none."""
    var = value if isinstance(value, Var) else constants.get(id(value))
    return "" if var is None else var.name
