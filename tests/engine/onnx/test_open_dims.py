"""ONNX models with open dimensions: one graph for all lengths, against onnxruntime and against fixed shapes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import Graph
from engine.api import Executable
from engine.onnx.seeded import seed_weights
from engine.text.errors import FeedError, ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, value

INT = np.int64
FEW = settings(max_examples=12, deadline=None)
LENGTHS = st.integers(1, 9)


def _ints(*numbers: int) -> Array:
    return np.asarray(numbers, INT)


def _random(shape: Sequence[int], seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


Compiled = tuple[Executable, Executable]
"""A graph as it was read, and with all passes."""


def _compiled(graph: Graph) -> Compiled:
    return engine.compile(graph, optimise=0), engine.compile(graph)


def _check(proto: Any, compiled: Compiled, feeds: Mapping[str, Array], *, exact: bool = True) -> None:
    """Checks outputs against onnxruntime's, and to the bit against the graph that was read for these very shapes.

    Passes may change last bits.
    """
    plain, optimised = (exe.run(dict(feeds)) for exe in compiled)
    fixed = engine.load_onnx(proto, shapes={name: array.shape for name, array in feeds.items()})
    same = engine.compile(fixed, optimise=0).run(dict(feeds))
    for (name, got), want in zip(plain.items(), run_onnxruntime(proto, feeds), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape, name
        largest = max(10.0, float(np.abs(want).max(initial=0))) if want.dtype.kind == "f" else 10.0
        for array in (got, optimised[name]):
            np.testing.assert_allclose(array, want, rtol=1e-4, atol=1e-6 * largest)  # sums round by their largest terms
        if exact:
            np.testing.assert_array_equal(got, same[name])


def _convolutions() -> Any:
    nodes = [
        node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", ["a", "s", "s", "s", "s"], ["b"]),
        node("Relu", ["b"], ["c"]),
        node("Conv", ["c", "w2"], ["d"], auto_pad="SAME_UPPER"),
        node("Add", ["c", "d"], ["e"]),
        node("Resize", ["e", "", "scales"], ["f"], mode="nearest"),
        node("MaxPool", ["f"], ["g"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        node("GlobalAveragePool", ["g"], ["h"]),
        node("Flatten", ["h"], ["i"]),
        node("Gemm", ["i", "w3"], ["j"]),
        node("Softmax", ["j"], ["y"], axis=-1),
    ]
    initializers = {
        "w1": _random((4, 3, 3, 3)),
        "w2": _random((4, 4, 3, 3)),
        "w3": _random((4, 5)),
        "s": np.ones(4, np.float32),
        "scales": np.asarray([1, 1, 2, 1.5], np.float32),
    }
    return model(nodes, [value("x", ("batch", 3, "h", "w"))], ["f", "y"], initializers)


CONVOLUTIONS = _convolutions()
EXE_CONVOLUTIONS = _compiled(engine.load_onnx(CONVOLUTIONS))


@pytest.mark.slow
@FEW
@given(batch=LENGTHS, h=st.integers(3, 20), w=st.integers(3, 20))
def test_onnx_convolutions_of_open_dimensions(batch: int, h: int, w: int) -> None:
    _check(CONVOLUTIONS, EXE_CONVOLUTIONS, {"x": _random((batch, 3, h, w))})


def _attention(heads: int, size: int) -> Any:
    """Returns attention as PyTorch exports it: shapes are read, gathered and joined; a mask is made of a range."""
    width = heads * size
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["batch"]),
        node("Gather", ["s", "one"], ["seq"]),
        node("Unsqueeze", ["batch", "axis0"], ["b1"]),
        node("Unsqueeze", ["seq", "axis0"], ["t1"]),
        node("Range", ["zero", "seq", "one"], ["r"]),
        node("Unsqueeze", ["r", "axis0"], ["keys"]),
        node("Unsqueeze", ["r", "axis1"], ["queries"]),
        node("Less", ["queries", "keys"], ["future"]),
        node("Where", ["future", "never", "nothing"], ["m"]),
        node("Concat", ["b1", "once", "t1", "t1"], ["mask_shape"], axis=0),
        node("Expand", ["m", "mask_shape"], ["mask"]),
        node("Concat", ["b1", "t1", "heads", "rest"], ["split"], axis=0),
        node("Cast", ["seq"], ["seq_float"], to=1),
        node("Sqrt", ["seq_float"], ["root"]),
        node("Concat", ["b1", "t1", "width"], ["joined"], axis=0),
    ]
    for name, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            node("MatMul", ["x", f"w{name}"], [f"{name}0"]),
            node("Reshape", [f"{name}0", "split"], [f"{name}1"]),
            node("Transpose", [f"{name}1"], [name], perm=perm),
        ]
    nodes += [
        node("MatMul", ["q", "k"], ["scores"]),
        node("Div", ["scores", "root"], ["scaled"]),
        node("Add", ["scaled", "mask"], ["masked"]),
        node("Softmax", ["masked"], ["p"], axis=-1),
        node("MatMul", ["p", "v"], ["o"]),
        node("Transpose", ["o"], ["turned"], perm=[0, 2, 1, 3]),
        node("Reshape", ["turned", "joined"], ["y"]),
        node("Size", ["y"], ["count"]),
    ]
    initializers = {
        **{"zero": np.asarray(0), "one": np.asarray(1), "axis0": _ints(0), "axis1": _ints(1), "once": _ints(1)},
        **{"never": np.float32(-1e9), "nothing": np.float32(0)},
        **{"heads": _ints(heads), "rest": _ints(-1), "width": _ints(width)},
        **{f"w{n}": _random((width, width), i) for i, n in enumerate("qkv")},
    }
    return model(nodes, [value("x", ("batch", "seq", width))], ["y", "mask", "joined", "count"], initializers)


ATTENTION = _attention(2, 4)
EXE_ATTENTION = _compiled(engine.load_onnx(ATTENTION))


@FEW
@given(batch=LENGTHS, seq=LENGTHS)
def test_onnx_attention_with_a_mask_of_open_length(batch: int, seq: int) -> None:
    _check(ATTENTION, EXE_ATTENTION, {"x": _random((batch, seq, 8))})


def test_shapes_that_are_calculated_leave_no_operator() -> None:
    """Only the mask is large enough to be one: what it is made of is known when the lengths are."""
    kept = schema_names(engine.load_onnx(ATTENTION))
    assert not {"gather", "unsqueeze", "cast", "sqrt", "arange", "concat"} & set(kept)
    assert [s.split("_")[0] for s in kept[:3]] == ["less", "where", "expand"]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 5]), LENGTHS, LENGTHS)
def test_onnx_attention_of_open_lengths(heads: int, size: int, batch: int, seq: int) -> None:
    proto = _attention(heads, size)
    _check(proto, _compiled(engine.load_onnx(proto)), {"x": _random((batch, seq, heads * size))})


CHAINS = {
    "flatten what is left": [node("Shape", ["x"], ["s"]), node("Slice", ["s", "i0", "i1"], ["b"]),
                             node("Concat", ["b", "minus"], ["t"], axis=0), node("Reshape", ["x", "t"])],
    "halves": [node("Shape", ["x"], ["s"]), node("Gather", ["s", "c1"], ["n"]), node("Div", ["n", "c2"], ["h"]),
               node("Unsqueeze", ["h", "i0"], ["h1"]), node("Slice", ["x", "i0", "h1", "i1"])],
    "what is behind": [node("Shape", ["x"], ["s"]), node("Gather", ["s", "c1"], ["n"]), node("Sub", ["n", "c2"], ["m"]),
                       node("Unsqueeze", ["m", "i0"], ["m1"]), node("Slice", ["x", "m1", "far", "i1"])],
    "zeros like": [node("Shape", ["x"], ["s"]), node("ConstantOfShape", ["s"], ["z"]), node("Add", ["x", "z"])],
    "ones in front": [node("Shape", ["x"], ["s"]), node("ConstantOfShape", ["s"], ["z"]),
                      node("Concat", ["z", "x"], axis=1)],
    "split in two": [node("Concat", ["x", "x"], ["d"], axis=1), node("Split", ["d"], ["a", "b"], axis=1),
                     node("Sub", ["a", "b"])],
    "where it is -1": [node("Shape", ["x"], ["s"]), node("Equal", ["want", "minus"], ["e"]),
                       node("Where", ["e", "s", "want"], ["t"]), node("Expand", ["x", "t"])],
    "one hot": [node("ArgMax", ["x"], ["i"], axis=1, keepdims=0), node("Shape", ["x"], ["s"]),
                node("Gather", ["s", "i1"], ["n"]), node("OneHot", ["i", "n", "values"])],
    "tiles": [node("Shape", ["x"], ["s"]), node("Gather", ["s", "c1"], ["n"]), node("Unsqueeze", ["n", "i0"], ["n1"]),
              node("Concat", ["n1", "i1"], ["r"], axis=0), node("Tile", ["x", "r"])],
    "padded to even": [node("Shape", ["x"], ["s"]), node("Mod", ["s", "i2"], ["odd"]),
                       node("Concat", ["i0", "i0", "odd"], ["p"], axis=0), node("Pad", ["x", "p"])],
    "positions": [node("Shape", ["x"], ["s"]), node("Gather", ["s", "c1"], ["n"]),
                  node("Range", ["c0", "n", "c2"], ["r"]), node("Gather", ["x", "r"], axis=1)],
    "largest": [node("Shape", ["x"], ["s"]), node("Gather", ["s", "i1"], ["n"]), node("Min", ["n", "i2"], ["k"]),
                node("TopK", ["x", "k"], ["y", "at"])],
    "scattered shape": [node("Shape", ["x"], ["s"]), node("ScatterElements", ["s", "i0", "minus"], ["t"]),
                        node("Reshape", ["x", "t"], ["u"]), node("Neg", ["u"])],
    "sizes": [node("Unsqueeze", ["x", "i01"], ["u"]), node("Shape", ["x"], ["s"]), node("Mul", ["s", "i2"], ["d"]),
              node("Concat", ["ones", "d"], ["z"], axis=0), node("Resize", ["u", "", "", "z"], ["v"], mode="linear"),
              node("Squeeze", ["v", "i01"])],
    "the same twice": [node("Shape", ["x"], ["s"]), node("Reshape", ["x", "s"], ["u"]), node("Flatten", ["u"])],
    "triangle": [node("Trilu", ["x"], ["u"], upper=0), node("CumSum", ["u", "c1"])],
    "many rows": [node("Shape", ["x"], ["s"]), node("ReduceProd", ["s"], ["n"], keepdims=0),
                  node("Range", ["c0", "n", "c1"], ["r"]), node("Reshape", ["r", "s"], ["u"]),
                  node("Cast", ["u"], ["v"], to=1), node("Mul", ["v", "x"])],
}  # fmt: skip
GIVEN = {
    **{"i0": _ints(0), "i1": _ints(1), "i2": _ints(2), "c0": np.asarray(0), "c1": np.asarray(1), "c2": np.asarray(2)},
    **{"minus": _ints(-1), "far": _ints(2**62), "want": _ints(-1, -1), "values": np.asarray([0, 1], np.float32)},
    **{"ones": _ints(1, 1), "i01": _ints(0, 1)},
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_that_calculates_a_shape(name: str) -> None:
    nodes = CHAINS[name]
    used = {i for n in nodes for i in n.input}
    proto = model(nodes, [value("x", ("n", "m"))], [nodes[-1].output[0]], {k: v for k, v in GIVEN.items() if k in used})
    exe = _compiled(engine.load_onnx(proto))
    for n, m in ((2, 3), (6, 4), (3, 9), (5, 2), (2, 3)):
        _check(proto, exe, {"x": _random((n, m))})
    assert all(e.stage_report().cache.misses == 4 for e in exe)


def test_two_inputs_share_the_lengths_of_a_name() -> None:
    proto = model([node("MatMul", ["a", "b"])], [value("a", ("n", "k")), value("b", ("k", "m"))])
    exe = engine.compile(engine.load_onnx(proto))
    for n, k, m in ((1, 1, 1), (2, 3, 4), (5, 0, 2), (0, 4, 3)):
        feeds = {"a": _random((n, k)), "b": _random((k, m))}
        assert exe.run(dict(feeds))["y"].shape == (n, m)
    with pytest.raises(FeedError, match=r"input 'b' has shape \(4, 4\)"):
        exe.run({"a": _random((2, 3)), "b": _random((4, 4))})


def test_names_that_must_be_equal_or_a_number_are() -> None:
    """Some exporters lose the names of dimensions."""
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "m"], ["k"]), node("Concat", ["k", "z"], axis=1)]
    inputs = [value("x", (None, None, None)), value("m", ("mb", "mt", 5)), value("z", ("zb", "zt", None))]
    proto = model(nodes, inputs, initializers={"w": _random((7, 5))})
    graph = engine.load_onnx(proto)
    assert [str(v.spec) for v in graph.inputs.values()] == [
        "float32[x_0,x_1,7]",
        "float32[x_0,x_1,5]",
        "float32[x_0,zt,5]",
    ]
    exe = _compiled(graph)
    for b, t, u in ((1, 1, 1), (2, 3, 4), (4, 1, 2)):
        _check(proto, exe, {"x": _random((b, t, 7)), "m": _random((b, t, 5)), "z": _random((b, u, 5))})


def test_a_dimension_that_is_squeezed_is_one() -> None:
    proto = model([node("Squeeze", ["x", "at"])], [value("x", ("n", "m", 3))], initializers={"at": _ints(1)})
    graph = engine.load_onnx(proto)
    assert str(graph.inputs["x"].spec) == "float32[n,1,3]"
    _check(proto, _compiled(graph), {"x": _random((4, 1, 3))})


def test_lengths_that_a_decision_rules_out_are_refused_with_the_decision() -> None:
    """Split in two equal parts needs an even length."""
    proto = model([node("Split", ["x"], ["y", "z"], axis=0)], [value("x", ("n", 2))], ["y", "z"])
    exe = engine.compile(engine.load_onnx(proto))
    assert exe.run({"x": _random((6, 2))})["z"].shape == (3, 2)
    with pytest.raises(FeedError, match="do not fit"):
        exe.run({"x": _random((5, 2))})


def test_onnx_split_of_an_open_length_into_uneven_parts() -> None:
    proto = model([node("Split", ["x"], ["a", "b", "c"], axis=0, num_outputs=3)], [value("x", ("n", 2))], list("abc"),
                  opset=18)  # fmt: skip
    exe = _compiled(engine.load_onnx(proto))
    for n in (3, 5, 7, 12):
        _check(proto, exe, {"x": _random((n, 2))})


def test_onnx_operators_that_need_known_lengths_say_so() -> None:
    sizes = {"z": _ints(1, 1, 4, 4)}
    keep = node("Resize", ["x", "", "", "z"], keep_aspect_ratio_policy="not_larger")
    with pytest.raises(UnsupportedError, match=r"need lengths that are known; give shapes="):
        engine.load_onnx(model([keep], [value("x", (1, 1, "h", "w"))], initializers=sizes, opset=18))
    scaled = [node("Shape", ["x"], ["s"]), node("Cast", ["s"], ["f"], to=1), node("Upsample", ["x", "f"])]
    with pytest.raises(UnsupportedError, match=r"'scales' must be known when the model is read.*through shapes="):
        engine.load_onnx(model(scaled, [value("x", (1, 1, "h", "w"))], opset=9))
    wrong = model([node("Add", ["x", "x2"])], [value("x", ("n", 3)), value("x2", ("n", 2))])
    with pytest.raises(
        ModelError, match=r"node 'Add_0' .*\(dimensions n are left open; shapes= or --shape gives them numbers\)"
    ):
        engine.load_onnx(wrong)


def test_weights_are_calibrated_for_lengths_that_are_known() -> None:
    with pytest.raises(ModelError, match="give shapes= for these: batch, h, w"):
        seed_weights(CONVOLUTIONS)
    seeded = seed_weights(CONVOLUTIONS, shapes={"x": (1, 3, 8, 8)})
    assert engine.load_onnx(seeded).inputs["x"].spec.is_symbolic
