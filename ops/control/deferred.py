"""Control flow whose shapes only the run decides. No kernel computes it: its bodies are run in its place, in stages."""

from typing import Any

from ops.control.branch import check_condition
from ops.schema.attributes import Attribute, flag, integer, optional
from ops.schema.declared import DECLARED, declared_outputs
from ops.schema.schema import Attrs, OpSchema, Specs
from ops.tensor.errors import AttributeValueError


def _anything(value: Any) -> object:
    return value


def _branch(inputs: Specs, attrs: Attrs) -> Specs:
    check_condition(inputs[0])
    return declared_outputs(attrs)


def _loop(inputs: Specs, attrs: Attrs) -> Specs:
    if attrs["trips_given"] and inputs[0].size != 1:
        raise AttributeValueError(f"the number of turns must be one int64, not {inputs[0]}")
    if attrs["cond_given"]:
        check_condition(inputs[attrs["trips_given"]])
    return declared_outputs(attrs)


IF_LATE = OpSchema(
    name="if_late",
    summary="`if` with bodies of unlike shapes: the one that the condition chooses runs in its place.",
    infer=_branch,
    kernels=(),
    arity=(1, 2**31),
    attributes=(Attribute("then_body", _anything), Attribute("else_body", _anything), *DECLARED),
)
LOOP_LATE = OpSchema(
    name="loop_late",
    summary="`loop` with values that grow or shrink from turn to turn: each turn runs as operators of its own.",
    infer=_loop,
    kernels=(),
    arity=(0, 2**31),
    attributes=(
        Attribute("body", _anything),
        Attribute("carried", integer),
        Attribute("trips", optional(integer), None),
        Attribute("trips_given", flag, False),
        Attribute("cond_given", flag, False),
        Attribute("conditional", flag, False),
        *DECLARED,
    ),
)
