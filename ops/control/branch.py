"""One of two bodies, as a condition says (ONNX If); they share the bytes that only one of them needs."""

from ops.schema.body import Body, body_attribute, check_operands, workspace_of
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, all_contiguous
from ops.tensor.errors import ArityError, DtypeError, ShapeError
from ops.tensor.spec import BOOL, TensorSpec


def check_condition(spec: TensorSpec) -> None:
    """Raises DtypeError or ShapeError for what is not one bool."""
    if spec.dtype != BOOL:
        raise DtypeError(f"the condition is {spec.dtype}, not bool")
    if spec.size != 1:
        raise ShapeError(f"the condition has {spec.size} elements, not one")


def _bodies(attrs: Attrs) -> tuple[Body, Body]:
    return attrs["then_body"], attrs["else_body"]


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    check_condition(inputs[0])
    then, other = _bodies(attrs)
    for name, body in (("then_body", then), ("else_body", other)):
        check_operands(f"inputs of {name}", body.inputs, inputs[1:])
    check_operands("outputs of else_body, by those of then_body", then.outputs, other.outputs)
    if not then.outputs:
        raise ArityError("the bodies give nothing")
    return tuple(then.outputs)


def _temporaries(signature: Signature) -> Specs:
    return (workspace_of(*_bodies(signature.attrs)),)


def _bind(call: Binding) -> Thunk:
    (condition, *captured), (inside,) = call.inputs, call.temporaries
    then, other = (b.bind(tuple(captured), call.outputs, inside) for b in _bodies(call.attrs))

    def run() -> None:
        if condition.item():
            then()
        else:
            other()

    return run


def _cost(signature: Signature) -> Cost:
    """Returns the cost of the dearer body."""
    return max((b.cost for b in _bodies(signature.attrs)), key=lambda cost: (cost.flops, cost.bytes))


IF = OpSchema(
    name="if",
    summary="What `then_body` makes of the operands behind `cond` if that is true, what `else_body` makes if not.",
    infer=_infer,
    kernels=(Kernel("bodies", _bind, _temporaries, contiguous=all_contiguous),),
    arity=(1, 2**31),
    attributes=(body_attribute("then_body"), body_attribute("else_body")),
    cost=_cost,
)
OPS = (IF,)
