"""A small model must not become millions of operators or gigabytes of arrays while it is read."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from engine.api import compile_graph
from engine.onnx.load import load_onnx
from engine.text.errors import UnsupportedError
from tests.helpers.onnx.small_models import model, node, value

MEBIBYTE = 2**20
X = value("x", (2,))


@contextmanager
def at_most(nbytes: int) -> Iterator[None]:
    """Fails where more memory than this is held at once."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < nbytes


def _function(name: str, nodes: list[Any]) -> Any:
    return helper.make_function("own", name, ["x"], ["y"], nodes, [helper.make_opsetid("", 17)])


def _calls(function: str, of: str, to: str) -> Any:
    return helper.make_node(function, [of], [to], domain="own")


def _with_functions(nodes: list[Any], functions: list[Any], **options: Any) -> Any:
    proto = model(nodes, [X], functions=functions, **options)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    return proto


def _bomb(depth: int, leaf: Any) -> Any:
    """Returns a model of functions that call the one below twice."""
    functions = [_function("f0", [leaf])]
    for i in range(1, depth + 1):
        functions.append(_function(f"f{i}", [_calls(f"f{i - 1}", "x", "t"), _calls(f"f{i - 1}", "t", "y")]))
    return _with_functions([_calls(f"f{depth}", "x", "y")], functions)


def test_functions_that_call_each_other_twice_end_in_an_error() -> None:
    proto = _bomb(30, node("Relu", ["x"]))
    assert proto.ByteSize() < 4096
    with pytest.raises(UnsupportedError, match="more than 20000 and 10 for each node of the model"):
        load_onnx(proto)


def test_functions_may_be_called_often() -> None:
    assert len(load_onnx(_bomb(10, node("Relu", ["x"]))).operators) == 1024


def test_names_of_functions_inside_each_other_are_counted() -> None:
    long = node("Relu", ["x"], name="n" * MEBIBYTE)
    calls = [_calls("f", "x" if i == 0 else f"t{i - 1}", "y" if i == 999 else f"t{i}") for i in range(1000)]
    calls[0].name = "c" * MEBIBYTE
    inner = _function("f", [node("Relu", ["x"], [f"{i}"]) for i in range(999)] + [long])
    with at_most(900 * MEBIBYTE), pytest.raises(UnsupportedError, match="bytes of names and constants"):
        load_onnx(_with_functions(calls, [inner]))


def test_constants_of_functions_are_counted_each_time_that_they_are_read() -> None:
    tensor = numpy_helper.from_array(np.zeros(MEBIBYTE, np.uint8))
    body = [node("Constant", [], ["c"], value=tensor), node("Relu", ["x"], ["y"])]
    calls = [_calls("f", "x" if i == 0 else f"t{i - 1}", "y" if i == 999 else f"t{i}") for i in range(1000)]
    with at_most(900 * MEBIBYTE), pytest.raises(UnsupportedError, match="bytes of names and constants"):
        load_onnx(_with_functions(calls, [_function("f", body)]))


def _loop(trips: int, body_nodes: list[Any], outer: str = "x") -> Any:
    body = helper.make_graph(
        body_nodes,
        "body",
        [value("i", (), np.int64), value("c", (), np.bool_), value("s", None)],
        [onnx.ValueInfoProto(name="c"), onnx.ValueInfoProto(name="out")],
    )
    return node("Loop", ["trips", "", outer], body=body), {"trips": np.asarray(trips)}


@pytest.mark.parametrize("trips", [10**4 + 1, 2**40, 2**63 - 1])
@pytest.mark.parametrize("nodes", [[node("Concat", ["s", "s"], ["out"], axis=0)], [node("Identity", ["s"], ["out"])]])
def test_a_long_loop_is_one_operator(trips: int, nodes: list[Any]) -> None:
    loop, initializers = _loop(trips, nodes)
    (operator,) = load_onnx(model([loop], [X], initializers=initializers)).operators
    assert operator.schema.name in ("loop", "loop_late")


def test_a_long_loop_of_constants_is_one_operator() -> None:
    loop, initializers = _loop(2**40, [node("Relu", ["s"], ["out"])], outer="w")
    proto = model([loop], [], initializers={**initializers, "w": np.ones(2, np.float32)})
    assert [o.schema.name for o in load_onnx(proto).operators] == ["loop"]


