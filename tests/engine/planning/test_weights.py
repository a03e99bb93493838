"""The three figures of weights, which a plan tells before anything runs, against the arrays that are in memory then."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import engine
import ops
from engine import Graph, zoo
from engine.api import Executable
from engine.control.body import PlannedBody
from engine.executor.binding import Packed
from engine.graph.deferred import Deferred, sources
from engine.lower.calls import Lowered
from engine.text.errors import KernelError
from engine.zoo.encoder import EncoderSize
from ops.schema.backends import BACKENDS, NUMBA, NUMPY, ONEDNN
from ops.schema.body import bodies
from ops.schema.schema import Kernel, OpSchema
from ops.tensor.layout import address_of
from ops.tensor.spec import Array
from tests.helpers.graphs.control_graphs import build_control
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.onnx.onnx_writer import to_onnx
from tests.helpers.onnx.quantised_models import quantised_model


def _planned_bodies(lowered: Lowered) -> list[PlannedBody]:
    operators = chain.from_iterable(call.operators for call in lowered.calls)
    inside = [body for op in operators for body in bodies(op.schema, op.attrs) if isinstance(body, PlannedBody)]
    return inside + [deeper for body in inside for deeper in _planned_bodies(body.plan.lowered)]


def _packed(exe: Executable) -> Iterator[tuple[Lowered, Packed]]:
    executor: Any = exe.executor
    yield executor.plan.lowered, executor._packed
    for body in _planned_bodies(executor.plan.lowered):
        yield body.plan.lowered, body.packed


def _sum(arrays: Iterator[Array]) -> int:
    """Returns the bytes of some arrays; arrays at one address are one."""
    return sum({(address_of(a), a.nbytes): a.nbytes for a in arrays}.values())


def _packed_arrays(exe: Executable) -> Iterator[Array]:
    for lowered, packed in _packed(exe):
        yield from chain.from_iterable(packed.arrays.values())
        graph_entries = {id(e) for e in lowered.graph.constants.entries.values()}
        yield from (a for v, a in packed.held.items() if id(lowered.constants.entries[v]) not in graph_entries)


def _constants(exe: Executable) -> Iterator[Array]:
    """Yields the constants that are in memory: stored arrays, what deferred ones are computed from, and results."""
    for lowered, _ in _packed(exe):
        for entry in lowered.constants.entries.values():
            yield from sources(entry)
            if isinstance(entry, Deferred):
                existing = entry._made()
                yield from () if existing is None else (existing,)


def check_figures(graph: Graph, runs: int = 0, **options: Any) -> Executable:
    """Checks that the plan tells the bytes that are in memory when the graph is bound, and after a run."""
    plan = engine.make_plan(graph, **options)
    planned = plan.weights_bytes, plan.prepacked_bytes, plan.resident_weights_bytes
    exe = engine.compile(graph, **options)
    for _ in range(1 + runs):
        gc.collect()
        assert planned[1] == exe.prepacked_bytes == _sum(_packed_arrays(exe))
        assert planned[2] == _sum(chain(_packed_arrays(exe), _constants(exe)))
        exe.run(random_feeds(graph)) if runs else None
    report, facts = plan.report(), plan.trace().facts
    for figures in (report, facts, exe.trace("dynamic").facts):
        assert (figures.weights_bytes, figures.prepacked_bytes, figures.resident_weights_bytes) == planned
    return exe


NETWORKS: dict[str, Callable[[int], Graph]] = {
    "squeezenet": partial(zoo.squeezenet, image=64),
    "mobilenet_v2": partial(zoo.mobilenet_v2, image=32),
    "unet": partial(zoo.unet, image=32),
    "random_wired": partial(zoo.random_wired, image=32),
    "lstm_classifier": zoo.lstm_classifier,
    "encoder": lambda batch: zoo.encoder(EncoderSize(layers=2, width=128, heads=4, sequence=32, batch=batch)),
}
CASES = [
    (0, NUMPY, True, ""),
    (3, NUMPY, False, ""),
    (0, NUMBA, False, "float16"),
    (3, NUMBA, True, ""),
    (3, NUMBA, True, "float16"),
    (3, NUMBA, False, ""),
    (0, ONEDNN, True, "bfloat16"),
    (3, ONEDNN, True, ""),
    (3, ONEDNN, False, ""),
]
EACH = [
    *(("encoder", case) for case in CASES),
    *(
        pytest.param(n, c, marks=pytest.mark.slow)
        for i, n in enumerate(NETWORKS)
        if n != "encoder"
        for c in CASES[i % 3 :: 3]
    ),
]
"""The small network in all cases, and the others in a third of them each."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case"), EACH, ids=str)
def test_the_plan_tells_the_bytes_of_weights_that_are_in_memory(name: str, case: tuple[int, str, bool, str]) -> None:
    level, backend, prepack, store = case
    for batch in (1, 16):
        graph = engine.optimise(NETWORKS[name](batch), level)
        stored = engine.cast_storage(graph, store) if store else graph
        exe = check_figures(stored, backend=backend, prepack=prepack, optimise=0)
        assert exe.plan.weights_bytes == sum(e.nbytes for e in stored.constants.entries.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 5))])
