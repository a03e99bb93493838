"""Judge 0: checks that the result of a pass can be run, and has the inputs, outputs and parameters of before.

It trusts no stored specs of what a pass has written: it infers these operators again from their inputs.
"""

from collections.abc import Collection, Set

from engine.graph.deferred import Deferred
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.verify_lengths import SampledLengths, check_lengths, sampled_lengths
from engine.text.errors import PassError
from ops.movement.assign import ASSIGN
from ops.schema.schema import Signature, Specs
from ops.tensor.dims import dims_in
from ops.tensor.errors import OpError


def verify(before: Graph, after: Graph) -> None:
    """Raises PassError, with the reason, where `after` cannot be run or cannot take the place of `before`.

    A signature that `before` has for the same schema is taken as inferred.
    """
    lengths = sampled_lengths(before, after)
    _check_outside(before, after, lengths)
    computed = _sources(after)
    check = _SignatureCheck(before, after, lengths)
    overwritten: set[Var] = set()
    updated = _parameters_by_value(after)
    for operator in after.operators:
        _check_reads(operator, computed, overwritten)
        check(operator)
        computed.update(operator.outputs)
        overwritten.update(p for v in operator.outputs for p in updated.get(v, ()))
        _check_update(operator, overwritten)
    missing = [name for name, var in after.outputs.items() if var not in computed]
    missing += [p.name for p, v in after.updates.items() if v not in computed]
    if missing:
        raise PassError(f"nothing computes {missing[0]!r}")
    _check_names(after, computed)
    if before.is_symbolic:
        check_lengths(before, after, lengths)


def _check_outside(before: Graph, after: Graph, lengths: SampledLengths) -> None:
    """Checks inputs, outputs and parameters: names, order, specs, initial values, and which parameters are updated."""
    for kind in ("inputs", "outputs"):
        expected, actual = ([(n, v.spec) for n, v in getattr(g, kind).items()] for g in (before, after))
        if [(n, lengths.shape(s)) for n, s in expected] != [(n, lengths.shape(s)) for n, s in actual]:
            raise PassError(f"the {kind} were {_shown(expected)}, and are {_shown(actual)}")
    if _state(before) != _state(after):
        raise PassError(f"the parameters were {_shown(_state(before))}, and are {_shown(_state(after))}")
    for name, var in after.outputs.items():
        if var in after.updates and before.outputs[name] not in before.updates:
            raise PassError(f"output {name!r} is parameter {var.name!r}, which is written over before it is fetched")


def _state(graph: Graph) -> list[tuple[object, ...]]:
    parameters = graph.parameters.items()
    return [(v.name, v.spec, id(p.initial), p.trainable, v in graph.updates) for v, p in parameters]


def _shown(rows: Collection[tuple[object, ...]]) -> str:
    return ", ".join(f"{name}: {spec}" for name, spec, *_ in rows) or "none"


def _sources(graph: Graph) -> set[Var]:
    for var, entry in graph.constants.entries.items():
        may_be_written = not isinstance(entry, Deferred) and entry.flags.writeable
        if graph.constants.spec(var) != var.spec or may_be_written:
            raise PassError(f"constant {var.name!r} is {var.spec}, and its array is not, or may be written")
    return {*graph.inputs.values(), *graph.constants, *graph.derived, *graph.parameters}


def _parameters_by_value(graph: Graph) -> dict[Var, list[Var]]:
    parameters: dict[Var, list[Var]] = {}
    for parameter, value in graph.updates.items():
        parameters.setdefault(value, []).append(parameter)
    return parameters


def _check_update(operator: Operator, overwritten: Set[Var]) -> None:
    """Checks that an assignment does not read the parameter that it overwrites."""
    if operator.schema is ASSIGN and operator.inputs[1] in overwritten:
        raise PassError(f"{operator} assigns parameter {operator.inputs[1].name!r} to itself")


def _check_reads(operator: Operator, computed: Set[Var], overwritten: Set[Var]) -> None:
    for var in operator.inputs:
        if var not in computed:
            raise PassError(f"{operator} reads {var.name!r}, which nothing in front of it computes")
        if var in overwritten:
            raise PassError(f"{operator} reads parameter {var.name!r}, which was written over in front of it")


class _SignatureCheck:
    """Infers the operators that a pass has written again, from their inputs."""

    def __init__(self, before: Graph, after: Graph, lengths: SampledLengths) -> None:
        self._lengths = lengths
        self._constants = after.constants.keys() | after.derived.keys()
        self._inferred = {id(operator.signature): operator.schema for operator in before.operators}
        self._before = {operator.name: operator for operator in before.operators} if before.is_symbolic else {}

    def __call__(self, operator: Operator) -> None:
        """Raises PassError where the stored specs are not what the operator gives."""
        inputs = tuple(v.spec for v in operator.inputs)
        outputs = tuple(v.spec for v in operator.outputs)
        constants = frozenset(i for i, v in enumerate(operator.inputs) if v in self._constants)
        stored, alike = operator.signature, self._lengths.alike
        again = stored if self._is_inferred(operator) else self._inferred_again(operator, inputs, constants)
        signed = alike(inputs, stored.inputs) and alike(again.outputs, stored.outputs)
        if not signed or constants != stored.constants:
            raise PassError(f"{operator} was signed as {stored.inputs} -> {stored.outputs}, and is {again.outputs}")
        if not alike(outputs, again.outputs):
            raise PassError(f"{operator} gives {again.outputs}, and its vars are {outputs}")

    def _inferred_again(self, operator: Operator, inputs: Specs, constants: frozenset[int]) -> Signature:
        specs = (*inputs, *operator.signature.outputs)
        if any(s.is_symbolic for s in specs) or dims_in(tuple(operator.attrs.values())):
            self._lengths.check_inferred(operator, constants)
            return operator.signature
        try:
            return operator.schema.sign(inputs, operator.attrs, constants)
        except OpError as error:
            raise PassError(f"{operator} does not take its inputs: {error}") from error

    def _is_inferred(self, operator: Operator) -> bool:
        """Returns whether the graph before has the signature, or the operator with the same lengths in all samples."""
        if self._inferred.get(id(operator.signature)) is operator.schema:
            return True
        earlier, lengths = self._before.get(operator.name), self._lengths
        return (
            earlier is not None
            and earlier.schema is operator.schema
            and lengths.alike(earlier.signature.inputs, operator.signature.inputs)
            and lengths.alike(earlier.signature.outputs, operator.signature.outputs)
            and lengths.same_attrs(earlier.attrs, operator.attrs)
        )


def _check_names(graph: Graph, computed: Set[Var]) -> None:
    """Checks that all vars belong to the graph and are listed, and that no name stands for two things."""
    if {v.name: id(v) for v in computed} != {name: id(v) for name, v in graph.vars.items()}:
        raise PassError(f"the vars of graph {graph.name!r} are not the ones that it lists")
    if any(v.graph is not graph for v in computed):
        raise PassError(f"a var of another graph stands in graph {graph.name!r}")
    if len({op.name for op in graph.operators}) != len(graph.operators):
        raise PassError(f"two operators of graph {graph.name!r} have one name")