def test_a_scan_of_many_empty_rows_is_one_operator() -> None:
    body = helper.make_graph(
        [node("Identity", ["row"], ["out"])], "body", [value("row", (0,))], [onnx.ValueInfoProto(name="out")]
    )
    nodes = [node("ConstantOfShape", ["s"], ["rows"]), node("Scan", ["rows"], body=body, num_scan_inputs=1)]
    graph = load_onnx(model(nodes, [], initializers={"s": np.asarray([2**40, 0])}))
    assert [o.schema.name for o in graph.operators] == ["scan"]


def test_what_a_chain_of_lengths_depends_on_is_told_once_for_a_body() -> None:
    names = ["s", *(f"s{i}" for i in range(14))]
    nodes = [node("Shape", ["x"], ["s"]), *(node("Mul", [a, a], [b]) for a, b in pairwise(names))]
    body = [node("Cast", [names[-1]], ["f"], to=1), node("Add", ["s", "f"], ["out"])]
    loop, initializers = _loop(5, body)
    graph = load_onnx(model([*nodes, loop], [value("x", ("n",))], initializers=initializers))
    assert [str(d) for d in graph.operators[-1].attrs["body"].dims] == ["n", "n"]


def test_the_run_decides_only_so_many_sizes() -> None:
    proto = model([node("Expand", ["x", "s"])], [X, value("s", (10**6,), np.int64)])
    with at_most(300 * MEBIBYTE), pytest.raises(UnsupportedError, match="decides 1000000 sizes"):
        load_onnx(proto)


@pytest.mark.parametrize("size", [10**6, 2**24])
def test_a_long_constant_decides_no_shape(size: int) -> None:
    nodes = [node("ConstantOfShape", ["n"], ["s"], value=numpy_helper.from_array(np.ones(1, np.int64)))]
    proto = model([*nodes, node("Expand", ["x", "s"])], [X], initializers={"n": np.asarray([size])})
    with at_most(300 * MEBIBYTE), pytest.raises(UnsupportedError, match=f"{size} (elements|sizes)"):
        load_onnx(proto)
    with at_most(300 * MEBIBYTE), pytest.raises(UnsupportedError, match=r"elements|too large to be computed now"):
        load_onnx(proto, stages=False)


def test_repeated_elements_are_kept_once() -> None:
    nodes = [node("ConstantOfShape", ["n"], ["c"]), node("Mul", ["c", "x"], ["y"])]
    proto = model(nodes, [value("x", (1,))], initializers={"n": np.asarray([10 * MEBIBYTE])})
    with at_most(16 * MEBIBYTE):
        graph = load_onnx(proto)
    (array,) = graph.constants.values()
    assert array.nbytes == 40 * MEBIBYTE and not array.any() and array.flags.c_contiguous


@pytest.mark.parametrize("doublings", [7, 14, 30])
def test_constants_that_grow_are_computed_only_while_they_are_small(doublings: int) -> None:
    names = ["w", *(f"h{i}" for i in range(doublings - 1)), "y"]
    nodes = [node("Concat", [a, a], [b], axis=0) for a, b in pairwise(names)]
    initializers = {"w": np.ones(2**16, np.float32)}
    with at_most(900 * MEBIBYTE):
        graph = load_onnx(model(nodes, [], initializers=initializers))
        assert graph.outputs["y"].shape == (2 ** (16 + doublings),)
        assert (len(graph.operators) == 0) == (doublings == 7)


def test_shapes_of_large_constants_are_known() -> None:
    nodes = [
        node("ConstantOfShape", ["n"], ["large"]),
        node("Shape", ["large"], ["s"]),
        node("Expand", ["x", "s"]),
    ]
    proto = model(nodes, [value("x", (1,))], initializers={"n": np.asarray([2**40])})
    assert load_onnx(proto).outputs["y"].shape == (2**40,)


@pytest.mark.slow
def test_a_constant_that_is_too_large_to_be_computed_at_once_is_computed_by_the_run() -> None:
    nodes = [node("ConstantOfShape", ["n"], ["large"]), node("ReduceSum", ["large"], ["y"], keepdims=0)]
    fill = numpy_helper.from_array(np.ones(1, np.float32))
    nodes[0].attribute.append(helper.make_attribute("value", fill))
    graph = load_onnx(model(nodes, [], initializers={"n": np.asarray([11, 2**24])}))
    assert len(graph.operators) == 2
    assert compile_graph(graph, optimise=0).run({})["y"] == 11 * 2**24
