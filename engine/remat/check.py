"""Judge of graphs in which operators run again: by value numbering, as in any compiler (Cocke and Schwartz 1970).

It knows nothing of how the graph was made, and believes no name but those of inputs, constants and parameters: two vars
have one number where one operator computes them from vars of equal numbers.
"""

from collections.abc import Hashable

from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.passes.verify import verify
from engine.text.errors import PassError


def check_again(before: Graph, after: Graph) -> None:
    """Raises PassError where a graph cannot be run, or does not do, perhaps several times, what the one before does."""
    verify(before, after)
    numbers: dict[Hashable, int] = {}
    was, now = _numbered(before, numbers), _numbered(after, numbers)
    for name, var in before.outputs.items():
        if was[var] != now[after.outputs[name]]:
            raise PassError(f"output {name!r} is computed in another way than before")
    updates = {p.name: now[v] for p, v in after.updates.items()}
    for parameter, value in before.updates.items():
        if was[value] != updates[parameter.name]:
            raise PassError(f"parameter {parameter.name!r} becomes something else than before")
    computed = set(was.values())
    for operator in after.operators:
        if any(now[v] not in computed for v in operator.outputs):
            raise PassError(f"{operator} computes what nothing computed before")


def _numbered(graph: Graph, numbers: dict[Hashable, int]) -> dict[Var, int]:
    """Returns the number of each var; `numbers` has them by what they stand for, and grows."""
    number_of: dict[Var, int] = {}

    def number(var: Var, key: Hashable) -> None:
        number_of[var] = numbers.setdefault(key, len(numbers))

    for var in (*graph.inputs.values(), *graph.parameters):
        number(var, var.name)
    for var, entry in graph.constants.entries.items():
        number(var, (var.name, id(entry)))
    for operator in graph.operators:
        read = tuple(number_of[v] for v in operator.inputs)
        for i, var in enumerate(operator.outputs):
            number(var, (operator.schema, id(operator.signature), read, i))
    return number_of
