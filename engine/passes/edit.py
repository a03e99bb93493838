"""The editable form of a graph, which passes read and change."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from itertools import count
from types import MappingProxyType
from typing import Any, Never, TypeVar

from attrs import evolve

from engine.graph.deferred import Constants, Deferred, Entry
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.parameters import as_kept
from engine.graph.var import Var
from engine.passes.lengths import OpenLengths
from engine.passes.writing import DraftLengths, GraphDraft, write
from engine.text.errors import GraphError, PassError
from ops.movement.views import IDENTITY
from ops.schema.schema import OpSchema, Signature
from ops.symbolic.exact import UnknownLengthError
from ops.symbolic.infer import in_samples, is_symbolic
from ops.tensor.dims import sample_of
from ops.tensor.spec import Array, TensorSpec, spec_of

_Key = TypeVar("_Key", bound=Hashable)


class Edit:
    """The operators of a graph over vars of its own. The functions of `ops` add operators to it, as to a graph.

    A change removes the operators and constants that lost their last reader. One that never had a reader stays until
    `remove_dead_code`. A replacement inherits the name of what it replaces.

    In a graph with open dimensions, dimensions that are equal for all lengths compare as equal, and no others.
    """

    def __init__(self, graph: Graph) -> None:
        """Copies the structure of a graph; all lengths are brought into normal form."""
        self.changes = 0
        self._source = graph
        self._lengths = OpenLengths(graph) if graph.is_symbolic else None
        specs = {v: v.spec for v in graph.vars.values()} if self._lengths is None else self._lengths.specs
        self._vars = {var: Var(var.name, specs[var], self) for var in graph.vars.values()}
        derived, pinned = (
            (graph.derived, ()) if self._lengths is None else (self._lengths.derived, self._lengths.pinned)
        )
        self._derived = {self._vars[v]: array for v, array in derived.items()}
        self._pinned = {self._vars[v]: v.name for v in pinned}
        self._replaced_specs: dict[Var, TensorSpec] = {}
        self._constants: dict[Var, Entry] = {self._vars[v]: e for v, e in graph.constants.entries.items()}
        self._constant_arrays = Constants(self._constants)
        self._outputs = {name: self._vars[v] for name, v in graph.outputs.items()}
        self._updates = {self._vars[p]: self._vars[v] for p, v in graph.updates.items()}
        self._output_names, self._updated_parameters = _keys(self._outputs), _keys(self._updates)
        self._operators: dict[int, Operator] = {}
        self._order: dict[int, tuple[int, int]] = {}
        self._writer: dict[Var, int] = {}
        self._readers: dict[Var, dict[int, None]] = {}
        self._inherited_names: dict[Var, str] = {}
        self._replaced: dict[Var, Var] = {}
        self._added: list[Var] = []
        self._next_id = count(len(graph.operators))
        self._insertion_point = 0
        signatures = [op.signature for op in graph.operators] if self._lengths is None else self._lengths.signatures
        for i, (op, signature) in enumerate(zip(graph.operators, signatures, strict=True)):
            inputs, outputs = self._own(op.inputs), self._own(op.outputs)
            self._put(i, Operator(op.name, op.schema, inputs, outputs, signature), (i, 0))

    @contextmanager
    def undecided(self) -> Iterator[None]:
        """Lets nothing inside the block decide anything about open dimensions: no pass adds a guard."""
        if self._lengths is None:
            yield
            return
        with self._lengths.table.undecided():
            yield

    @property
    def source(self) -> Graph:
        """Returns the graph that the edit began with."""
        return self._source

    def operator_ids(self) -> tuple[int, ...]:
        """Returns the ids of all operators, in order. An operator keeps its id when its inputs change."""
        return tuple(sorted(self._operators, key=self._order.__getitem__))

    def has_operator(self, operator_id: int) -> bool:
        """Returns whether the operator has not been removed."""
        return operator_id in self._operators

    def operator(self, operator_id: int) -> Operator:
        """Returns the operator with its current inputs."""
        return self._operators[operator_id]

    def insert_behind(self, operator_id: int) -> None:
        """Moves the insertion point: operators that are added from now on stand directly behind this one."""
        self._insertion_point = self._order[operator_id][0]

    def operator_id(self, operator: Operator) -> int:
        """Returns the id of an operator that has outputs."""
        return self._writer[operator.outputs[0]]

    def position(self, operator: Operator) -> tuple[int, int]:
        """Returns a sort key for the position of an operator: a later operator has a larger key."""
        return self._order[self.operator_id(operator)]

    @property
    def operators(self) -> tuple[Operator, ...]:
        """Returns all operators with their current inputs, in order."""
        return tuple(self._operators[n] for n in self.operator_ids())

    @property
    def constants(self) -> Mapping[Var, Array]:
        """Returns the constant arrays by var."""
        return self._constant_arrays

    @property
    def inputs(self) -> tuple[Var, ...]:
        """Returns the vars that the caller feeds."""
        return self._own(tuple(self._source.inputs.values()))

    @property
    def parameters(self) -> tuple[Var, ...]:
        """Returns the parameters, which keep their values from run to run."""
        return self._own(tuple(self._source.parameters))

    @property
    def updated(self) -> Set[Var]:
        """Returns the vars that become the new values of parameters; their operators write over the parameters."""
        return self._updated_parameters.keys()

    def updated_value(self, parameter: Var) -> Var:
        """Returns the var that a parameter holds after the run: itself where nothing updates it."""
        return self._updates.get(parameter, parameter)

    def is_overwritten_state(self, var: Var) -> bool:
        """Returns whether a var is an updated parameter or a view of one. It cannot be read after the update."""
        while var not in self._updates:
            operator = self.writer(var) if self._updates else None
            if operator is None or not operator.shows_its_input:
                return False
            var = operator.inputs[0]
        return True

    def writer(self, var: Var) -> Operator | None:
        """Returns the operator that computes a var, or None for an input, a parameter or a constant."""
        return self._operators[self._writer[var]] if var in self._writer else None

    def readers(self, var: Var) -> tuple[Operator, ...]:
        """Returns the operators that read a var, each once."""
        return tuple(self._operators[n] for n in self._readers.get(var, ()))

    def is_fetched(self, var: Var) -> bool:
        """Returns whether a var is an output of the graph, the new value of a parameter, or decides lengths."""
        return var in self._output_names or var in self._updated_parameters or var in self._pinned

    def is_of_dimensions(self, var: Var) -> bool:
        """Returns whether a var is an array of dimensions, which an operator must copy to make it an output."""
        return var in self._derived

    def decides_lengths(self, var: Var) -> bool:
        """Returns whether the data or the shape of a var decide lengths, so that it must be computed, by this name."""
        return var in self._pinned

    def sole_reader(self, var: Var) -> Operator | None:
        """Returns the only reader of a var, or None where there are more readers or the var is fetched."""
        readers = self.readers(var)
        return readers[0] if len(readers) == 1 and not self.is_fetched(var) else None

    def is_self_contained(self, operators: Collection[Operator], result: Var) -> bool:
        """Returns whether only these operators read their outputs, but for `result`, which anything may read.

        Then none of them is needed any more once `result` has been replaced.
        """
        return all(
            var is result or (not self.is_fetched(var) and all(r in operators for r in self.readers(var)))
            for operator in operators
            for var in operator.outputs
        )

    def uniform_value(self, var: Var) -> float | None:
        """Returns the value of a constant whose elements are all equal; None for any other var."""
        array = self.constants.get(var)
        if array is None or not array.size or array.dtype.kind not in "iuf":
            return None
        first = array.reshape(-1)[0]
        return float(first) if array.size == 1 or bool((array == first).all()) else None

    def name(self, var: Var) -> str:
        """Returns the name of a var, or the name that it will inherit."""
        return var.name or self._inherited_names.get(var, "")

    def add(self, schema: OpSchema, inputs: Sequence[Var], attrs: Mapping[str, Any] | None = None) -> tuple[Var, ...]:
        """Adds an operator at the insertion point. It stays only if something that stays reads it. Raises OpError."""
        return self.add_signed(schema, inputs, self.sign(schema, inputs, attrs or {}))

    def add_signed(self, schema: OpSchema, inputs: Sequence[Var], signature: Signature) -> tuple[Var, ...]:
        """Adds an operator whose signature is known."""
        operator_id = next(self._next_id)
        outputs = tuple(Var("", spec, self) for spec in signature.outputs)
        operator = Operator("", schema, tuple(inputs), outputs, signature)
        self._put(operator_id, operator, (self._insertion_point, operator_id))
        self._added += outputs
        return outputs

    def sign(self, schema: OpSchema, inputs: Sequence[Var], attrs: Mapping[str, Any]) -> Signature:
        """Returns the signature that `add` gives an operator, for `add_signed`; adds nothing. Raises OpError."""
        specs, constants = tuple(v.spec for v in inputs), self._constants_among(inputs)
        if self._lengths is None or not is_symbolic(specs, attrs):
            return schema.sign(specs, attrs, constants)
        return self._lengths.sign(schema, specs, attrs, constants)

    def estimated(self, signature: Signature) -> Signature:
        """Returns a signature with likely numbers in place of open dimensions, for what need not be exact."""
        return self.sampled(signature)[0]

    def sampled(self, signature: Signature) -> list[Signature]:
        """Returns a signature with the numbers of each sample in place of open dimensions; itself where none are."""
        return [signature] if self._lengths is None else in_samples(signature)

    def estimated_bytes(self, vars: Iterable[Var]) -> int:
        """Returns the bytes of tensors, with likely numbers in place of open dimensions."""
        if self._lengths is None:
            return sum(v.spec.nbytes for v in vars)
        sample = self._lengths.table.alive[0]
        return sum(sample_of(v.spec.nbytes, sample) for v in vars)

    def set_bodies(self, operator_id: int, bodies: Mapping[str, Any]) -> None:
        """Sets attributes of an operator to other bodies, of the same inputs and outputs."""
        operator = self._operators[operator_id]
        attrs = MappingProxyType({**operator.attrs, **bodies})
        self._operators[operator_id] = evolve(operator, signature=evolve(operator.signature, attrs=attrs))
        self.changes += 1

    def constant(self, array: Any, name: str = "") -> Var:
        """Adds a constant: a dense copy of the array, or the array itself where it is dense and read-only.

        The constant gets `name` if that name is still free when the graph is written.
        """
        kept = as_kept("constant", array)
        return self._put_constant(spec_of(kept), kept, name)

    def constant_entry(self, var: Var) -> Entry:
        """Returns a constant as it is stored: an array, or a function that computes the array on demand."""
        return self._constants[var]

    def deferred_constant(self, spec: TensorSpec, make: Callable[[], Array], name: str = "") -> Var:
        """Adds a constant that `make` computes, dense, each time it is read. `name` is used if it is free."""
        return self._put_constant(spec, Deferred(spec, make), name)

    def data_dim(self, var: Var, index: int = 0, samples: Sequence[int] = ()) -> Never:
        """Raises GraphError: no pass adds data that decide sizes."""
        raise GraphError(f"{var.name!r} cannot decide a size in a graph that is being edited: {index}, {samples}")

    def replace(self, old: Var, new: Var) -> None:
        """Makes all readers of `old` read `new`, and removes what only `old` needed.

        Raises PassError where the specs of the two differ; open dimensions must agree in all samples.
        """
        if old.spec is not new.spec:
            self._check_alike(old, new)
        if new in self._derived and old in self._output_names:
            (new,) = self.add(IDENTITY, [new])
        self.changes += 1
        if old in self._output_names and not new.name:
            self._inherited_names[new] = self.name(old)  # an output keeps its name
        self.inherit_name(old, new)
        self._replaced[old] = new
        if old in self._pinned:
            self._move_pin(old, new)
        for operator_id in self._readers.pop(old, ()):
            operator = self._operators[operator_id]
            inputs = tuple(new if v is old else v for v in operator.inputs)
            self._operators[operator_id] = evolve(operator, inputs=inputs)
            self._readers.setdefault(new, {})[operator_id] = None
        _point(self._outputs, self._output_names, old, new)
        _point(self._updates, self._updated_parameters, old, new)
        self._collect([old])

    def _check_alike(self, old: Var, new: Var) -> None:
        if old.spec == new.spec:
            return
        alive = () if self._lengths is None else self._lengths.table.alive
        pairs = zip(old.shape, new.shape, strict=False)
        is_alike = (
            alive and old.ndim == new.ndim and all(sample_of(m, j) == sample_of(n, j) for m, n in pairs for j in alive)
        )
        if old.dtype != new.dtype or not is_alike:
            raise PassError(f"{old.name!r} is {old.spec} and cannot be replaced by {new.spec}")
        if new.name:
            raise UnknownLengthError(f"whether {old.name!r} is as large as {new.name!r} depends on lengths")
        self._replaced_specs[new] = self._replaced_specs.get(old, old.spec)

    def _move_pin(self, old: Var, new: Var) -> None:
        """Keeps the data and the shape of a var under its name: the new var takes the name, or a view of it does."""
        if len(self._operators[self._writer[old]].outputs) > 1:
            return
        if new.name or new in self._pinned or new in self._constants:
            (new,) = self.add(IDENTITY, [new])
        self._pinned[new] = self._inherited_names[new] = self._pinned.pop(old)

    def inherit_name(self, old: Var, new: Var) -> None:
        """Gives a var without a name the name of `old`, if that name is free when the graph is written.

        A var that `new` is a view of is wanted under that name, too: it has the bytes.
        """
        while not new.name:
            self._inherited_names.setdefault(new, self.name(old))
            operator = self.writer(new)
            if operator is None or operator.name or not operator.shows_its_input:
                return
            new = operator.inputs[0]

    def remove_dead_code(self) -> None:
        """Removes operators and constants that no output and no parameter needs."""
        before = len(self._operators), len(self._constants), len(self._derived)
        last_first = [v for n in reversed(self.operator_ids()) for v in self._operators[n].outputs]
        self._collect([*last_first, *self._constants, *self._derived])
        self.changes += before != (len(self._operators), len(self._constants), len(self._derived))

    def graph(self) -> Graph:
        """Returns the edited graph, or the very graph that the edit began with where nothing was replaced.

        Operators and constants that were added and that nothing reads are removed.
        """
        self._collect(self._added)
        self._added.clear()
        if not self.changes:
            return self._source
        operators = tuple(self._signed(op) for op in self.operators)
        sources = {v: self._vars[v] for v in (*self._source.inputs.values(), *self._source.parameters)}
        positions = tuple(self._order[n][0] for n in self.operator_ids())
        lengths = None
        if self._lengths is not None:
            lengths = DraftLengths(self._lengths, self._derived, self._replaced_specs, self._pinned, positions)
        return write(
            GraphDraft(
                self._source,
                sources,
                self._constants,
                operators,
                self._outputs,
                self._updates,
                self._inherited_names,
                self._replaced,
                lengths,
            )
        )

    def _own(self, vars: Sequence[Var]) -> tuple[Var, ...]:
        return tuple(map(self._vars.__getitem__, vars))

    def _signed(self, operator: Operator) -> Operator:
        """Returns the operator with a signature that lists which of its inputs are constants now."""
        constants = self._constants_among(operator.inputs)
        if constants == operator.signature.constants:
            return operator
        return evolve(operator, signature=evolve(operator.signature, constants=constants))

    def _constants_among(self, inputs: Sequence[Var]) -> frozenset[int]:
        return frozenset(i for i, v in enumerate(inputs) if v in self._constants or v in self._derived)

    def _put(self, operator_id: int, operator: Operator, at: tuple[int, int]) -> None:
        self._operators[operator_id], self._order[operator_id] = operator, at
        self._writer.update(dict.fromkeys(operator.outputs, operator_id))
        for var in operator.inputs:
            self._readers.setdefault(var, {})[operator_id] = None

    def _put_constant(self, spec: TensorSpec, entry: Entry, name: str) -> Var:
        var = Var("", spec, self)
        self._constants[var] = entry
        self._added.append(var)
        if name:
            self._inherited_names[var] = name
        return var

    def _collect(self, vars: Sequence[Var]) -> None:
        """Removes those of the vars that nothing needs, and everything that only they needed."""
        candidates = list(reversed(vars))
        while candidates:
            var = candidates.pop()
            if self.is_needed(var):
                continue
            if var in self._constants:
                del self._constants[var]
            elif var in self._derived:
                del self._derived[var]
            elif var in self._writer:
                operator_id = self._writer[var]
                if not any(map(self.is_needed, self._operators[operator_id].outputs)):
                    candidates.extend(self._remove(operator_id))

    def is_needed(self, var: Var) -> bool:
        """Returns whether an operator reads a var or the var is fetched."""
        return bool(self._readers.get(var)) or self.is_fetched(var)

    def _remove(self, operator_id: int) -> tuple[Var, ...]:
        """Removes an operator and returns its inputs."""
        operator = self._operators.pop(operator_id)
        for var in operator.inputs:
            self._readers[var].pop(operator_id, None)
        for var in operator.outputs:
            self._writer.pop(var, None)
        return operator.inputs


def _keys(table: Mapping[_Key, Var]) -> dict[Var, list[_Key]]:
    """Returns the keys of a table by var."""
    keys: dict[Var, list[_Key]] = {}
    for key, var in table.items():
        keys.setdefault(var, []).append(key)
    return keys


def _point(table: dict[_Key, Var], keys: dict[Var, list[_Key]], old: Var, new: Var) -> None:
    """Replaces a var by another one in a table and in the index of its keys."""
    if old in keys:
        moved = keys.pop(old)
        table.update(dict.fromkeys(moved, new))
        keys.setdefault(new, []).extend(moved)
