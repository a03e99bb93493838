"""Walks over the initializers and nodes of an ONNX graph, and converts them one by one.

A node is converted by the converter of its operator (`table`), or replaced by the body of its function (`functions`).
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from attrs import evolve, frozen

from engine.onnx.builder import GraphBuilder
from engine.onnx.declarations import Declarations, reads
from engine.onnx.external_data import DataFiles
from engine.onnx.file import opsets_of
from engine.onnx.functions import Functions, arguments, substitute
from engine.onnx.library import check_node, domain_of, one_line, onnx
from engine.onnx.node import Node
from engine.onnx.opaque import OpaqueRules, OpaqueUse
from engine.onnx.registered import registered
from engine.onnx.scope import Scope, check_unique, sorted_nodes
from engine.onnx.structures import Held, tensor_in, tensors_in
from engine.onnx.table import converter
from engine.text.errors import EngineError, ModelError, UnsupportedError
from engine.text.faults import name_operator
from ops.schema.schema import OpSchema
from ops.tensor.dims import dims_in
from ops.tensor.errors import DtypeError

_DEEPEST = 32
"""Levels of functions and branches inside each other, at most: a function that calls itself must end in an error."""
_ATTRIBUTE_ERRORS = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
"""The exceptions that Python and numpy raise for wrong attributes; OpError is one of them."""


@frozen(eq=False)
class GraphReader:
    """The reader of one graph into a builder. `files` has the data of tensors that are not in the message.

    `rules` are for operators that nobody implements.
    """

    builder: GraphBuilder
    functions: Functions
    files: DataFiles
    ir_version: int
    rules: OpaqueRules

    def read_graph(self, proto: Any, scope: Scope) -> tuple[Held, ...]:
        """Reads initializers and nodes of a GraphProto into the scope, and returns the values of its outputs."""
        if len(proto.sparse_initializer):
            name = proto.sparse_initializer[0].values.name
            raise UnsupportedError(f"initializer {name!r} is sparse; only dense ones are supported")
        check_unique((t.name for t in proto.initializer), "initializer")
        for tensor in proto.initializer:
            if tensor.name not in scope.values:
                self._bind(tensor.name, self.builder.stored(tensor, f"initializer {tensor.name!r}", self.files), scope)
        self.read_nodes(proto.node, scope)
        return tuple(_output(o.name, scope) for o in proto.output)

    def read_nodes(self, protos: Sequence[Any], scope: Scope) -> None:
        """Reads nodes in a runnable order. Raises ModelError, CycleError, UnsupportedError."""
        self._take(protos, scope)
        check_unique([*scope.values, *(o for p in protos for o in p.output if o)], "tensor")
        names = [scope.prefix + (p.name or f"{p.op_type}_{i}") for i, p in enumerate(protos)]
        for i in sorted_nodes(protos, names, scope):
            proto = substitute(protos[i], scope.arguments) if scope.arguments is not None else protos[i]
            (first, *_) = self.builder.graph.extent()
            values = zip(proto.output, self._read_node(proto, names[i], scope), strict=False)
            used = [(output, value) for output, value in values if output and value is not None]
            for output, value in used:
                self._bind(output, value, scope)
            for _, value in used[:1]:
                self.builder.note_node(names[i], first, value)

    def _take(self, protos: Sequence[Any], scope: Scope) -> None:
        """Takes what these nodes cost; without nodes too, a body costs something each time that it is read."""
        outputs = [o for p in protos for o in p.output]
        self.builder.allowance.take_nodes(1 + len(protos))
        self.builder.allowance.take_bytes(len(scope.prefix) * (len(protos) + len(outputs)) + sum(map(len, outputs)))

    def _read_node(self, proto: Any, name: str, scope: Scope) -> tuple[Held | None, ...]:
        what = f"node {name!r} ({proto.op_type})"
        inputs = tuple(scope.get(n) for n in proto.input)
        domain = domain_of(proto.domain)
        version = scope.opsets.get(domain, 0)
        own = registered(domain, proto.op_type)
        convert = None if self.functions.own(proto) else converter(domain, proto.op_type, version)
        try:
            if own is not None:
                node = self._node_in_scope(proto, name, inputs, scope)
                return self._registered(own, node)
            if convert is None:
                function = self.functions.body(proto, version, inputs)
                if function is None:
                    return self._opaque(proto, name, inputs, scope)
                return self._call(proto, name, inputs, scope, function)
            self._check(proto, domain, scope)
            return convert(self._node_in_scope(proto, name, inputs, scope))
        except EngineError as error:
            _raise_with_node(error, what)
        except DtypeError as error:
            raise UnsupportedError(f"{what}: {error}") from error
        except _ATTRIBUTE_ERRORS as error:
            raise _node_error(error, what, inputs) from error
        except Exception as error:
            name_operator(error, name)
            raise

    def _registered(self, schema: OpSchema, node: Node) -> tuple[Held | None, ...]:
        """Adds an operator of the user's own, whose functions may raise anything."""
        try:
            results = self.builder.emit(schema, node.operands(), node.attrs, node.name, node.outputs)
        except (EngineError, *_ATTRIBUTE_ERRORS):
            raise
        except Exception as error:
            raise ModelError(f"its registered schema raised {type(error).__name__}: {one_line(error)}") from error
        if any(node.outputs[len(results) :]):
            raise ModelError(f"its registered schema has {len(results)} outputs, and the node {len(node.outputs)}")
        return results

    def _node_in_scope(self, proto: Any, name: str, inputs: tuple[Held | None, ...], scope: Scope) -> Node:
        def branch(
            graph: Any, values: Sequence[Held] = (), builder: GraphBuilder = self.builder, part: str = ""
        ) -> tuple[Held, ...]:
            inner = _inner(scope, f"{name}/{part}", graph, scope.opsets, outer=scope)
            inner.values.update(zip((i.name for i in graph.input), values, strict=True))
            return evolve(self, builder=builder).read_graph(graph, inner)

        return Node(
            name=name,
            op_type=proto.op_type,
            input_names=tuple(proto.input),
            held=inputs,
            outputs=_names(proto, scope),
            attrs={a.name: _attribute(a) for a in proto.attribute},
            builder=self.builder,
            branch=branch,
        )

    def _call(
        self, proto: Any, name: str, inputs: tuple[Held | None, ...], scope: Scope, function: Any
    ) -> tuple[Held | None, ...]:
        """Reads the body of a function in place of its call; returns None for outputs that the call does not use."""
        version = scope.opsets.get(domain_of(proto.domain), 0)
        opsets = {**scope.opsets, **opsets_of(function.opset_import)}
        inner = _inner(scope, f"{name}/", function, opsets, arguments=arguments(proto, version, function))
        operands = (*inputs, *[None] * len(function.input))
        inner.values.update(zip(function.input, operands, strict=False))
        self.read_nodes(function.node, inner)
        pairs = zip(function.output, proto.output, strict=False)
        return tuple(_output(o, inner) if wanted else None for o, wanted in pairs)

    def _opaque(self, proto: Any, name: str, inputs: tuple[Held | None, ...], scope: Scope) -> tuple[Held | None, ...]:
        """Reads an operator that nobody implements."""
        captured = tuple(tensors_in(scope.get(n) for n in sorted(reads(proto) - set(proto.input))))
        tensors = tuple(None if v is None else tensor_in(v, f"input {i}") for i, v in enumerate(inputs))
        use = OpaqueUse(proto, name, tensors, captured, _names(proto, scope), scope.declarations)
        return self.rules.read(self.builder, use)

    def _check(self, proto: Any, domain: str, scope: Scope) -> None:
        if any(a.HasField("g") for a in proto.attribute):
            return  # onnx's checker needs the whole scope of a branch
        fault = check_node(proto, domain, dict(scope.opsets), self.ir_version)
        if fault:
            raise ModelError(fault)

    def _bind(self, name: str, value: Held, scope: Scope) -> None:
        self.builder.label(value, scope.prefix + name)
        scope.values[name] = value


