"""Parts of a graph as graphs of their own, with the values that go from one to the other."""

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var


@frozen(eq=False)
class PartGraph:
    """Some operators of a graph as a graph: its inputs and outputs have the names of the tensors of the whole.

    `received` are the names of inputs that other parts compute, and `sent` those of outputs that other parts read.
    `outputs` has the names of this part's outputs by the names of the whole graph's outputs.
    """

    graph: Graph
    received: tuple[str, ...]
    sent: tuple[str, ...]
    outputs: Mapping[str, str]


def part_graph(whole: Graph, operators: Sequence[Operator], name: str, *, is_last: bool) -> PartGraph:
    """Returns a graph of some operators, which stand in order.

    The last part also gives the outputs that no operator computes.
    """
    inside = {var for op in operators for var in op.outputs}
    computed = {var for op in whole.operators for var in op.outputs}
    outputs = {n: v for n, v in whole.outputs.items() if v in inside or (is_last and v not in computed)}
    graph, vars = Graph(name), dict[Var, Var]()
    used = dict.fromkeys([v for op in operators for v in op.inputs] + list(outputs.values()))
    for var in used:
        if var not in inside:
            vars[var] = _source(whole, graph, var)
    for op in operators:
        names = [v.name for v in op.outputs]
        new = graph.add_signed(op.schema, [vars[v] for v in op.inputs], op.signature, op.name, names)
        vars |= dict(zip(op.outputs, new, strict=True))
    sent = tuple(v.name for v in _read_elsewhere(whole, operators))
    for name_out in dict.fromkeys((*sent, *(v.name for v in outputs.values()))):
        graph.output(graph.vars[name_out])
    for parameter, value in whole.updates.items():
        if value in vars and parameter in vars:
            graph.assign(vars[parameter], vars[value])
    received = tuple(v.name for v in used if v in computed and v not in inside)
    return PartGraph(graph, received, sent, {n: v.name for n, v in outputs.items()})


def _source(whole: Graph, graph: Graph, var: Var) -> Var:
    """Adds a var that the part does not compute."""
    if var in whole.constants:
        return graph.add_constant(var.name, var.spec, whole.constants.entries[var])
    if var in whole.parameters:
        kept = whole.parameters[var]
        return graph.parameter(kept.initial, var.name, trainable=kept.trainable)
    return graph.input(var.name, var.shape, var.dtype)


def _read_elsewhere(whole: Graph, operators: Sequence[Operator]) -> Iterator[Var]:
    """Yields the vars that these operators compute and others read, in order."""
    mine = set(operators)
    read = {var for op in whole.operators if op not in mine for var in op.inputs}
    return (var for op in operators for var in op.outputs if var in read)
