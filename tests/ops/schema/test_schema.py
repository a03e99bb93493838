"""Schemas: what `sign` checks, which kernel is taken, what `evaluate` computes."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given

from engine import Graph
from ops.schema.attributes import Attribute, integer
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Overwrite,
    Signature,
    Specs,
    Thunk,
    all_contiguous,
    elementwise_cost,
    evaluate,
    no_views,
    unless,
)
from ops.tensor.errors import ArityError, AttributeValueError, SchemaError, ShapeError
from ops.tensor.layout import Layout
from ops.tensor.spec import TensorSpec
from tests.helpers.graphs.random_graphs import graphs

FLOAT = np.dtype("float32")


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    if inputs[0].ndim != 1:
        raise ShapeError(f"takes a vector, not shape {inputs[0].shape}")
    return (inputs[0].with_shape((inputs[0].size * attrs["times"],)),)


def _repeat(call: Binding) -> Thunk:
    return partial(np.copyto, call.y.reshape(call.attrs["times"], -1), call.x)


def _is_long(signature: Signature) -> bool:
    return signature.y.size > 4


_not_long = unless(_is_long, "short rows")


REPEAT = OpSchema(
    name="repeat",
    infer=_infer,
    kernels=(Kernel("long", _repeat, unsupported=_not_long), Kernel("any", _repeat, contiguous=all_contiguous)),
    attributes=(Attribute("times", integer), Attribute("spare", integer, 7)),
)
VECTOR = TensorSpec((2,), FLOAT)


def test_signing_fills_in_defaults_and_infers() -> None:
    signature = REPEAT.sign([VECTOR], {"times": np.int64(3)}, frozenset({0}))
    assert dict(signature.attrs) == {"times": 3, "spare": 7}
    assert signature.x == VECTOR
    assert signature.y == TensorSpec((6,), FLOAT)
    assert signature.constants == {0}


def test_attributes_of_a_signature_cannot_be_changed() -> None:
    signature = REPEAT.sign([VECTOR], {"times": 3})
    with pytest.raises(TypeError):
        signature.attrs["times"] = 4  # type: ignore[index]


def test_a_missing_attribute_is_named() -> None:
    with pytest.raises(AttributeValueError, match=r"repeat\(float32\[2\]\): attribute 'times' is missing"):
        REPEAT.sign([VECTOR], {})


def test_an_unknown_attribute_is_named_and_the_known_ones_are_listed() -> None:
    with pytest.raises(AttributeValueError, match="no attribute 'time'; it has: times, spare"):
        REPEAT.sign([VECTOR], {"time": 3})


def test_the_wrong_number_of_inputs_is_named() -> None:
    with pytest.raises(ArityError, match="takes 1 inputs, not 2"):
        REPEAT.sign([VECTOR, VECTOR], {"times": 3})


def test_errors_of_inference_carry_the_name_of_the_operator_and_its_inputs() -> None:
    with pytest.raises(ShapeError, match=r"repeat\(float32\[1,2\]\): takes a vector"):
        REPEAT.sign([TensorSpec((1, 2), FLOAT)], {"times": 3})


@given(graphs())
def test_inferring_again_gives_what_signing_gives(graph: Graph) -> None:
    for operator in graph.operators:
        signature = operator.signature
        assert operator.schema.infer_again(signature.inputs, signature.attrs, signature.constants) == signature


def test_inferring_again_takes_other_shapes_and_names_the_operator_in_errors() -> None:
    attrs = REPEAT.sign([VECTOR], {"times": 3}).attrs
    longer = TensorSpec((5,), FLOAT)
    assert REPEAT.infer_again((longer,), attrs) == REPEAT.sign([longer], {"times": 3})
    with pytest.raises(ShapeError, match=r"repeat\(float32\[1,2\]\): takes a vector"):
        REPEAT.infer_again((TensorSpec((1, 2), FLOAT),), attrs)


def test_the_first_kernel_that_takes_a_signature_is_used() -> None:
    assert REPEAT.kernel(REPEAT.sign([VECTOR], {"times": 3})).name == "long"
    assert REPEAT.kernel(REPEAT.sign([VECTOR], {"times": 2})).name == "any"


def test_a_signature_that_no_kernel_takes_is_refused() -> None:
    picky = OpSchema("picky", _infer, (Kernel("long", _repeat, unsupported=_not_long),), attributes=REPEAT.attributes)
    with pytest.raises(ShapeError, match="no kernel takes"):
        picky.kernel(picky.sign([VECTOR], {"times": 1}))


def test_evaluate_runs_one_operator_on_any_strides() -> None:
    backwards = np.arange(2, dtype=np.float32)[::-1]
    (y,) = evaluate(REPEAT, backwards, times=2)
    assert y.tolist() == [1, 0, 1, 0]


def test_by_default_nothing_is_a_view_and_every_operand_is_touched_once() -> None:
    signature = REPEAT.sign([VECTOR], {"times": 3})
    assert no_views(Layout.dense(VECTOR), signature) == (None,)
    assert elementwise_cost(signature) == Cost(6, 8 + 24)


def test_a_schema_that_breaks_its_contract_is_named() -> None:
    bare = OpSchema("bare", lambda specs, _: specs[0], REPEAT.kernels)  # type: ignore[arg-type,return-value]
    with pytest.raises(SchemaError, match=r"bare\(float32\[2\]\): infer must return a tuple of TensorSpec"):
        bare.sign([VECTOR], {})
    for forward in (Overwrite(5, 0), Overwrite(0, -1), Overwrite(0, 0, -4)):
        greedy = OpSchema("greedy", lambda specs, _: specs, REPEAT.kernels, overwrites=lambda _, f=forward: (f,))  # type: ignore[misc]
        with pytest.raises(SchemaError, match="greedy: Overwrite"):
            greedy.forwards(greedy.sign([VECTOR], {}))
