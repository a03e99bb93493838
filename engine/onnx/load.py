"""Reads an ONNX model into a graph: the public function, and the order of all steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from engine.graph.graph import Graph
from engine.onnx.allowance import Allowance
from engine.onnx.builder import GraphBuilder
from engine.onnx.declarations import Declarations
from engine.onnx.file import Model, Source, read_model
from engine.onnx.fitting import first_fitting
from engine.onnx.functions import Functions
from engine.onnx.graph_reader import GraphReader
from engine.onnx.input_layouts import InputChoices
from engine.onnx.inputs import read_inputs
from engine.onnx.opaque import OpaqueRules
from engine.onnx.scope import Scope, check_unique
from engine.onnx.structures import Held, element_names, layout_of, tensors_in
from engine.onnx.symbols import Equal
from engine.onnx.table import check_operators
from engine.text.errors import ModelError, UnsupportedError
from engine.text.faults import behind_door


@behind_door("reading the model")
def load_onnx(
    source: Source,
    *,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    constants: Mapping[str, npt.ArrayLike | None] | None = None,
    infer: Mapping[str, str] | None = None,
    stages: bool = True,
    mapped: bool = True,
) -> Graph:
    """Returns the graph of an ONNX model; operator sets 7 to the newest that onnx has.

    `source` is a path, the bytes of a file, a file that is open for bytes, or an onnx.ModelProto. Only a path has files
    of external data beside it.

    Vars have the names of ONNX's tensors. An operator whose inputs are all constants or shapes is computed at once and
    is not in the graph.

    A dimension that the model leaves open has its name in the graph, or one such as "x_0" where it has none. Names that
    an operator needs to be equal, or to be a certain number, become that; numbers are logged. `shapes` sets the shape
    of an input, in numbers or such names. `constants` fixes inputs to arrays, above all those that decide a shape:
    otherwise the run decides it, in stages. Without `stages`, an error names the first such input. An input that has an
    initializer is a constant, unless `shapes` names it. The tensors of a sequence `x` are inputs x[0], x[1] and so on,
    as many as `shapes` names; `constants` fixes it to a list of arrays, or an optional without an element to None.

    A graph may have operators that nobody implements, where the model declares the shapes of their outputs: it can be
    planned, and not run. `infer` says what they give, such as {"acme.MyOp": "like:0"}: shape and type of input 0.

    Large weights are not read: they are parts of the mapped files. While a graph or an executable lives, do not cut or
    overwrite these files in place. To rename a new file over one is safe (onnx.save does not do that). Without
    `mapped`, weights are read into memory. Raises ModelError, UnsupportedError, CycleError, GraphError, OptionError,
    and without `stages` ConstantNeededError.
    """
    choices = InputChoices(shapes or {}, constants or {})
    return graph_of(read_model(source, cut=True, mapped=mapped), choices, infer or {}, stages=stages)


def graph_of(model: Model, choices: InputChoices, infer: Mapping[str, str], *, stages: bool) -> Graph:
    """Returns the graph of a model that was read; see `load_onnx`."""
    functions = Functions.of(model.proto)
    rules = OpaqueRules.of(infer)
    check_operators(model.proto, model.opsets, functions, rules)

    def read(graph: Graph, equal: Equal) -> None:
        builder = GraphBuilder(graph, Allowance.of(model.proto, model.files), _tensor_names(model.proto.graph), stages)
        values = read_inputs(model.proto.graph, choices, builder, equal)
        bound = rules.within(model.proto.graph.input, values)
        scope = Scope(model.opsets, Declarations(model.proto.graph), values=dict(values))
        reader = GraphReader(builder, functions, model.files, model.proto.ir_version, bound)
        _mark_outputs(model, reader.read_graph(model.proto.graph, scope), builder)
        graph.vanished = builder.lost_names

    return first_fitting(read, model.proto.graph.name or "graph")


@behind_door("reading the model")
def load_inputs(
    source: Source,
    *,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    constants: Mapping[str, npt.ArrayLike | None] | None = None,
) -> Graph:
    """Returns a graph of the inputs alone, with a name for each open dimension. Raises ModelError.

    The operators are not read, so no name gives way to another one or to a number.
    """
    model = read_model(source, cut=True)
    proto, allowance = model.proto.graph, Allowance.of(model.proto, model.files)
    graph = Graph(proto.name or "graph")
    builder = GraphBuilder(graph, allowance, _tensor_names(proto))
    read_inputs(proto, InputChoices(shapes or {}, constants or {}), builder, {})
    return graph


def _mark_outputs(model: Model, values: Sequence[Held], builder: GraphBuilder) -> None:
    names = [o.name for o in model.proto.graph.output]
    if not names:
        raise ModelError(f"graph {builder.graph.name!r} has no outputs")
    check_unique(names, "output")
    for name, value in zip(names, values, strict=True):
        for tensor, element in zip(tensors_in([value]), element_names(name, layout_of(value)), strict=True):
            builder.graph.output(builder.computed(tensor), element)
    if not builder.graph.outputs:
        raise UnsupportedError(f"graph {builder.graph.name!r} gives empty sequences and optionals alone")


def _tensor_names(proto: Any) -> set[str]:
    inputs = {i.name for i in proto.input} | {t.name for t in proto.initializer}
    return inputs | {o for n in proto.node for o in n.output}
