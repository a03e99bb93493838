"""A graph inside an operator of another graph; outer vars that it reads become its inputs or constants."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.graph.graph import Graph, NamesFor
from engine.graph.symbols import Axis
from engine.graph.var import Var
from engine.text.errors import GraphError
from ops.schema.schema import OpSchema
from ops.tensor.dims import Dim, Guard, Samples, leaf
from ops.tensor.spec import TensorSpec


class InnerGraph(Graph):
    """A graph inside an operator. `captured` maps vars of the graphs around it to its undeclared inputs."""

    def __init__(self, name: str, outer: Graph) -> None:
        super().__init__(name)
        self.around = (outer, *outer.around)
        self.samples = outer.samples.inside()
        self.scope = outer.scope_inside(name)
        self.captured: dict[Var, Var] = {}
        self.is_closed = False

    @property
    def outer(self) -> Graph:
        """The graph of the operator."""
        return self.around[0]

    def emptied(self, samples: Samples, symbols: Mapping[str, Dim], guards: Sequence[Guard]) -> "InnerGraph":
        """Returns a graph for the same operator, as `Graph.emptied`; it captures nothing."""
        other = super().emptied(samples, symbols, guards)
        assert isinstance(other, InnerGraph)
        other.captured = {}
        return other

    def own(self, var: Var) -> Var:
        """Returns the var of this graph for a var of any graph around it; captures that var where needed."""
        if var.graph is self or var.graph not in self.around:
            return var
        if var not in self.captured:
            self.captured[var] = self._capture(var)
        return self.captured[var]

    def inputs_behind(self, declared: int) -> tuple[Var, ...]:
        """Returns the captured outer vars: those of the inputs behind the first `declared`, in their order."""
        of = {inner: var for var, inner in self.captured.items()}
        return tuple(of[v] for v in list(self.inputs.values())[declared:])

    def dim(self, name: str) -> Dim:
        """Returns the dimension of that name, which is the same in all graphs around."""
        return self.outer.dim(name)

    def input_like(self, name: str, spec: TensorSpec, varying: Mapping[int, tuple[int, ...]]) -> Var:
        """Adds an input of that spec; `varying` has sample lengths for the axes that change from turn to turn."""
        dims: list[Any] = list(spec.shape)
        for axis, samples in varying.items():
            dims[axis] = leaf(f"{name}.{axis}", samples, self.samples, Axis(self.key(name), axis))
        return self.input(name, dims, spec.dtype)

    def add(
        self,
        schema: OpSchema,
        inputs: Sequence[Var],
        attrs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        output_names: Sequence[str] | NamesFor | None = None,
    ) -> tuple[Var, ...]:
        """Adds an operator, as `Graph.add`; vars of graphs around this one may be inputs."""
        if self.is_closed:
            raise GraphError(f"{schema.name}: a var of {self.name!r} cannot be used outside of it; let it be returned")
        owned = [self.own(v) if isinstance(v, Var) else v for v in inputs]
        return super().add(schema, owned, attrs, name=name, output_names=output_names)

    def output(self, var: Var, name: str | None = None) -> Var:
        """Marks an output, as `Graph.output`; the var may be one of a graph around this one."""
        return super().output(self.own(var) if isinstance(var, Var) else var, name)

    def _capture(self, var: Var) -> Var:
        arrays = next(g.constants for g in self.around if g is var.graph)
        name = self._fresh(var.name) if var.name in self.vars else var.name
        if var in arrays:
            return self.add_constant(name, var.spec, arrays.entries[var])
        return self.input(name, var.shape, var.dtype)
