"""The payload of a page: all of a plan, by the bytes that its script reads."""

import gzip
import json
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.graph.graph import Graph
from engine.trace.rectangles import Rectangles, rectangles_of
from engine.viewer.payload import pack
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.traces.hostile_names import HOSTILE, synthetic_trace


def _unpack(payload: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    raw = gzip.decompress(payload)
    length = int.from_bytes(raw[:4], "little")
    header = json.loads(raw[4 : 4 + length])
    base = -(-(4 + length) // 8) * 8
    columns = {}
    for name, (kind, at, count) in header["columns"].items():
        assert (base + at) % 8 == 0
        columns[name] = np.frombuffer(raw, f"<{kind}", count, base + at)
    return header, columns


def _check(data: Rectangles, title: str) -> None:
    header, columns = _unpack(pack(data, title))
    assert header["title"] == title
    assert header["count"] == len(data)
    assert header["facts"]["arena_bytes"] == data.facts.arena_bytes
    for name in ("begin", "end", "offset", "size", "padding", "overwrites", "stage", "thread", "born", "died"):
        assert np.array_equal(columns[name], getattr(data, name))
    for name in ("name", "operator", "schema", "shape", "dtype", "role"):
        assert tuple(header["strings"][i] for i in columns[name]) == getattr(data, name)
    layers = [header["strings"][i] for i in columns["layer"]]
    assert all(operator.lstrip("/").startswith(layer) for operator, layer in zip(data.operator, layers, strict=True))
    assert np.array_equal(columns["curve_live"], data.live)
    assert np.array_equal(columns["curve_tick"], data.tick)
    assert columns["view_chunk"].tolist() == [v.rectangle for v in data.views]
    assert columns["op_tick"].tolist() == [o.tick for o in data.operators]


@settings(max_examples=20, deadline=None)
@given(graphs(), st.sampled_from((("static", ""), ("dynamic", ""), ("dynamic", "first_fit"))))
def test_all_columns_of_a_viewer_payload_come_back(graph: Graph, mode: tuple[str, str]) -> None:
    name, heap = mode
    _check(rectangles_of(engine.make_plan(graph, optimise=0).trace(name, heap=heap)), "a plan")


def test_names_that_hold_anything_come_back_from_a_viewer_payload() -> None:
    _check(
        rectangles_of(synthetic_trace(2 * len(HOSTILE), name=lambda i: HOSTILE[i % len(HOSTILE)])), "\udfff</script>"
    )


def test_sizes_beyond_32_bits_come_back() -> None:
    huge = rectangles_of(synthetic_trace(20))
    _check(evolve(huge, size=huge.size * 2**22, offset=huge.offset * 2**22), "huge")


def test_the_viewer_payload_is_deterministic() -> None:
    assert pack(rectangles_of(synthetic_trace(50)), "x") == pack(rectangles_of(synthetic_trace(50)), "x")


@pytest.mark.slow
def test_a_viewer_payload_of_100_000_tensors_takes_few_bytes() -> None:
    """A page of so many stays below 4 MB, which base64 makes of this."""
    assert len(pack(rectangles_of(synthetic_trace(100_000)), "x")) < 3_000_000
