"""Readers of attributes: what they accept, what they return, what they refuse."""

from collections.abc import Callable

import numpy as np
import pytest

from ops.schema.attributes import Attribute, element_type, flag, integer, integers, number, numbers, one_of, optional
from ops.tensor.errors import AttributeValueError

Reader = Callable[[object], object]


@pytest.mark.parametrize(
    ("reader", "value", "wanted"),
    [
        (integer, np.int64(3), 3),
        (integers, [np.int32(1), -2], (1, -2)),
        (integers, 5, (5,)),
        (number, 2, 2.0),
        (numbers, np.array([0.5, 1.5], np.float32), (0.5, 1.5)),
        (flag, 1, True),
        (flag, False, False),
        (element_type, "float16", np.dtype("float16")),
        (one_of("edge", "wrap"), "wrap", "wrap"),
        (optional(integer), None, None),
        (optional(integers), (1,), (1,)),
    ],
)
def test_attribute_values_take_their_final_form(reader: Reader, value: object, wanted: object) -> None:
    read = Attribute("a", reader).read(value)
    assert read == wanted
    assert type(read) is type(wanted)


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        (integer, True),
        (integers, [True]),
        (integers, 5.0),
        (integer, 1.5),
        (integers, (1.5,)),
        (integer, "a"),
        (number, 10**400),
        (number, "many"),
        (numbers, ["1", "x"]),
        (flag, 2),
        (element_type, "complex64"),
        (one_of("edge", "wrap"), "corner"),
    ],
)
def test_wrong_attribute_values_are_refused_by_name(reader: Reader, value: object) -> None:
    with pytest.raises(AttributeValueError, match="attribute 'a' cannot be"):
        Attribute("a", reader).read(value)
