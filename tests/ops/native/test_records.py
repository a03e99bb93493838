"""Records of arguments: the layout, what is written, what is refused, and what compiled code reads."""

import numpy as np
import pytest

from allocator.machine_code.door import address
from ops.native.call import Native, Step, as_words
from ops.native.records import join_args, offset, pack_args, record
from ops.norm.args import LRN

MIXED = record("x count[2]: int64", "low: float64")


def test_a_record_has_a_word_for_each_number() -> None:
    assert MIXED.itemsize == 8 * 4
    assert [offset(MIXED, name) for name in ("x", "count", "low")] == [0, 8, 24]


def test_packed_arguments_are_the_words_of_their_fields_in_order() -> None:
    packed = pack_args(MIXED, low=-0.5, count=(2, 3), x=1)
    assert packed.tolist() == as_words([1, 2, 3, -0.5]).tolist()
    assert packed.view(MIXED)[0]["low"] == -0.5


def test_joined_arguments_lie_behind_each_other() -> None:
    packed = pack_args(MIXED, x=1, count=(2, 3), low=0.0)
    assert join_args(packed, [7, 8], packed).tolist() == [1, 2, 3, 0, 7, 8, 1, 2, 3, 0]


@pytest.mark.parametrize(
    "values",
    [
        {"x": 1, "count": (2, 3)},
        {"x": 1, "count": (2, 3), "low": 0.0, "high": 1.0},
        {"x": 1.5, "count": (2, 3), "low": 0.0},
        {"x": 1, "count": (2,), "low": 0.0},
        {"x": 1, "count": (2, 3, 4), "low": 0.0},
        {"x": 2**63, "count": (2, 3), "low": 0.0},
    ],
)
def test_arguments_that_do_not_fit_their_record_are_refused(values: dict[str, float | tuple[int, ...]]) -> None:
    with pytest.raises(TypeError):
        pack_args(MIXED, **values)


@pytest.mark.parametrize("declaration", ["x: int32", "x", "x[]: int64", "x-y: float64"])
def test_a_declaration_that_names_no_fields_is_refused(declaration: str) -> None:
    with pytest.raises(TypeError, match="fields are declared"):
        record(declaration)


def test_compiled_code_reads_fields_by_name() -> None:
    x, y = np.ones((1, 2, 3), np.float32), np.empty((1, 2, 3), np.float32)
    places = {"x": x.ctypes.data, "y": y.ctypes.data, "pixels": 2, "channels": 3, "x_pitch": 12, "y_pitch": 12}
    packed = pack_args(LRN, **places, size=1, factor=3.0, bias=1.0, beta=0.5)
    Native((Step(address("ops.norm.lrn_code", "normalise"), packed),), (x, y))()
    assert y.tolist() == np.full((1, 2, 3), 0.5, np.float32).tolist()
