"""Judge 0 refuses what a faulty pass might give."""

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import ops
from engine import Graph, Operator
from engine.passes import Edit, Pass, RulePass, verify
from engine.passes.pipeline import until_unchanged
from engine.text.errors import PassError
from ops.schema.schema import Attrs, Kernel, OpSchema, Specs
from ops.tensor.spec import TensorSpec

Fault = Callable[[Graph], None]


def _graph() -> Graph:
    graph = Graph("sound")
    x = graph.input("x", (2, 3))
    p, q = graph.parameter(np.ones((2, 3), np.float32), "p"), graph.parameter(np.ones((2, 3), np.float32), "q")
    h = ops.relu(x) + graph.constant(np.ones(3, np.float32), "c")
    graph.output(h * q, "y")
    graph.assign(p, p - h)
    return graph


def _change(graph: Any, index: int, **fields: Any) -> None:
    graph._operators[index] = evolve(graph._operators[index], **fields)


def _swap(graph: Any) -> None:
    graph._operators[:2] = reversed(graph._operators[:2])


def _lose_an_operator(graph: Any) -> None:
    del graph._operators[1]


def _lose_the_last(graph: Any) -> None:
    del graph._operators[-1]


def _rename_output(graph: Any) -> None:
    graph._outputs["z"] = graph._outputs.pop("y")


def _other_output(graph: Any) -> None:
    graph._outputs["y"] = graph._constants and next(iter(graph._constants))


def _foreign_output(graph: Any) -> None:
    graph._outputs["y"] = _graph().outputs["y"]


def _more_inputs(graph: Any) -> None:
    graph.input("more", (1,))


def _lose_a_parameter(graph: Any) -> None:
    del graph._parameters[graph.vars["q"]]


def _lose_an_update(graph: Any) -> None:
    graph._updates.clear()


def _another_start(graph: Any) -> None:
    var = graph.vars["p"]
    graph._parameters[var] = evolve(graph._parameters[var], initial=np.zeros((2, 3), np.float32))


def _read_after_update(graph: Any) -> None:
    var = graph.vars["p"]
    graph._updates = {graph.vars["q"]: graph.operators[1].outputs[0], var: graph._updates[var]}


def _wrong_spec(graph: Any) -> None:
    operator = graph._operators[0]
    var = operator.outputs[0]
    object.__setattr__(var, "spec", TensorSpec((3, 2), var.dtype))


def _wrong_signature(graph: Any) -> None:
    signature = graph._operators[0].signature
    _change(graph, 0, signature=evolve(signature, outputs=(TensorSpec((3, 2), signature.x.dtype),)))


def _unfitting_inputs(graph: Any) -> None:
    first, second = graph._operators[:2]
    _change(graph, 1, inputs=(first.outputs[0],), signature=second.signature)


def _constants_unknown(graph: Any) -> None:
    _change(graph, 1, signature=evolve(graph._operators[1].signature, constants=frozenset()))


def _writable_constant(graph: Any) -> None:
    graph._constants[graph.vars["c"]] = np.ones(3, np.float32)


def _constant_of_another_shape(graph: Any) -> None:
    array = np.ones(4, np.float32)
    array.flags.writeable = False
    graph._constants[graph.vars["c"]] = array


def _one_name_twice(graph: Any) -> None:
    _change(graph, 1, name=graph._operators[0].name)


def _unlisted_var(graph: Any) -> None:
    del graph._vars[graph._operators[0].outputs[0].name]


def _var_of_another_graph(graph: Any) -> None:
    var = graph._operators[0].outputs[0]
    object.__setattr__(var, "graph", Graph("other"))


FAULTS: dict[Fault, str] = {
    _swap: "nothing in front of it computes",
    _lose_an_operator: "nothing in front of it computes",
    _lose_the_last: "nothing computes 'p'",
    _rename_output: "the outputs were y: ",
    _other_output: "the outputs were y: ",
    _foreign_output: "nothing computes 'y'",
    _more_inputs: "the inputs were x: ",
    _lose_a_parameter: "the parameters were p: ",
    _lose_an_update: "the parameters were p: ",
    _another_start: "the parameters were p: ",
    _read_after_update: "the parameters were p: ",
    _wrong_spec: "and its vars are",
    _wrong_signature: "was signed as",
    _unfitting_inputs: "does not take its inputs",
    _constants_unknown: "was signed as",
    _writable_constant: "may be written",
    _constant_of_another_shape: "its array is not",
    _one_name_twice: "have one name",
    _unlisted_var: "are not the ones that it lists",
    _var_of_another_graph: "a var of another graph",
}


def test_a_graph_is_a_replacement_for_one_that_is_built_alike() -> None:
    graph = _graph()
    verify(graph, graph)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.__name__).strip("_"))
def test_verify_refuses_each_fault(fault: Fault) -> None:
    before, broken = _graph(), _graph()
    for var, parameter in before.parameters.items():  # the very arrays, as in a graph that a pass wrote
        broken._parameters[broken.vars[var.name]] = parameter
    verify(before, broken)
    fault(broken)
    with pytest.raises(PassError, match=FAULTS[fault]):
        verify(before, broken)


def test_a_parameter_is_not_read_behind_what_writes_over_it() -> None:
    before = Graph()
    p = before.parameter(np.ones(3, np.float32), "p")
    x = before.input("x", (3,))
    before.output(ops.mul(x, p), "y")
    before.assign(p, p + x)
    after: Any = Graph()
    after._parameters[after._var("p", p.spec)] = before.parameters[p]
    (q,) = after.parameters
    z = after.input("x", (3,))
    total = q + z
    after.output(ops.mul(z, q), "y")
    after._updates[q] = total
    with pytest.raises(PassError, match="reads parameter 'p', which was written over"):
        verify(before, after)


def test_the_graph_of_a_pass_is_verified() -> None:
    calls = count()

    def infer(specs: Specs, _: Attrs) -> Specs:
        return specs if next(calls) == 0 else (TensorSpec((7,), specs[0].dtype),)

    inconstant = OpSchema("inconstant", infer, (Kernel("numpy", lambda _: bool),))

    def rule(edit: Edit, operator: Operator) -> None:
        if operator.schema is not inconstant:
            edit.replace(operator.outputs[0], edit.add(inconstant, operator.inputs)[0])

    graph = Graph()
    graph.output(ops.relu(graph.input("x", (2,))), "y")
    with pytest.raises(PassError, match="was signed as"):
        list(until_unchanged(graph, [RulePass("faulty", rule)]))


def test_a_pass_that_never_ends_is_cut_off() -> None:
    class Restless(Pass):
        name = "restless"

        def apply(self, edit: Edit) -> None:
            y = edit.operators[0].outputs[0]
            edit.replace(y, ops.relu(edit.inputs[0]))

    graph = Graph()
    graph.output(ops.relu(graph.input("x", (2,))), "y")
    assert 1 < len(list(until_unchanged(graph, [Restless()]))) < 100
    assert len(Restless()(graph).operators) == 1