def _names(proto: Any, scope: Scope) -> tuple[str, ...]:
    """Returns the names that the outputs of a node have in our graph; "" for one that is left out."""
    return tuple(scope.prefix + o if o else "" for o in proto.output)


def _inner(
    scope: Scope, prefix: str, proto: Any, opsets: Any, *, outer: Scope | None = None, arguments: Any = None
) -> Scope:
    if scope.depth >= _DEEPEST:
        raise ModelError(f"functions and branches are nested more than {_DEEPEST} deep")
    passed = arguments if outer is None else scope.arguments
    return Scope(opsets, Declarations(proto), prefix, outer, passed, scope.depth + 1)


def _output(name: str, scope: Scope) -> Held:
    value = scope.get(name)
    if value is None:
        raise ModelError(f"output {name!r} is made by no node")
    return value


def _attribute(proto: Any) -> Any:
    if proto.ref_attr_name:
        raise ModelError(f"attribute {proto.name!r} refers to a function's attribute, outside of any function")
    value = onnx().helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


def _node_error(error: Exception, what: str, inputs: Sequence[Held | None]) -> ModelError:
    """Returns the error for an exception of Python or numpy; the cause may be a dimension that has no number yet."""
    dims = dims_in(tuple(v.shape for v in tensors_in(inputs)))
    if not dims:
        return ModelError(f"{what}: {one_line(error)}")
    kind = UnsupportedError if isinstance(error, TypeError) else ModelError
    names = ", ".join(dict.fromkeys(map(str, dims)))
    return kind(f"{what}: {one_line(error)} (dimensions {names} are left open; shapes= or --shape gives them numbers)")


def _raise_with_node(error: EngineError, what: str) -> NoReturn:
    """Raises the error again, with the node in front of its message if that names none.

    Errors of other classes, which have fields, are raised as they are.
    """
    if type(error) in (ModelError, UnsupportedError) and not str(error).startswith("node "):
        raise type(error)(f"{what}: {error}") from error
    raise error
