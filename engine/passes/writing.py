"""Writes an edit as a graph: finds a runnable order and free names."""

from bisect import bisect_left
from collections.abc import Callable, Mapping

from attrs import evolve, frozen

from engine.graph.deferred import Entry
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.order import stable_order
from engine.graph.symbols import Derived
from engine.graph.vanished import FED, Vanished, vanished
from engine.graph.var import Var
from engine.passes.lengths import OpenLengths, vars_of
from ops.schema.schema import Signature
from ops.tensor.dims import Guard, Samples
from ops.tensor.spec import TensorSpec


@frozen(eq=False)
class DraftLengths:
    """What an edit of a graph with open dimensions has besides.

    `derived` has arrays of dimensions, `specs` those of vars that take the place of others, `pinned` the names of vars
    that decide lengths, `positions` the positions in the original graph for all operators of the draft.
    """

    open: OpenLengths
    derived: Mapping[Var, Derived]
    specs: Mapping[Var, TensorSpec]
    pinned: Mapping[Var, str]
    positions: tuple[int, ...]


@frozen(eq=False)
class GraphDraft:
    """The state of an edit. `sources` maps the inputs and parameters of the graph that it began with to its vars.

    New vars have no name; `inherited_names` has the names of what they replace. `replaced` has vars that others took
    the place of.
    """

    original: Graph
    sources: Mapping[Var, Var]
    constants: Mapping[Var, Entry]
    operators: tuple[Operator, ...]
    outputs: Mapping[str, Var]
    updates: Mapping[Var, Var]
    inherited_names: Mapping[Var, str]
    replaced: Mapping[Var, Var]
    lengths: DraftLengths | None = None


_Named = tuple[Operator, str, tuple[str, ...]]
"""An operator, its name, and the names of its outputs."""


def write(draft: GraphDraft) -> Graph:
    """Returns the graph, its operators in the order of the draft wherever that can be run. Raises CycleError."""
    order = _runnable(draft)
    names = _Names(draft)
    constants = {var: names.of(var, "constant") for var in draft.constants}
    named = [(op, *names.of_operator(op)) for op in (draft.operators[i] for i in order)]
    graph = _emptied(draft, named, order)
    vars = {
        draft.sources[v]: graph.input(name, draft.sources[v].shape, v.dtype)
        for name, v in draft.original.inputs.items()
    }
    for var, parameter in draft.original.parameters.items():
        vars[draft.sources[var]] = graph.parameter(parameter.initial, var.name, trainable=parameter.trainable)
    for var, name in constants.items():
        vars[var] = graph.add_constant(name, var.spec, draft.constants[var])
    if draft.lengths is not None:
        vars |= {var: graph.add_derived(var.name, var.spec, array) for var, array in draft.lengths.derived.items()}
    signed = _signer(draft, graph, named)
    for operator, name, outputs in named:
        inputs = [vars[v] for v in operator.inputs]
        signature = signed(operator, tuple(v.spec for v in inputs), outputs)
        vars.update(
            zip(operator.outputs, graph.add_signed(operator.schema, inputs, signature, name, outputs), strict=True)
        )
    for name, var in draft.outputs.items():
        graph.output(vars[var], name)
    for var, value in draft.updates.items():
        graph.assign(vars[var], vars[value])
    if draft.lengths is not None:
        graph.take_data_dims(draft.original, draft.lengths.open.dim)
    graph.vanished = _vanished(draft, graph, vars)
    return graph


def _vanished(draft: GraphDraft, graph: Graph, vars: Mapping[Var, Var]) -> Vanished:
    """Returns what became of the operators and tensors that the new graph lacks."""
    writers = dict.fromkeys(graph.vars, FED) | dict.fromkeys((v.name for v in (*graph.constants, *graph.derived)), "")
    writers |= {v.name: op.name for op in graph.operators for v in op.outputs}
    constants = (*draft.original.constants, *draft.original.derived)
    by_name = {v.name: v for v in (*constants, *(v for op in draft.original.operators for v in op.outputs))}
    lost = by_name.keys() - writers.keys()
    places: dict[Var, Var] = {}  # by replaced var, what has its place in the end
    for old, new in reversed(tuple(draft.replaced.items())):
        places[old] = new if new in vars else places.get(new, new)
    same = {by_name[old.name]: vars[new].name for old, new in places.items() if old.name in lost and new in vars}
    return vanished(draft.original.operators, constants, draft.original.vanished, writers, same)


def _emptied(draft: GraphDraft, named: list[_Named], order: tuple[int, ...]) -> Graph:
    """Returns a graph without operators, with the dimensions and guards of the original."""
    if draft.lengths is None:
        return draft.original.emptied(Samples(), {}, ())
    opened = draft.lengths.open
    firsts: list[int] = []  # the lowest position in the original from each operator on
    for i in reversed(order):
        firsts.append(min(draft.lengths.positions[i], *firsts[-1:]) if firsts else draft.lengths.positions[i])
    firsts.reverse()
    key = draft.original.key
    writer = {key(name): i for i, (_, _, outputs) in enumerate(named) for name in outputs}

    def moved(guard: Guard) -> Guard:
        """Checks a guard in front of the operators that relied on it, and behind those whose data it needs."""
        behind = max((writer[k] + 1 for k in vars_of(guard.leaves, ()) if k in writer), default=0)
        return evolve(guard, position=max(bisect_left(firsts, guard.position), behind))

    return draft.original.emptied(opened.table, opened.symbols, tuple(map(moved, opened.guards)))


