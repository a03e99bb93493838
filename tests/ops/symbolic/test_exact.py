"""Inference on dimensions: what it proves is what operators give for any numbers, also beyond all samples."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.registry import find
from ops.symbolic.exact import ExactSamples, UnknownLengthError
from ops.symbolic.normal_form import NormalForms
from ops.tensor.dims import Dim, Samples, leaf, value_of
from ops.tensor.errors import OpError
from ops.tensor.spec import TensorSpec

NAMES = ("n", "m", "h")
PADDED = {"pads": (1, 1), "strides": (2,)}
POOLED = {"kernel_shape": (2,), "strides": (2,)}
CASES: dict[str, tuple[str, list[Any], dict[str, Any], list[Any]]] = {
    "sum": ("add", [("n", 3, "m"), (3, "m")], {}, ["n", 3, "m"]),
    "sum of unlike lengths": ("add", [("n",), ("m",)], {}, [None]),
    "product": ("matmul", [("n", "m", 4), ("n", 4, "h")], {}, ["n", "m", "h"]),
    "convolution": ("conv", [("n", 3, "h"), (5, 3, 3)], PADDED, ["n", 5, "(h+1)//2"]),
    "pool": ("max_pool", [("n", 3, "h")], POOLED, ["n", 3, "h//2"]),
    "pool with ceil": (
        "max_pool",
        [("n", 3, "h")],
        POOLED | {"ceil_mode": True},
        ["n", 3, None],
    ),
    "rest of a shape": ("reshape", [("n", "m", 12)], {"shape": (-1, 4)}, ["n*m*3", 4]),
    "concatenation": ("concat", [("n", "m"), ("h", "m")], {"axis": 0}, ["n+h", "m"]),
    "whole slice": ("slice", [("n", "m")], {"starts": (0,), "ends": (2**63 - 1,), "axes": (0,)}, ["n", "m"]),
    "part of an axis": ("slice", [("n", "m")], {"starts": (0,), "ends": (10**7,), "axes": (0,)}, [None, "m"]),
    "mean": ("reduce_mean", [("n", "m")], {"axes": (1,), "keepdims": True}, ["n", 1]),
}


def _table() -> tuple[ExactSamples, dict[str, Dim]]:
    table = ExactSamples.of(Samples(), NormalForms(lambda dim: dim))
    return table, {name: leaf(name, table.invent(), table, name) for name in NAMES}


def _specs(shapes: list[Any], lengths: dict[str, Any]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(tuple(lengths.get(n, n) for n in shape), np.dtype("float32")) for shape in shapes)


@pytest.mark.parametrize("case", CASES)
def test_inference_on_dimensions_proves_lengths(case: str) -> None:
    name, shapes, attrs, wanted = CASES[case]
    table, names = _table()
    schema = find(name)
    numbers = schema.sign(_specs(shapes, dict.fromkeys(NAMES, 1 if "unlike" in case else 8)), attrs)
    (lengths,) = table.infer(schema, _specs(shapes, names), numbers.attrs).lengths
    assert [n if n is None or isinstance(n, int) else str(n) for n in lengths] == wanted
    assert not table.guards


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(CASES)), st.fixed_dictionaries({name: st.integers(0, 10**8) for name in NAMES}))
def test_proved_lengths_hold_for_any_numbers(case: str, numbers: dict[str, int]) -> None:
    name, shapes, attrs, _ = CASES[case]
    table, names = _table()
    try:
        signature = find(name).sign(_specs(shapes, dict(numbers)), attrs)
    except OpError:  # the lengths do not fit
        return
    (lengths,) = table.infer(find(name), _specs(shapes, names), signature.attrs).lengths
    for length, actual in zip(lengths, signature.y.shape, strict=True):
        assert length is None or value_of(length, lambda d: numbers[str(d.key)]) == actual


def test_nothing_is_decided_where_nothing_may_be() -> None:
    table, names = _table()
    n, m = names["n"], names["m"]
    with table.undecided():
        assert n + m == m + n and n not in (m, 1) and not n < 0
        for question in (lambda: n < m, lambda: n >= 1, lambda: range(n)):
            with pytest.raises(UnknownLengthError):
                question()
    assert not table.guards and len(table.alive) > 1
    assert n != m and len(table.guards) == 1
