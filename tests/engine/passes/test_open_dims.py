"""Passes on graphs with open dimensions and on bodies: what they change, and that outputs stay near at many lengths."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.passes import verify
from engine.passes.lengths import bodies_in
from engine.stages.bind import input_shapes
from engine.text.errors import EngineError, PassError
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.graphs.pass_checks import check_near, count
from tests.helpers.graphs.staged_networks import Net, feeds_for, nets
from tests.helpers.graphs.symbolic_graphs import LENGTHS, symbolic
from tests.helpers.onnx.open_models import HEADS, WIDTH, branches, decoder, detector, encoder, loops
from tests.helpers.onnx.small_models import run_onnxruntime

Feeds = Mapping[str, Array]
TOLERANCE = 1e-4


def _random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _image(h: int, w: int) -> Feeds:
    return {"image": _random(1, 3, h, w)}


def _tokens(batch: int, seq: int) -> Feeds:
    return {"x": _random(batch, seq, WIDTH)}


def _step(batch: int, new: int, past: int) -> Feeds:
    names = [f"past_{kind}{i}" for i in range(2) for kind in "kv"]
    return {"x": _random(batch, new, WIDTH)} | {n: _random(batch, HEADS, past, WIDTH // HEADS) for n in names}


def _branch(condition: bool, batch: int, h: int, w: int) -> Feeds:
    return {"c": np.asarray(condition), "x": _random(batch, 3, h, w)}


def _turns(n: int, batch: int) -> Feeds:
    return {"n": np.asarray(n), "x": _random(batch, WIDTH)}


def _rows(n: int, batch: int) -> Feeds:
    return {"x": _random(batch, WIDTH), "rows": _random(n, batch, WIDTH)}


CASES: Mapping[str, tuple[Any, tuple[Feeds, ...]]] = {
    "detector": (detector(), (_image(32, 48), _image(33, 21), _image(64, 64), _image(16, 100), _image(32, 48))),
    "encoder": (encoder(), (_tokens(1, 1), _tokens(2, 7), _tokens(3, 64), _tokens(1, 130), _tokens(5, 2))),
    "decoder": (decoder(), (_step(1, 5, 0), _step(1, 1, 5), _step(1, 1, 6), _step(2, 3, 64), _step(3, 1, 1))),
    "if": (branches(), (_branch(True, 1, 5, 5), _branch(False, 2, 6, 3), _branch(True, 3, 1, 9))),
    "loop": (loops("Loop"), (_turns(3, 1), _turns(1, 4), _turns(2, 2))),
    "scan": (loops("Scan"), (_rows(3, 1), _rows(1, 4), _rows(5, 2))),
}


def _every_operator(graph: Graph) -> Counter[str]:
    """Returns how many operators each schema has, in bodies as well."""
    bodies = (body for operator in graph.operators for body in bodies_in(operator))
    return sum(map(_every_operator, bodies), count(graph))


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_an_open_network_is_near_onnxruntime_at_each_level(name: str, level: int) -> None:
    proto, feeds = CASES[name]
    graph = engine.load_onnx(proto)
    text, guards = graph.text(), graph.guards
    optimised = engine.optimise(graph, level)
    assert (graph.text(), graph.guards) == (text, guards)
    assert engine.optimise(optimised, level) is optimised
    plain, exe = engine.compile(graph, optimise=0), engine.compile(optimised, optimise=0)
    for arrays in feeds:
        outputs = {n: a.copy() for n, a in exe.run(dict(arrays)).items()}
        check_near(outputs, plain.run(dict(arrays)), TOLERANCE)
        check_near(outputs, dict(zip(outputs, run_onnxruntime(proto, arrays), strict=True)), TOLERANCE)


def test_a_detector_of_open_size_keeps_no_batch_normalisation() -> None:
    graph = engine.load_onnx(detector(blocks=3))
    before, after = count(graph), count(engine.optimise(graph))
    assert before["batch_norm"] == 8 and after["batch_norm"] == 0
    assert after["nhwc_conv"] == before["conv"] and after["conv"] + after["relu"] <= 1  # one relu is no convolution's


@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_a_transformer_of_open_lengths_is_recognised_and_fused(name: str) -> None:
    graph = engine.load_onnx(CASES[name][0])
    after = count(engine.optimise(graph))
    assert after["layer_norm"] == (4 if name == "encoder" else 5) and after["softmax"] == 2
    assert after["fused_matmul"] >= 2 * 6 + 2 and not after["matmul"] - 2  # two products for each attention's values
    assert not {"erf", "gelu", "exp", "sqrt", "reduce_mean", "reduce_max", "div"} & after.keys()


@pytest.mark.parametrize("name", ["if", "loop", "scan"])
def test_bodies_are_optimised(name: str) -> None:
    graph = engine.load_onnx(CASES[name][0])
    before, after = _every_operator(graph), _every_operator(engine.optimise(graph))
    if name == "if":
        assert before["batch_norm"] == 2 and not after["batch_norm"] + after["relu"]
    else:
        assert before["erf"] == 1 and not after["erf"] + after["gelu"] + after["matmul"] and after["fused_matmul"] == 1


def test_bodies_of_a_graph_of_known_sizes_are_optimised() -> None:
    graph = engine.bind(engine.load_onnx(branches()), {"batch": 2, "h": 6, "w": 3})
    after = engine.optimise(graph)
    assert _every_operator(graph)["batch_norm"] == 2 and not _every_operator(after)["batch_norm"]
    feeds = dict(_branch(False, 2, 6, 3))
    check_near(engine.compile(after, optimise=0).run(feeds), engine.compile(graph, optimise=0).run(feeds), TOLERANCE)


def test_one_plan_for_ranges_of_lengths_is_of_the_optimised_graph() -> None:
    graph = engine.load_onnx(encoder())
    exe = engine.compile(graph, length_ranges={"batch": (1, 3), "seq": (1, 70)})
    plain = engine.compile(graph, optimise=0)
    for feeds in (_tokens(1, 1), _tokens(3, 70), _tokens(2, 33)):
        check_near(exe.run(dict(feeds)), plain.run(dict(feeds)), TOLERANCE)
    (stage,) = exe.stages
    assert {call.name for call in stage.plan.lowered.calls}.isdisjoint({"erf", "reduce_mean"})


def _outputs(exe: engine.Executable, feeds: Feeds) -> dict[str, Array]:
    return {name: array.copy() for name, array in exe.run(dict(feeds)).items()}


@settings(max_examples=12, deadline=None)
@given(st.data(), st.sampled_from([1, 3]), LENGTHS)
def test_random_open_graphs_stay_near(data: st.DataObject, level: int, lengths: dict[str, int]) -> None:
    graph = symbolic(lambda n: data.draw(st.integers(0, n - 1)), 6)
    guards = graph.guards
    after = engine.optimise(graph, level)
    assert graph.guards == guards
    rng = np.random.default_rng(sum(lengths.values()))
    shapes = input_shapes(graph, {name: lengths[name] for name in graph.symbols})
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    try:
        wanted = _outputs(engine.compile(graph, optimise=0), feeds)
    except (EngineError, OpError):  # a window does not fit, or a guard refuses these lengths
        return
    check_near(_outputs(engine.compile(after, optimise=0), feeds), wanted)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(nets(6), st.sampled_from([1, 3]), st.integers(0, 2**16))
def test_random_networks_whose_data_decide_sizes_stay_equal(net: Net, level: int, seed: int) -> None:
    exe = engine.compile(engine.optimise(net.graph, level), optimise=0)
    for turn in range(2):
        feeds = feeds_for(seed + turn)
        wanted = net.wanted(feeds)
        for name, array in exe.run(dict(feeds)).items():
            np.testing.assert_array_equal(array, wanted[name])


def test_a_slice_that_may_cut_something_off_stays() -> None:
    """In all samples, a length is below 10**7."""
    graph = Graph("cut")
    x = graph.input("x", ("n",), "int8")
    graph.output(ops.neg(x[: 10**7]), "y")
    graph.output(ops.neg(x[:]), "z")
    after = engine.optimise(graph)
    assert count(after) == {"slice": 1, "neg": 2}
    feeds = {"x": np.ones(10**7 + 1, np.int8)}
    outputs = engine.compile(after, optimise=0).run(feeds)
    assert outputs["y"].size == 10**7 and outputs["z"].size == 10**7 + 1


def _guarded() -> Graph:
    """Returns a graph that was built for lengths that differ, and whose rows data decide."""
    graph = Graph("guarded")
    x, y = graph.input("x", ("n", 4)), graph.input("y", ("m", 4))
    total = ops.relu(ops.identity(x))
    assert x.shape[0] != y.shape[0]
    rows = ops.slice(ops.neg(ops.neg(y)), [0], [graph.data_dim(ops.count_nonzero(x[:, 0] > 0.0))], [0])
    assert rows.shape[0] != 3
    graph.output(ops.relu(rows), "rows")
    graph.output(total, "total")
    return graph


@pytest.mark.parametrize("level", [1, 2, 3])
def test_each_guard_is_checked_after_passes_as_before(level: int) -> None:
    graph = _guarded()
    after = engine.optimise(graph, level)
    assert len(after.operators) < len(graph.operators)
    assert [str(g) for g in after.guards] == [str(g) for g in graph.guards]
    plain, exe = engine.compile(graph, optimise=0), engine.compile(after, optimise=0)
    for n, m, positive in ((5, 6, 2), (5, 6, 3), (6, 6, 2), (2, 9, 1)):
        feeds = {"x": np.full((n, 4), -1, np.float32), "y": np.ones((m, 4), np.float32)}
        feeds["x"][:positive] = 1
        if n == m or positive == 3:
            for each in (plain, exe):
                with pytest.raises(EngineError, match="must differ from"):
                    each.run(feeds)
        else:
            check_near(exe.run(feeds), plain.run(feeds))


def _lose_a_guard(graph: Any) -> None:
    graph._early_guards = graph._early_guards[1:]


def _check_a_guard_late(graph: Any) -> None:
    graph._early_guards = tuple(evolve(g, position=len(graph.operators)) for g in graph._early_guards)


def _lose_what_decides(graph: Any) -> None:
    names = [v.name for v in graph.vars.values()]
    (decisive,) = (n for n in names if n.startswith("count_nonzero"))
    object.__setattr__(graph.vars[decisive], "name", "renamed")


def _other_length(graph: Any) -> None:
    index = next(i for i, op in enumerate(graph._operators) if op.schema.name == "slice" and op.attrs["axes"] == (0,))
    operator = graph._operators[index]
    attrs = dict(operator.attrs) | {"ends": (1,)}
    graph._operators[index] = evolve(operator, signature=evolve(operator.signature, attrs=attrs))


FAULTS: Mapping[Callable[[Any], None], str] = {
    _lose_a_guard: "nobody checks any more",
    _check_a_guard_late: "behind operators that rely on it",
    _lose_what_decides: "not known there|are not the ones",
    _other_length: "gives|does not take",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.__name__).strip("_"))
def test_verify_refuses_each_fault_of_open_dimensions(fault: Callable[[Any], None]) -> None:
    graph = _guarded()
    after = engine.optimise(graph, 1)
    verify(graph, after)
    fault(after)
    with pytest.raises(PassError, match=FAULTS[fault]):
        verify(graph, after)