def _signer(
    draft: GraphDraft, graph: Graph, named: list[_Named]
) -> Callable[[Operator, tuple[TensorSpec, ...], tuple[str, ...]], Signature]:
    """Returns a function that gives the signature of an operator with the specs that its vars have now."""
    if draft.lengths is None:
        return lambda operator, _, __: operator.signature
    replaced, key = draft.lengths.specs, graph.key
    rows = [
        (key(name), replaced.get(v, v.spec))
        for op, _, outputs in named
        for v, name in zip(op.outputs, outputs, strict=True)
    ]
    sources = (*draft.sources.values(), *draft.constants, *draft.lengths.derived)
    renamed = draft.lengths.open.renamed([*((key(v.name), v.spec) for v in sources), *rows])

    def signed(operator: Operator, inputs: tuple[TensorSpec, ...], names: tuple[str, ...]) -> Signature:
        pairs = zip(operator.outputs, names, strict=True)
        outputs, before = tuple(renamed(key(n), replaced.get(v, v.spec)) for v, n in pairs), operator.signature
        unchanged = zip((*inputs, *outputs), (*before.inputs, *before.outputs), strict=True)
        return before if all(a is b for a, b in unchanged) else evolve(before, inputs=inputs, outputs=outputs)

    return signed


def _runnable(draft: GraphDraft) -> tuple[int, ...]:
    """Returns the numbers of the operators in a runnable order.

    One that updates a parameter stands behind all other readers of it, and one whose attributes depend on data or on
    the shape of a var behind what computes that.
    """
    operators = draft.operators
    writer = {v: i for i, op in enumerate(operators) for v in op.outputs}
    waits = [{writer[v] for v in op.inputs if v in writer} for op in operators]
    last = {p: writer[v] for p, v in draft.updates.items() if v in writer}
    for i, op in enumerate(operators):
        for var in op.inputs:
            if last.get(var, i) != i:
                waits[last[var]].add(i)
    if draft.lengths is not None and draft.lengths.pinned:
        derived, key = draft.lengths.derived, draft.original.key
        deciding = {key(name): writer[v] for v, name in draft.lengths.pinned.items()}
        for i, op in enumerate(operators):
            keys = draft.lengths.open.waits_for(op, [derived[v] for v in op.inputs if v in derived])
            waits[i] |= {deciding[k] for k in keys & deciding.keys()} - {i}
    return stable_order(waits, [str(op) for op in operators])


class _Names:
    """Names for vars and operators: old ones keep theirs, new ones inherit a free name or get a numbered one.

    Where several inherit one name, an output of the graph has it, else the first of them. A numbered name is none that
    anything had before, so that it is not taken for that.
    """

    def __init__(self, draft: GraphDraft) -> None:
        self._inherited_names = draft.inherited_names
        self._kept: dict[Var, str] = {} if draft.lengths is None else dict(draft.lengths.pinned)
        derived = () if draft.lengths is None else draft.lengths.derived
        vars = (*draft.sources.values(), *draft.constants, *derived, *(v for op in draft.operators for v in op.outputs))
        self._vars = {v.name for v in vars if v.name} | set(self._kept.values())
        for var in draft.outputs.values():
            wanted = "" if var.name or var in self._kept else draft.inherited_names.get(var, "")
            if wanted and wanted not in self._vars:
                self._kept[var] = wanted
                self._vars.add(wanted)
        self._operators = {op.name for op in draft.operators if op.name}
        self._numbers: dict[str, int] = {}  # the lowest number that may be free, by stem
        original, gone = draft.original, draft.original.vanished
        self._old = {v.name: op.name for op in original.operators for v in op.outputs}
        self._known = {*original.vars, *self._old.values(), *gone.tensors, *gone.operators}

    def of(self, var: Var, stem: str) -> str:
        """Returns the name of a var."""
        if var.name or var in self._kept:
            return var.name or self._kept[var]
        wanted = self._inherited_names.get(var, "")
        name = wanted if wanted and wanted not in self._vars else self._numbered(wanted or stem)
        self._vars.add(name)
        return name

    def of_operator(self, operator: Operator) -> tuple[str, tuple[str, ...]]:
        """Returns the names of an operator and of its outputs."""
        outputs = operator.outputs
        if operator.name:
            return operator.name, tuple(v.name for v in outputs)
        wanted = self._old.get(self._inherited_names.get(outputs[0], ""), "")
        name = wanted if wanted and wanted not in self._operators else self._numbered(operator.schema.name)
        self._operators.add(name)
        stems = (name,) if len(outputs) == 1 else tuple(f"{name}:{i}" for i in range(len(outputs)))
        return name, tuple(self._output(v, s) for v, s in zip(outputs, stems, strict=True))

    def _output(self, var: Var, stem: str) -> str:
        if var in self._kept:
            return self._kept[var]
        wanted = self._inherited_names.get(var, "") or stem
        name = wanted if wanted not in self._vars else self._numbered(wanted)
        self._vars.add(name)
        return name

    def _numbered(self, stem: str) -> str:
        number = self._numbers.get(stem, 0)
        while (name := f"{stem}_{number}") in self._vars or name in self._operators or name in self._known:
            number += 1
        self._numbers[stem] = number
        return name
