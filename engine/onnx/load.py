"""Reads an ONNX model into a graph."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.onnx.file import Model, read_model
from engine.onnx.functions import Functions
from engine.onnx.graph import NodeReader
from engine.onnx.inputs import Declared, Length, declared, fixed_array, shapes_of
from engine.onnx.library import ModelProto
from engine.onnx.scope import Scope, check_unique
from engine.onnx.symbols import equal_names, symbols_of
from engine.onnx.unknown import check_operators
from engine.onnx.values import GraphBuilder, Value
from engine.text.errors import ModelError
from ops.tensor.errors import OpError


@frozen(eq=False)
class _Given:
    """What the caller says of the inputs."""

    shapes: Mapping[str, Sequence[Length]]
    constants: Mapping[str, npt.ArrayLike]
    stages: bool


def load_onnx(
    source: str | Path | ModelProto,
    *,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    stages: bool = True,
    mapped: bool = True,
) -> Graph:
    """The graph of an ONNX file (or of an onnx.ModelProto), operator sets 7 to the newest that onnx knows.

    Vars have the names of ONNX's tensors. What depends on constants and shapes alone is computed at once and leaves no
    operator. A dimension that the model leaves open has its name in the graph, or one such as "x_0" where it has none;
    names that an operator needs to be equal, or to be a certain number, are taken to be just that. `shapes` tells the
    shape of an input, in numbers or such names. `constants` fixes inputs, above all such as decide a shape, which
    otherwise the run decides, in stages; without `stages` the first such input is named by an error. An input that has
    an initializer is a constant, unless `shapes` names it. Large weights are not read: they are parts of the mapped
    files. As long as a graph or an executable lives, neither cut nor write these in place; a new one may be renamed
    over it (as onnx.save does not). Without `mapped`, weights are read into memory. Raises ModelError,
    UnsupportedError, CycleError, GraphError, without `stages` ConstantNeededError.
    """
    model = read_model(source, cut=True, mapped=mapped)
    functions = Functions.of(model.proto)
    check_operators(model.proto, model.opsets, functions)
    given = _Given(shapes or {}, constants or {}, stages)
    equal: dict[str, str | int] = {}
    while True:
        try:
            return _read(model, functions, given, equal)
        except ModelError as error:
            more = equal_names(error)
            if not more or more.keys() <= equal.keys():
                raise
            equal |= more


def _read(model: Model, functions: Functions, given: _Given, equal: Mapping[str, str | int]) -> Graph:
    """The graph, with other names or numbers in place of some names. Raises ModelError where that is not enough."""
    inputs = _inputs(model.proto.graph, given)
    graph = Graph(model.proto.graph.name or "graph")
    builder = GraphBuilder(graph, _tensor_names(model.proto.graph), given.stages)
    scope = Scope(model.opsets, values=dict(_inputs_values(inputs, given, builder, equal)))
    reader = NodeReader(builder, functions, model.files, model.proto.ir_version)
    _mark_outputs(model, reader.graph(model.proto.graph, scope), builder)
    return graph


def _inputs(proto: Any, given: _Given) -> list[Declared]:
    """Inputs that are fed or fixed. Those with an initializer are neither, unless the caller names them."""
    names = [i.name for i in proto.input]
    check_unique(names, "input")
    for kind, named in (("shapes", given.shapes), ("constants", given.constants)):
        unknown = sorted(set(named) - set(names))
        if unknown:
            raise ModelError(f"{kind} names {unknown[0]!r}, which is no input; the inputs are: {', '.join(names)}")
    both = sorted(set(given.shapes) & set(given.constants))
    if both:
        raise ModelError(f"input {both[0]!r} is given a shape and fixed to an array at once")
    initialized = {t.name for t in proto.initializer} - set(given.shapes) - set(given.constants)
    return [declared(i) for i in proto.input if i.name not in initialized]


def _inputs_values(
    inputs: Sequence[Declared], given: _Given, builder: GraphBuilder, equal: Mapping[str, str | int]
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for one in inputs:
        if one.name in given.constants:
            values[one.name] = fixed_array(one, given.constants[one.name])
            builder.label(values[one.name], one.name)
    fixed = {name: value.shape for name, value in values.items()}
    shapes = shapes_of(inputs, {**given.shapes, **fixed})
    fed = {one.name: shapes[one.name] for one in inputs if one.name not in values}
    symbols = symbols_of(builder.graph, fed, equal)
    for one in inputs:
        if one.name not in values:
            values[one.name] = _input(one, symbols.shape(one.name, shapes[one.name]), builder.graph)
    return values


def _input(one: Declared, shape: Sequence[Any], graph: Graph) -> Var:
    try:
        return graph.input(one.name, shape, one.dtype)
    except OpError as error:
        raise ModelError(f"input {one.name!r}: {error}") from error


def _mark_outputs(model: Model, values: Sequence[Value], builder: GraphBuilder) -> None:
    names = [o.name for o in model.proto.graph.output]
    if not names:
        raise ModelError(f"graph {builder.graph.name!r} has no outputs")
    check_unique(names, "output")
    for name, value in zip(names, values, strict=True):
        builder.graph.output(builder.computed(value), name)


def _tensor_names(proto: Any) -> set[str]:
    inputs = {i.name for i in proto.input} | {t.name for t in proto.initializer}
    return inputs | {o for n in proto.node for o in n.output}
