"""Operators by name."""

import pytest

from ops.reduce.softmax import LOG_SOFTMAX, SOFTMAX
from ops.registry import REGISTRY, find, index
from ops.tensor.errors import DuplicateOperatorError, UnknownOperatorError


def test_every_operator_is_registered_under_its_own_name() -> None:
    assert REGISTRY
    assert all(name == schema.name for name, schema in REGISTRY.items())


def test_operators_are_found_by_name() -> None:
    assert find("softmax") is SOFTMAX
    assert index([SOFTMAX], [LOG_SOFTMAX]) == {"softmax": SOFTMAX, "log_softmax": LOG_SOFTMAX}


def test_a_name_that_no_operator_has_is_refused() -> None:
    with pytest.raises(UnknownOperatorError, match="'softmix'"):
        find("softmix")


def test_two_operators_of_one_name_are_refused() -> None:
    with pytest.raises(DuplicateOperatorError, match="'softmax'"):
        index([SOFTMAX], [SOFTMAX])


def test_the_registry_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        REGISTRY["mine"] = SOFTMAX  # type: ignore[index]


def test_every_operator_has_a_description_and_a_kernel() -> None:
    assert all(schema.summary and schema.kernels for schema in REGISTRY.values())
