"""Memory snapshots for PyTorch's viewer: what its pages rely on, as they are no part of PyTorch's wheel.

The pickle is made of what their reader knows, and whichever event is looked at, each live block lies in a segment and
on no other block.
"""

import pickle
import pickletools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from allocator.heaps import HEAPS
from engine import Graph, Trace, zoo
from engine.exporters import pytorch
from engine.trace.trace import GROW
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.traces.exported_files import exported
from tests.helpers.traces.sample_traces import any_traces, arrivals, peak

_PARTS = (
    ("PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWFALSE", "NEWTRUE"),
    ("MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"),
    ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE"),
    ("EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"),
    ("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
)
READ_BY_PAGES = frozenset(name for part in _PARTS for name in part)
"""Operations that `unpickle` of torch/utils/viz/MemoryViz.js knows."""
Snapshot = dict[str, Any]


def _snapshot(trace: Trace) -> Snapshot:
    snapshot: Snapshot = pickle.loads(exported("pytorch", trace))
    return snapshot


@settings(max_examples=20, deadline=None)
@given(any_traces())
def test_the_pickle_is_one_that_pages_can_read(trace: Trace) -> None:
    operations = list(pickletools.genops(exported("pytorch", trace)))
    assert {operation.name for operation, _, _ in operations} <= READ_BY_PAGES
    assert [arg for operation, arg, _ in operations if operation.name == "PROTO"] == [2]
    numbers = [arg for _, arg, _ in operations if isinstance(arg, int)]
    assert all(abs(number) < 2**53 for number in numbers)  # a number of JavaScript


@settings(max_examples=30, deadline=None)
@given(any_traces())
def test_live_blocks_lie_in_segments_and_apart_and_peak_as_the_trace_does(trace: Trace) -> None:
    assert _replayed(_snapshot(trace)) == peak(trace)


def _replayed(snapshot: Snapshot) -> int:
    """Returns the most bytes that are in blocks after any event."""
    [events] = snapshot["device_traces"]
    blocks, segments, most = dict[int, int](), dict[int, int](), 0
    for event in events:
        address, size = event["addr"], event["size"]
        match event["action"]:
            case "alloc":
                assert address not in blocks
                blocks[address] = size
            case "free_completed":
                assert blocks.pop(address) == size
            case "segment_alloc":
                segments[address] = size
            case "segment_map":
                [(start, length)] = segments.items()
                assert address == start + length
                segments[start] += size
        _check_apart(blocks, segments)
        most = max(most, sum(blocks.values()))
    assert {s["address"]: s["total_size"] for s in snapshot["segments"]} == segments
    _check_end(snapshot["segments"], blocks)
    return most


def _check_apart(blocks: dict[int, int], segments: dict[int, int]) -> None:
    top = 0
    for address, size in sorted(blocks.items()):
        assert address >= top and size
        top = address + size
        assert any(start <= address and top <= start + length for start, length in segments.items())


def _check_end(segments: list[Snapshot], blocks: dict[int, int]) -> None:
    """Checks that blocks tile their segment, and that what is alive in the end is marked."""
    live = dict[int, int]()
    for segment in segments:
        top = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == top and block["size"]
            top += block["size"]
            if block["state"] == "active_allocated":
                live[block["address"]] = block["size"]
        assert top == segment["address"] + segment["total_size"]
    assert live == blocks


@settings(max_examples=20, deadline=None)
@given(graphs(), st.sampled_from(sorted(HEAPS)))
def test_segments_are_what_a_heap_gets(graph: Graph, heap: str) -> None:
    trace = engine.make_plan(graph, optimise=0).trace("dynamic", heap=heap)
    snapshot = _snapshot(trace)
    assert _replayed(snapshot) == peak(trace)
    [events] = snapshot["device_traces"]
    grown = [e["size"] for e in events if e["action"] in {"segment_alloc", "segment_map"}]
    if heap == "refcount":  # which knows no addresses, so that they are laid out
        assert sum(grown) >= peak(trace) and len(grown) == bool(peak(trace))
    else:
        assert grown == [e.bytes for e in trace if e.kind == GROW]


def test_frames_tell_tensor_operator_and_model_even_of_names_that_readers_leave_out() -> None:
    plan = engine.make_plan(zoo.squeezenet(), optimise=0)
    [events] = _snapshot(plan.trace())["device_traces"]
    allocs = [e for e in events if e["action"] == "alloc"]
    for event, shown in zip((e for e in arrivals(plan.trace()) if e.bytes), allocs, strict=True):
        tensor, operator, model = shown["frames"]
        assert tensor["name"] == f"{event.tensor} [{event.shape}] {event.dtype} {event.role}"
        assert operator["name"].startswith(event.operator) and model["name"] == "squeezenet"
    assert pytorch._not_hidden("x_start") == "x_star\u2060t"