def test_bodies_tell_the_bytes_of_their_weights(seed: int, backend: str) -> None:
    rng = np.random.default_rng(seed)
    check_figures(build_control(lambda n: int(rng.integers(n))), backend=backend, runs=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("uint8", marks=pytest.mark.slow), "int8"])
def test_a_quantised_network_tells_the_bytes_of_its_weights(tmp_path: Path, kind: str) -> None:
    graph = engine.load_onnx(quantised_model(zoo.mobilenet_v2(image=32), tmp_path, kind), mapped=False)
    for level in (0, 3):
        exe = check_figures(graph, runs=1, optimise=level)
        assert exe.plan.weights_bytes < 5_000_000  # 3.5 million int8


def test_a_weight_that_two_operators_read_counts_once_and_each_of_their_copies() -> None:
    graph, weights = Graph(), np.ones((64, 64, 3, 3), np.float32)
    x, w = graph.input("x", (1, 64, 8, 8)), graph.constant(weights)
    graph.output(ops.conv2d(ops.conv2d(x, w, pads=(1, 1, 1, 1)), w, strides=(2, 2)), "y")
    plan = check_figures(graph, backend=NUMBA).plan
    assert plan.weights_bytes == weights.nbytes
    assert 2 * weights.nbytes <= plan.prepacked_bytes < 2 * weights.nbytes + 4096


def test_two_names_of_one_array_count_once() -> None:
    graph, weights = Graph(), np.ones((256, 256), np.float32)
    weights.flags.writeable = False
    x = graph.input("x", (1, 256))
    same = weights[:]  # another object, of the same bytes
    graph.output(x @ graph.constant(weights, "a") @ graph.constant(same, "b"), "y")
    assert len({id(entry) for entry in graph.constants.entries.values()}) == 2
    assert check_figures(graph, optimise=0).plan.weights_bytes == weights.nbytes


def test_a_dense_copy_that_lowering_adds_is_prepacked_and_no_weight() -> None:
    graph, weights = Graph(), np.asfortranarray(np.arange(200 * 300, dtype=np.float32).reshape(200, 300))
    x = graph.input("x", (200, 300))
    turned = ops.transpose(graph.constant(np.ascontiguousarray(weights.T)), (1, 0))
    graph.output(ops.concat([x, turned], axis=0), "y")
    check_figures(graph, backend=NUMPY, optimise=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet", "mobilenet_v2"])
def test_a_network_from_a_file_takes_the_memory_that_the_plan_tells(tmp_path: Path, name: str) -> None:
    """Allocations are counted from the load of the file to the second run; its own pages are no allocations."""
    onnx.save(to_onnx(NETWORKS[name](1)), tmp_path / "model.onnx")
    tracemalloc.start()
    try:
        exe = engine.compile(engine.load_onnx(tmp_path / "model.onnx"), backend=NUMBA)
        feeds = random_feeds(exe.graph)
        exe.run(feeds)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        plan = exe.plan
        expected = plan.resident_weights_bytes + plan.arena_bytes
        del exe, plan
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert before - after == pytest.approx(expected, rel=0.1)


def test_large_weights_of_a_file_that_kernels_pack_do_not_stay_in_memory(tmp_path: Path) -> None:
    graph, rng = Graph("large"), np.random.default_rng(0)
    x = graph.input("x", (64, 1024))
    graph.output(ops.relu(x @ graph.constant(rng.standard_normal((1024, 2048)).astype(np.float32))), "y")
    onnx.save(to_onnx(graph), tmp_path / "model.onnx")
    in_memory = engine.make_plan(graph, backend=NUMBA)
    from_file = engine.make_plan(engine.load_onnx(tmp_path / "model.onnx"), backend=NUMBA)
    assert in_memory.weights_bytes == from_file.weights_bytes == 8 << 20
    assert in_memory.resident_weights_bytes == 16 << 20
    assert from_file.resident_weights_bytes == from_file.prepacked_bytes == 8 << 20


def test_a_kernel_that_packs_what_it_does_not_declare_is_refused_by_name() -> None:
    kernel = Kernel("liar", lambda _: bool, pack=lambda _, constants: (constants[1] * 2,))
    schema = OpSchema("packing", lambda specs, _: specs[:1], (kernel,), arity=(2, 2))
    graph = Graph()
    x, w = graph.input("x", (3,)), graph.constant(np.ones(3, np.float32))
    graph.output(graph.add(schema, [x, w], name="op")[0], "y")
    with pytest.raises(KernelError, match=r"operator 'op' failed .*: kernel 'liar' packs .*, but declares \(\)"):
        engine.compile(graph)
