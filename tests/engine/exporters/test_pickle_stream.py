"""A pickle in parts is the one that it is made of, at and around the size of a batch."""

import io
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.exporters.pickle_stream import PickleStream

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=12,
)


@pytest.mark.slow
@given(_VALUES, st.lists(st.lists(_VALUES, max_size=4), max_size=3))
def test_a_pickled_dict_is_read_back(value: object, lists: list[list[object]]) -> None:
    out = io.BytesIO()
    dump = PickleStream(out)
    dump.put_lists("lists", lists)
    dump.put("value", value)
    dump.close()
    assert pickle.loads(out.getvalue()) == {"lists": lists, "value": value}


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2000, 2500])
def test_a_pickled_dict_keeps_long_lists_whole(count: int) -> None:
    out = io.BytesIO()
    dump = PickleStream(out)
    dump.put_lists("lists", [({"a": i} for i in range(count)), range(3)])
    dump.close()
    assert pickle.loads(out.getvalue()) == {"lists": [[{"a": i} for i in range(count)], [0, 1, 2]]}
