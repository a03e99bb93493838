"""A graph that can be changed while it is looked at: what passes are written with."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence, Set
from itertools import count
from typing import Any, Never, TypeVar

from attrs import evolve

from engine.graph.deferred import Constants, Deferred, Entry
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.parameters import as_kept
from engine.graph.var import Var
from engine.passes.writing import Draft, write
from engine.text.errors import GraphError, PassError
from ops.schema.schema import OpSchema
from ops.tensor.spec import Array, TensorSpec, spec_of

_Key = TypeVar("_Key", bound=Hashable)


class Edit:
    """The operators of a graph, over vars of its own. The functions of `ops` add to it, as they add to a graph.

    An operator or a constant that nobody reads any more after a change is gone; one that was never read stays until
    `drop`. What takes the place of something takes its name. Bodies of control flow are left as they are.
    """

    def __init__(self, graph: Graph) -> None:
        """Raises GraphError for a graph with open dimensions, and for a body."""
        _check_closed(graph)
        self.changes = 0
        self._source = graph
        self._vars = {var: Var(var.name, var.spec, self) for var in graph.vars.values()}
        self._constants: dict[Var, Entry] = {self._vars[v]: e for v, e in graph.constants.entries.items()}
        self._outputs = {name: self._vars[v] for name, v in graph.outputs.items()}
        self._updates = {self._vars[p]: self._vars[v] for p, v in graph.updates.items()}
        self._output_names, self._holders = _keys(self._outputs), _keys(self._updates)
        self._operators: dict[int, Operator] = {}
        self._order: dict[int, tuple[int, int]] = {}
        self._writer: dict[Var, int] = {}
        self._readers: dict[Var, dict[int, None]] = {}
        self._heirs: dict[Var, str] = {}
        self._fresh = count(len(graph.operators))
        self._here = 0
        for i, op in enumerate(graph.operators):
            inputs, outputs = self._mine(op.inputs), self._mine(op.outputs)
            self._put(i, Operator(op.name, op.schema, inputs, outputs, op.signature), (i, 0))

    def numbers(self) -> tuple[int, ...]:
        """All operators as numbers, in order; `operator` gives the one that has it now."""
        return tuple(sorted(self._operators, key=self._order.__getitem__))

    def has(self, number: int) -> bool:
        """Whether the operator is still there."""
        return number in self._operators

    def operator(self, number: int) -> Operator:
        """The operator as it is now. What is added next stands behind it."""
        self._here = self._order[number][0]
        return self._operators[number]

    def number_of(self, operator: Operator) -> int:
        """The number that an operator with outputs has."""
        return self._writer[operator.outputs[0]]

    def place(self, operator: Operator) -> tuple[int, int]:
        """Where the operator stands: of two, the later one has the larger place."""
        return self._order[self.number_of(operator)]

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All operators as they are now, in order."""
        return tuple(self._operators[n] for n in self.numbers())

    @property
    def constants(self) -> Mapping[Var, Array]:
        """Arrays that never change, by var."""
        return Constants(self._constants)

    @property
    def inputs(self) -> tuple[Var, ...]:
        """What the caller feeds."""
        return self._mine(tuple(self._source.inputs.values()))

    @property
    def parameters(self) -> tuple[Var, ...]:
        """What stays from run to run."""
        return self._mine(tuple(self._source.parameters))

    @property
    def updated(self) -> Set[Var]:
        """What parameters hold after the run: their operators write over them."""
        return self._holders.keys()

    def after(self, parameter: Var) -> Var:
        """What a parameter holds after the run: itself, unless it is written over."""
        return self._updates.get(parameter, parameter)

    def is_old_state(self, var: Var) -> bool:
        """Whether it is a parameter that is written over, or looks at one: it cannot be read after that."""
        while var not in self._updates:
            operator = self.writer(var) if self._updates else None
            if operator is None or not operator.shows_its_input:
                return False
            var = operator.inputs[0]
        return True

    def writer(self, var: Var) -> Operator | None:
        """The operator that computes a var, if one does."""
        return self._operators[self._writer[var]] if var in self._writer else None

    def readers(self, var: Var) -> tuple[Operator, ...]:
        """The operators that read a var; each once."""
        return tuple(self._operators[n] for n in self._readers.get(var, ()))

    def is_fetched(self, var: Var) -> bool:
        """Whether it leaves the graph: as an output, or as what a parameter holds afterwards."""
        return var in self._output_names or var in self._holders

    def sole_reader(self, var: Var) -> Operator | None:
        """The operator that reads a var, if nobody else needs it."""
        readers = self.readers(var)
        return readers[0] if len(readers) == 1 and not self.is_fetched(var) else None

    def is_closed(self, operators: Collection[Operator], result: Var) -> bool:
        """Whether nothing but the result leaves these operators: they are not needed once it comes from elsewhere."""
        return all(
            var is result or (not self.is_fetched(var) and all(r in operators for r in self.readers(var)))
            for operator in operators
            for var in operator.outputs
        )

    def number(self, var: Var) -> float | None:
        """The number that every element of a constant is, if they are all the same one."""
        array = self.constants.get(var)
        if array is None or not array.size or array.dtype.kind not in "iuf":
            return None
        first = array.reshape(-1)[0]
        return float(first) if array.size == 1 or bool((array == first).all()) else None

    def name(self, var: Var) -> str:
        """The name that a var has, or wishes to have."""
        return var.name or self._heirs.get(var, "")

    def add(self, schema: OpSchema, inputs: Sequence[Var], attrs: Mapping[str, Any] | None = None) -> tuple[Var, ...]:
        """Adds an operator, which is kept if something that is kept reads it. Raises OpError."""
        signature = schema.sign([v.spec for v in inputs], attrs or {})
        number = next(self._fresh)
        outputs = tuple(Var("", spec, self) for spec in signature.outputs)
        self._put(number, Operator("", schema, tuple(inputs), outputs, signature), (self._here, number))
        return outputs

    def constant(self, array: Any, name: str = "") -> Var:
        """Adds a constant: a dense copy, or the very array where that is dense and read-only. `name` is a wish."""
        kept = as_kept("constant", array)
        var = Var("", spec_of(kept), self)
        self._constants[var] = kept
        if name:
            self._heirs[var] = name
        return var

    def entry(self, var: Var) -> Entry:
        """A constant as it is kept: an array, or how it is made."""
        return self._constants[var]

    def deferred(self, spec: TensorSpec, make: Callable[[], Array], name: str = "") -> Var:
        """Adds a constant that is made, dense, each time that it is wanted. `name` is a wish."""
        var = Var("", spec, self)
        self._constants[var] = Deferred(spec, make)
        if name:
            self._heirs[var] = name
        return var

    def data_dim(self, var: Var, index: int = 0, samples: Sequence[int] = ()) -> Never:
        """No size is open here. Raises GraphError."""
        raise GraphError(f"{var.name!r} cannot decide a size in a graph that is being edited: {index}, {samples}")

    def replace(self, old: Var, new: Var) -> None:
        """Lets everything that reads `old` read `new` instead; what was needed for `old` alone is gone.

        Raises PassError where they are unlike.
        """
        if old.spec != new.spec:
            raise PassError(f"{old.name!r} is {old.spec} and cannot be replaced by {new.spec}")
        self.changes += 1
        self._inherit(old, new)
        for number in tuple(self._readers.get(old, ())):
            self._reads(number, tuple(new if v is old else v for v in self._operators[number].inputs))
        _point(self._outputs, self._output_names, old, new)
        _point(self._updates, self._holders, old, new)
        self._collect([old])

    def bequeath(self, old: Var, new: Var) -> None:
        """What is new and has no name wishes for that of something which is computed otherwise now."""
        self._inherit(old, new)

    def drop(self) -> None:
        """Takes away operators and constants that nobody reads."""
        before = len(self._operators), len(self._constants)
        last_first = [v for n in reversed(self.numbers()) for v in self._operators[n].outputs]
        self._collect([*last_first, *self._constants])
        self.changes += before != (len(self._operators), len(self._constants))

    def graph(self) -> Graph:
        """What the edit has become; the very graph that it began with where nothing was replaced."""
        if not self.changes:
            return self._source
        unused = [
            v for n in reversed(self.numbers()) if not self._operators[n].name for v in self._operators[n].outputs
        ]
        self._collect([*unused, *(v for v in self._constants if not v.name)])
        operators = tuple(self._signed(op) for op in self.operators)
        sources = {v: self._vars[v] for v in (*self._source.inputs.values(), *self._source.parameters)}
        return write(
            Draft(self._source, sources, self._constants, operators, self._outputs, self._updates, self._heirs)
        )

    def _mine(self, vars: Sequence[Var]) -> tuple[Var, ...]:
        return tuple(map(self._vars.__getitem__, vars))

    def _signed(self, operator: Operator) -> Operator:
        """With the positions of its inputs that are constants now."""
        constants = frozenset(i for i, v in enumerate(operator.inputs) if v in self._constants)
        if constants == operator.signature.constants:
            return operator
        return evolve(operator, signature=evolve(operator.signature, constants=constants))

    def _put(self, number: int, operator: Operator, at: tuple[int, int]) -> None:
        self._operators[number], self._order[number] = operator, at
        self._writer.update(dict.fromkeys(operator.outputs, number))
        for var in operator.inputs:
            self._readers.setdefault(var, {})[number] = None

    def _reads(self, number: int, inputs: tuple[Var, ...]) -> None:
        for var in self._operators[number].inputs:
            self._readers[var].pop(number, None)
        for var in inputs:
            self._readers.setdefault(var, {})[number] = None
        self._operators[number] = evolve(self._operators[number], inputs=inputs)

    def _inherit(self, old: Var, new: Var) -> None:
        """What is new and has no name takes that of what it replaces."""
        if not new.name:
            self._heirs.setdefault(new, old.name or self._heirs.get(old, ""))

    def _collect(self, vars: Sequence[Var]) -> None:
        """Takes away what is needed for these vars alone, if nobody needs them."""
        waiting = list(reversed(vars))
        while waiting:
            var = waiting.pop()
            if self.is_needed(var):
                continue
            if var in self._constants:
                del self._constants[var]
            elif var in self._writer:
                number = self._writer[var]
                if not any(map(self.is_needed, self._operators[number].outputs)):
                    waiting.extend(self._remove(number))

    def is_needed(self, var: Var) -> bool:
        """Whether an operator reads it or it is fetched."""
        return bool(self._readers.get(var)) or self.is_fetched(var)

    def _remove(self, number: int) -> tuple[Var, ...]:
        """Takes away an operator; gives what it read."""
        operator = self._operators.pop(number)
        for var in operator.inputs:
            self._readers[var].pop(number, None)
        for var in operator.outputs:
            self._writer.pop(var, None)
        return operator.inputs


def _check_closed(graph: Graph) -> None:
    if graph.around:
        raise GraphError(f"graph {graph.name!r} is a body, which passes leave as it is")
    if graph.symbols or graph.derived:
        raise GraphError(f"graph {graph.name!r} has sizes that are not known yet; bind it first (engine.bind)")
    if graph.is_symbolic:
        raise GraphError(f"passes need sizes that are known before a run; data decide some of graph {graph.name!r}")


def _keys(table: Mapping[_Key, Var]) -> dict[Var, list[_Key]]:
    """Under which keys each var stands in a table."""
    found: dict[Var, list[_Key]] = {}
    for key, var in table.items():
        found.setdefault(var, []).append(key)
    return found


def _point(table: dict[_Key, Var], keys: dict[Var, list[_Key]], old: Var, new: Var) -> None:
    """Puts a var in the place of another one, in a table and in its keys."""
    if old in keys:
        moved = keys.pop(old)
        table.update(dict.fromkeys(moved, new))
        keys.setdefault(new, []).extend(moved)
