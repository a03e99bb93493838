"""Modules of PyTorch as graphs: torch.export and PyTorch's exporter to ONNX, in memory, with the weights of the module.

The message has a location in place of the data of each weight; there lie the bytes of the module's tensors. Nodes are
named after the modules that they belong to.
"""

import ast
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import Any

import numpy as np

from engine.graph.graph import Graph
from engine.onnx.external_data import DataFiles
from engine.onnx.file import Model, opsets_of
from engine.onnx.input_layouts import InputChoices
from engine.onnx.library import ModelProto, all_nodes, one_line
from engine.onnx.load import graph_of
from engine.text.errors import EngineError, ModelError
from engine.text.faults import behind_door

_SCOPES = "pkg.torch.onnx.name_scopes"
"""What the exporter notes of a node: the modules around it from the outermost on, and its own name, as a list."""
_LOGS = "torch", "torch.onnx", "torch.export", "torch.fx", "onnxscript", "onnx_ir"
_ADVICE = (
    "torch.export.export(module, example_inputs) must work first; where values decide what is computed, torch.cond "
    "helps, and where lengths differ, dynamic_shapes"
)


@behind_door("reading the module")
def load_torch(
    program: Any,
    example_inputs: Sequence[Any] = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    stages: bool = True,
) -> Graph:
    """Returns the graph of a torch.nn.Module, or of a torch.export.ExportedProgram, which needs no example inputs.

    A module is exported as it is, so call `eval()` first. `example_inputs`, `kwargs` and `dynamic_shapes` are those of
    torch.export.export: the arguments, and which of their dimensions are open. Without `stages`, a tensor that decides
    a shape is an error, as in `load_onnx`.

    Inputs have the names of the arguments of `forward`, operators and tensors those of the modules that compute them,
    such as "layer1.0.conv2". Weights are those of the module, not copies: do not change them while the graph or an
    executable lives. Raises EngineError where PyTorch or its exporter is missing, ModelError where they refuse the
    module, and what `load_onnx` raises.
    """
    return graph_of(
        _model(_exported(program, example_inputs, kwargs, dynamic_shapes)), InputChoices({}, {}), {}, stages=stages
    )


def _exported(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None, dynamic_shapes: Any) -> Any:
    """Returns the torch.onnx.ONNXProgram."""
    torch = _library()
    if not isinstance(program, (torch.nn.Module, torch.export.ExportedProgram)):
        what = type(program).__name__
        raise ModelError(f"a torch.nn.Module or a torch.export.ExportedProgram is wanted, not {what}")
    try:
        with _quiet():
            if isinstance(program, torch.nn.Module):
                program = torch.export.export(program, tuple(args), dict(kwargs or {}), dynamic_shapes=dynamic_shapes)
            return torch.onnx.export(program, dynamo=True, verbose=False)
    except Exception as error:  # of many classes, most of them private
        raise ModelError(f"PyTorch cannot export the module: {_innermost(error)}. {_ADVICE}") from error


def _innermost(error: BaseException) -> str:
    """Returns the first line of the error that others were raised from."""
    while error.__cause__ is not None:
        error = error.__cause__
    return one_line(error).rstrip(".")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps back what the exporter logs and writes: packages that are not there, and all of a graph where it fails."""
    levels = {name: logging.getLogger(name).level for name in _LOGS}
    try:
        for name in _LOGS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        with redirect_stderr(StringIO()):
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _library() -> Any:
    """Returns the package torch, once its exporter is there, too. Raises EngineError."""
    try:
        import onnxscript  # noqa: F401, PLC0415 - the exporter needs it
        import torch  # noqa: PLC0415 - heavy, and an extra
    except ImportError as error:
        raise EngineError(f"{error.name} is not installed: pip install -e '.[torch]'") from error
    return torch


def _model(program: Any) -> Model:
    """Returns the message without weights, which are in the place of files."""
    import onnx_ir  # noqa: PLC0415 - comes with onnxscript

    ir, weights = program.model, dict[str, memoryview]()
    for name, value in ir.graph.initializers.items():
        tensor = value.const_value
        weights[name] = _bytes(tensor.numpy())
        value.const_value = onnx_ir.ExternalTensor(
            location=name, offset=0, length=len(weights[name]), dtype=tensor.dtype, shape=tensor.shape, name=name
        )
    proto: ModelProto = onnx_ir.to_proto(ir)
    _name_by_module(proto.graph)
    return Model(proto, DataFiles(None, dict(weights)), opsets_of(proto.opset_import))


def _bytes(array: Any) -> memoryview:
    data: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(data).toreadonly()


def _name_by_module(graph: Any) -> None:
    """Names nodes, and the tensors that they compute, after their modules; inputs and outputs keep their names."""
    kept = {value.name for value in (*graph.input, *graph.output, *graph.initializer)}
    nodes = list(all_nodes(graph.node))
    kept |= {value.name for body in _bodies(nodes) for value in (*body.input, *body.output, *body.initializer)}
    scopes = [_scopes(node) for node in nodes]
    sizes, taken, names = Counter(scope[:-1] for scope in scopes), set(kept), dict[str, str]()
    for node, scope in zip(nodes, scopes, strict=True):
        *modules, own = scope
        module = modules[-1] if modules else ""
        wanted = f"{module}/{own}" if module and sizes[scope[:-1]] > 1 else module or own
        node.name = _free(wanted, taken)
        for i, output in enumerate(node.output):
            if output and output not in kept:
                names[output] = node.name if i == 0 else _free(f"{node.name}:{i}", taken)
    for node in nodes:
        for tensors in (node.input, node.output):
            tensors[:] = [names.get(name, name) for name in tensors]
    for value in (*graph.value_info, *(value for body in _bodies(nodes) for value in body.value_info)):
        value.name = names.get(value.name, value.name)


def _bodies(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            yield from (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs)


def _scopes(node: Any) -> tuple[str, ...]:
    """Returns the paths of the modules around a node from the outermost on, and its own name."""
    noted = next((entry.value for entry in node.metadata_props if entry.key == _SCOPES), "")
    try:
        scopes = ast.literal_eval(noted) if noted else ()
    except (SyntaxError, ValueError):
        scopes = ()
    return tuple(map(str, scopes)) or (node.name or node.op_type,)


def _free(name: str, taken: set[str]) -> str:
    """Returns the name, with a number behind it where it is taken, and takes it."""
    free = next(n for n in (name, *(f"{name}_{i}" for i in range(1, len(taken) + 2))) if n not in taken)
    taken.add(free)
    return free
