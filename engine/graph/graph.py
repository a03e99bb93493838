"""The graph that a user builds: vars and operators, in the order in which they were added, which is always runnable."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import cycle, islice
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

import engine.graph.pickled  # noqa: F401 (a graph can be pickled and copied)
from engine.graph.building import home_of_dims
from engine.graph.deferred import Constants, Entry, sources
from engine.graph.operator import Operator
from engine.graph.parameters import Parameter, as_kept, is_written_over, looks_at
from engine.graph.symbols import Axis, Datum, Derived, Symbol, of_dims
from engine.graph.vanished import NOTHING_VANISHED
from engine.graph.var import Var
from engine.text.errors import GraphError
from ops.half.ops import sign_stored, stored
from ops.movement.assign import ASSIGN
from ops.movement.copy import COPY
from ops.movement.views import IDENTITY
from ops.schema.schema import Attrs, OpSchema, Signature
from ops.symbolic.infer import Draft, LengthsError, draft, is_symbolic
from ops.tensor.dims import SAMPLES, Dim, Guard, Samples, leaf
from ops.tensor.spec import FLOATS, TensorSpec, as_dtype, spec_of

NamesFor = Callable[[int], Sequence[str]]
"""Names for so many outputs."""


class Graph:
    """A network as vars and operators; `input`, `constant`, `parameter`, `add`, `assign` and `output` add to it.

    The functions of `ops` call `add`. Names of vars and of operators are unique; missing names are made. Dimensions may
    be names: such a graph is run or bound (`engine.bind`) with numbers in their place. `vanished` has the fates of what
    passes took out.
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self._inputs: dict[str, Var] = {}
        self._constants: dict[Var, Entry] = {}
        self._derived: dict[Var, Derived] = {}
        self._parameters: dict[Var, Parameter] = {}
        self._updates: dict[Var, Var] = {}
        self._prefix = ""
        self._symbols: dict[str, Dim] = {}
        self._operators: list[Operator] = []
        self._makers: dict[Var, Operator] = {}
        self._outputs: dict[str, Var] = {}
        self._vars: dict[str, Var] = {}
        self._operator_names: set[str] = set()
        self._counters: dict[str, int] = {}
        self.around: tuple[Graph, ...] = ()
        self.samples = Samples()
        self.scope = ""
        self._data_dims: dict[tuple[Var, int], Dim] = {}
        self._early_guards: tuple[Guard, ...] = ()
        self.vanished = NOTHING_VANISHED

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Takes the parts of a graph that was pickled or copied. Its arrays are read-only again."""
        self.__dict__.update(state)
        for array in (*sources(*self._constants.values()), *(p.initial for p in self._parameters.values())):
            array.flags.writeable = False

    @property
    def inputs(self) -> Mapping[str, Var]:
        """The vars that the caller feeds, by name."""
        return MappingProxyType(self._inputs)

    @property
    def constants(self) -> Constants[Var]:
        """Arrays that never change (read-only), by var."""
        return Constants(MappingProxyType(self._constants))

    @property
    def derived(self) -> Mapping[Var, Derived]:
        """Constants that depend on dimensions, by var."""
        return MappingProxyType(self._derived)

    @property
    def parameters(self) -> Mapping[Var, Parameter]:
        """The tensors that stay in the arena from run to run, by var."""
        return MappingProxyType(self._parameters)

    @property
    def updates(self) -> Mapping[Var, Var]:
        """The var that each updated parameter holds after a run, by parameter."""
        return MappingProxyType(self._updates)

    @property
    def symbols(self) -> Mapping[str, Dim]:
        """The dimensions that are names, by name."""
        return MappingProxyType(self._symbols)

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The decisions about dimensions on which the operators rely."""
        return *self._early_guards, *self.samples.guards.values()

    @property
    def is_symbolic(self) -> bool:
        """True if some size is known only when the graph is fed, or while it runs."""
        return self.samples.invented > 0 or any(not op.schema.kernels for op in self._operators)

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All operators, in a runnable order."""
        return tuple(self._operators)

    @property
    def outputs(self) -> Mapping[str, Var]:
        """The vars that the caller fetches, by name. One var may have several names."""
        return MappingProxyType(self._outputs)

    @property
    def vars(self) -> Mapping[str, Var]:
        """All vars by name."""
        return MappingProxyType(self._vars)

    def input(self, name: str, shape: Sequence[int | str | Dim], dtype: npt.DTypeLike = "float32") -> Var:
        """Adds an input; a dimension is a number, or a name such as "batch", which is the same length everywhere.

        Raises GraphError for a name that is taken, OpError for a bad shape or dtype.
        """
        dims: tuple[Any, ...] = tuple(self.dim(d) if isinstance(d, str) else d for d in shape)
        var = self._var(name, TensorSpec(dims, as_dtype(dtype)))
        self._inputs[name] = var
        return var

    def scope_inside(self, name: str) -> str:
        """Returns a scope for the keys of a graph inside this one."""
        return f"{self.scope}{self._fresh(name)}/"

    def key(self, name: str) -> str:
        """Returns the key of a tensor of this graph in bindings; names are unique in one graph only."""
        return self.scope + name

    def dim(self, name: str) -> Dim:
        """Returns the dimension of that name, for arithmetic: x.reshape((graph.dim("batch") * 4, -1)).

        Raises GraphError.
        """
        if not name.isidentifier():
            raise GraphError(f"{name!r} is not a name for a dimension; use letters, digits and _")
        if name not in self._symbols:
            self._symbols[name] = leaf(name, self.samples.invent(), self.samples, Symbol(name))
            self.samples.named.append(self._symbols[name])
        return self._symbols[name]

    def data_dim(self, var: Var, index: int = 0, samples: Sequence[int] = ()) -> Dim | int:
        """Returns a dimension that is element `index` (C order) of an integer var:

        known when the var has been computed.

        `samples` are numbers that it might have, one for each of `ops.tensor.dims.SAMPLES`, repeated where there are
        fewer; they are made up where none are given, and the first ones stay. Returns a number where the var is a
        constant. Raises GraphError for a var that is not of integers, or has no such element.
        """
        if isinstance(var.graph, Graph) and var.graph in self.around:
            return var.graph.data_dim(var, index, samples)
        if var.dtype.kind not in "iub":
            raise GraphError(f"{var.name!r} holds {var.dtype}, and only integers can be lengths")
        size: Any = var.spec.size
        if not isinstance(size, Dim) and not -size <= index < size:
            raise GraphError(f"{var.name!r} has {size} element(s), and none of them is element {index}")
        if var in self._constants:
            return int(self.constants[var].reshape(-1)[index])
        if var in self._derived:
            element: Dim | int = self._derived[var].elements()[index]
            return element
        if (var, index) not in self._data_dims:
            invented, key = self.samples.invent(), Datum(self.key(var.name), index)
            if not samples:
                self.samples.guessed.add(key)
            text = var.name if var.spec.shape in ((), (1,)) else f"{var.name}[{index}]"
            numbers = tuple(islice(cycle(samples or invented), SAMPLES))
            self._data_dims[var, index] = leaf(text, numbers, self.samples, key, is_length=False)
        return self._data_dims[var, index]

    def take_data_dims(self, other: "Graph", form: Callable[[Dim], Dim]) -> None:
        """Makes `data_dim` return the dimensions of another graph, in their form here, for vars of the same names."""
        for (var, index), dim in other._data_dims.items():
            if var.name in self._vars:
                self._data_dims[self._vars[var.name], index] = form(dim)

    def constant(self, array: "npt.ArrayLike | Dim | Derived", name: str | None = None) -> Var:
        """Adds an array that never changes: a dense copy, or the very array where that is dense and read-only.

        A dimension, or an array of dimensions, has its numbers when shapes are bound. Raises GraphError for what is no
        array.
        """
        if isinstance(array, Dim):
            home = home_of_dims(self, (array,))
            if home is not self:
                return home.constant(array, name)
            array = of_dims((array,), (), np.dtype(np.int64), self.samples)
        if isinstance(array, Derived):
            return self.add_derived(name or self._fresh("constant"), array.spec, array)
        kept = as_kept("constant", array)
        return self.add_constant(name or self._fresh("constant"), spec_of(kept), kept)

    def add_constant(self, name: str, spec: TensorSpec, array: Entry) -> Var:
        """Adds a dense, read-only array of that spec as it is, or one that is deferred, under a name that is free."""
        var = self._var(name, spec)
        self._constants[var] = array
        return var

    def add_derived(self, name: str, spec: TensorSpec, array: Derived) -> Var:
        """Adds an array of dimensions whose spec is known, under a name that is free."""
        var = self._var(name, spec)
        self._derived[var] = array
        return var

    def parameter(self, array: "npt.ArrayLike", name: str | None = None, *, trainable: bool = True) -> Var:
        """Adds a tensor that stays in the arena:

        it holds `array` before the first run, and the assigned value after each.

        `engine.train_step` leaves alone parameters that are not `trainable` (running statistics, the state of an
        optimiser, a cache), and integers. Raises GraphError for a name that is taken.
        """
        initial = as_kept("parameter", array)
        var = self._var(name or self._fresh("parameter"), spec_of(initial))
        self._parameters[var] = Parameter(initial, trainable and var.dtype in FLOATS)
        return var

    def assign(self, parameter: Var, value: Var) -> Var:
        """Sets the var that a parameter holds after the run; returns the var that holds it. The old value is gone.

        The operator that computes the value overwrites the parameter if it may, else an `assign` behind it does. Raises
        GraphError for a var that is no parameter or was assigned before, or a value of another shape or dtype.
        """
        if parameter not in self._parameters:
            raise GraphError(f"{parameter!r} is not a parameter of graph {self.name!r}")
        self._check_unassigned((parameter,))
        if value is parameter:
            return parameter
        if not isinstance(value, Var) or value.graph is not self or value.spec != parameter.spec:
            raise GraphError(f"{parameter.name!r} is {parameter.spec}; {value!r} cannot be assigned to it")
        if value in set(self._updates.values()) or looks_at(value, self._makers) is parameter:  # taken
            (value,) = self.add(COPY, [value])
        if not is_written_over(value, parameter, self._makers):
            (value,) = self.add(ASSIGN, [parameter, value])
        self._updates[parameter] = value
        return value

    def _check_unassigned(self, vars: Sequence[Var]) -> None:
        for var in vars:
            if var in self._updates:
                after = self._updates[var].name
                raise GraphError(f"parameter {var.name!r} was assigned; what it holds now is {after!r}")

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Keeps all that is added inside, or nothing of it where an error is raised."""
        extent = self.extent()
        try:
            yield
        except BaseException:
            self.cut(extent)
            raise

    def free_name(self, name: str) -> str:
        """Returns the name, or the name with a number where a tensor has it."""
        return self._fresh(name) if name in self._vars else name

    @contextmanager
    def naming(self, prefix: str) -> Iterator[None]:
        """Puts `prefix/` before the names that are made inside."""
        before = self._prefix
        self._prefix = f"{before}{prefix}/"
        try:
            yield
        finally:
            self._prefix = before

    def add(
        self,
        schema: OpSchema,
        inputs: Sequence[Var],
        attrs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        output_names: Sequence[str] | NamesFor | None = None,
    ) -> tuple[Var, ...]:
        """Adds an operator and returns its outputs. Raises GraphError, or OpError where the inputs do not fit.

        `output_names` are names, or a function that makes them from their number. An operator that does not take
        bfloat16 computes in float32, and its tensors are stored in bfloat16.
        """
        home = self._home(inputs, attrs or {})
        if home is not self:
            return home.add(schema, inputs, attrs, name=name, output_names=output_names)
        for var in inputs:
            if not isinstance(var, Var) or var.graph is not self:
                raise GraphError(f"{schema.name}: input {var!r} is not a var of graph {self.name!r}")
        specs, attrs = [v.spec for v in inputs], attrs or {}
        constants = frozenset(i for i, v in enumerate(inputs) if v in self._constants or v in self._derived)
        if is_symbolic(specs, attrs):
            schema, drafted = self._draft(schema, specs, attrs, constants)
            name, names = self._names(schema, name, output_names, drafted.outputs)
            signature = drafted.signed(lambda i, axis: (f"{names[i]}.{axis}", Axis(self.key(names[i]), axis)))
        else:
            schema, signature = sign_stored(schema, specs, attrs, constants)
            name, names = self._names(schema, name, output_names, len(signature.outputs))
        return self.add_signed(schema, inputs, signature, name, names)

    def _draft(
        self, schema: OpSchema, specs: Sequence[TensorSpec], attrs: Attrs, constants: frozenset[int]
    ) -> tuple[OpSchema, Draft]:
        """Returns the operator; where it does not take bfloat16, the operator that computes in float32."""
        try:
            return schema, draft(schema, specs, attrs, constants, self.samples)
        except LengthsError:
            other = stored(schema, specs, attrs)
            if other is None:
                raise
            return other[0], draft(other[0], specs, other[1], constants, self.samples)

    def _home(self, inputs: Sequence[Var], attrs: Mapping[str, Any]) -> "Graph":
        """Returns the graph of an operator: the innermost one, inside this graph, with its inputs or dimensions."""
        home = home_of_dims(self, attrs.values())
        for var in inputs:
            graph = var.graph if isinstance(var, Var) else self
            if isinstance(graph, Graph) and home in graph.around:
                home = graph
        return home

    def add_signed(
        self, schema: OpSchema, inputs: Sequence[Var], signature: Signature, name: str, output_names: Sequence[str]
    ) -> tuple[Var, ...]:
        """Adds an operator whose signature is known, under names that are free. Returns its outputs."""
        self._check_free(output_names)
        self._check_unassigned(inputs)
        self._operator_names.add(name)
        outputs = tuple(self._var(n, s) for n, s in zip(output_names, signature.outputs, strict=True))
        operator = Operator(name, schema, tuple(inputs), outputs, signature)
        self._operators.append(operator)
        self._makers.update(dict.fromkeys(outputs, operator))
        self.samples.position = len(self._operators)
        return outputs

    def output(self, var: Var, name: str | None = None) -> Var:
        """Marks a var as an output under `name` (its own where none is given). Raises GraphError."""
        if not isinstance(var, Var) or var.graph is not self:
            raise GraphError(f"output {var!r} is not a var of graph {self.name!r}")
        name = name or var.name
        if name in self._outputs:
            raise GraphError(f"graph {self.name!r} has two outputs named {name!r}")
        if var in self._derived:  # its value is known only when dimensions are bound
            (var,) = self.add(IDENTITY, [var])
        self._outputs[name] = var
        return var

    def with_outputs(self, names: Sequence[str]) -> "Graph":
        """Returns a graph of the same vars and operators, whose outputs are the vars of these names, and no others.

        It is for reading: its vars belong to this graph, so that nothing can be added to it.
        """
        other = copy(self)
        other._outputs = {name: self._vars[name] for name in names}
        return other

    def emptied(self, samples: Samples, symbols: Mapping[str, Dim], guards: Sequence[Guard]) -> "Graph":
        """Returns a graph of this name, with these dimensions and guards, and nothing else.

        It takes the place of this graph inside an operator, too. `samples` is the table of the dimensions.
        """
        other = copy(self)
        for name in ("_inputs", "_constants", "_derived", "_parameters", "_updates", "_makers", "_outputs", "_vars"):
            setattr(other, name, {})
        other._symbols, other._early_guards = dict(symbols), tuple(guards)
        other._operators, other._operator_names, other._counters, other._data_dims = [], set(), {}, {}
        other.samples = samples
        return other

    def extent(self) -> tuple[int, ...]:
        """Returns how far the graph has grown, for `cut`."""
        return tuple(map(len, (self._operators, *self._tables)))

    def cut(self, extent: tuple[int, ...]) -> None:
        """Removes all that was added since; nothing else may refer to it."""
        for operator in self._operators[extent[0] :]:
            self._operator_names.discard(operator.name)
            for var in operator.outputs:
                del self._makers[var]
        del self._operators[extent[0] :]
        for table, length in zip(self._tables, extent[1:], strict=True):
            while len(table) > length:
                table.popitem()
        self.samples.position = len(self._operators)

    @property
    def _tables(self) -> tuple[dict[Any, Any], ...]:
        return self._inputs, self._constants, self._derived, self._parameters, self._updates, self._vars

    def text(self) -> str:
        """Returns the graph as lines: inputs, constants, one line for each operator, outputs."""
        lines = [f"graph {self.name}"]
        lines += [f"  input    %{v.name}: {v.spec}" for v in self._inputs.values()]
        lines += [f"  constant %{v.name}: {v.spec}" for v in self._constants]
        lines += [f"  derived  %{v.name}: {v.spec}" for v in self._derived]
        lines += [f"  parameter %{v.name}: {v.spec}" for v in self._parameters]
        lines += [f"  {_operator_text(op)}" for op in self._operators]
        lines += [f"  update   %{p.name} = %{v.name}" for p, v in self._updates.items()]
        lines += [f"  output   {name} = %{v.name}" for name, v in self._outputs.items()]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self._inputs)} inputs, {len(self._operators)} operators>"

    def _names(
        self, schema: OpSchema, name: str | None, output_names: Sequence[str] | NamesFor | None, count: int
    ) -> tuple[str, tuple[str, ...]]:
        """Returns names for an operator and its outputs."""
        free = self._operator_name(name or self._fresh(schema.name))
        if callable(output_names):
            return free, tuple(output_names(count))
        return free, tuple(output_names or self._output_names(free, count))

    def _check_free(self, names: Sequence[str]) -> None:
        for i, name in enumerate(names):
            if name in self._vars or name in names[:i]:
                raise GraphError(f"graph {self.name!r} has two tensors named {name!r}")

    def _var(self, name: str, spec: TensorSpec) -> Var:
        self._check_free((name,))
        var = Var(name, spec, self)
        self._vars[name] = var
        return var

    def _operator_name(self, name: str) -> str:
        return name if name not in self._operator_names else self._fresh(name)

    def _output_names(self, operator: str, count: int) -> tuple[str, ...]:
        wanted = (operator,) if count == 1 else tuple(f"{operator}:{i}" for i in range(count))
        return tuple(n if n not in self._vars else self._fresh(n) for n in wanted)

    def _fresh(self, stem: str) -> str:
        stem = self._prefix + stem
        while True:
            number = self._counters.get(stem, 0)
            self._counters[stem] = number + 1
            name = f"{stem}_{number}"
            if name not in self._vars and name not in self._operator_names:
                return name


def _operator_text(operator: Operator) -> str:
    outs = ", ".join(f"%{v.name}: {v.spec}" for v in operator.outputs)
    ins = ", ".join(f"%{v.name}" for v in operator.inputs)
    attrs = "".join(f" {k}={_shown(v)}" for k, v in operator.attrs.items())
    return f"{outs} = {operator.schema.name}({ins}){attrs}"


def _shown(value: object) -> str:
    return f"({','.join(map(_shown, value))}{',' * (len(value) == 1)})" if isinstance(value, tuple) else str(value)
