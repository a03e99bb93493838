"""Constants that are made when they are wanted."""

import gc
from functools import partial

import numpy as np
import pytest
from attrs import evolve

import engine
import ops
from engine.executor.binding import pack_constants
from engine.graph import deferred
from engine.graph.deferred import Constants, Deferred, aligned, behind, few_bytes, sources
from engine.graph.graph import Graph
from engine.passes.cleanup.constants import CONSTANTS
from engine.planning.weights import weight_memory
from ops.schema.schema import first_weights
from ops.tensor.spec import Array, TensorSpec, spec_of

SPEC = TensorSpec((3,), np.dtype("float32"))


def counted(calls: list[int]) -> Deferred:
    """Returns a constant whose arrays have other numbers each time, and counts them in `calls`."""

    def make() -> Array:
        calls.append(len(calls))
        return np.arange(3, dtype=np.float32) + calls[-1]

    return Deferred(SPEC, make)


def test_a_deferred_constant_is_made_once_while_it_is_held() -> None:
    calls: list[int] = []
    constants = Constants({"a": counted(calls)})
    assert constants.spec("a") == SPEC and "a" in constants and len(constants) == 1 and not calls
    held = constants["a"]
    assert constants["a"] is held and len(calls) == 1 and not held.flags.writeable
    del held
    gc.collect()
    assert constants["a"].tolist() == [1, 2, 3]


def test_a_few_bytes_of_a_deferred_constant_are_kept() -> None:
    calls: list[int] = []
    deferred = counted(calls)
    assert few_bytes(deferred) == few_bytes(deferred) == few_bytes(np.arange(3, dtype=np.float32))
    assert len(calls) == 1
    many = np.arange(10**5, dtype=np.float32)
    assert 16 * 4 <= len(few_bytes(many)) <= 20 * 4 and few_bytes(many) != few_bytes(many + 1)


def test_aligned_constants_are_left_where_they_are() -> None:
    array = np.arange(4, dtype=np.float32)
    assert aligned(array) is array


@pytest.mark.parametrize("count", [5, 40_000])
def test_misaligned_constants_are_copied(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "_PIECE", 1000)
    room = np.zeros(4 * count + 1, np.uint8)
    askew = room[1:].view(np.float32)
    askew[:] = np.arange(count)
    constant = aligned(askew)
    assert isinstance(constant, Deferred) == (askew.nbytes > deferred.SMALL)
    array = Constants({0: constant})[0]
    assert array.flags.aligned and array.tolist() == askew.tolist() and not array.flags.writeable


def folded() -> Graph:
    """Returns y = x @ w, where w is the transpose of a constant."""
    graph = Graph()
    x, weights = graph.input("x", (2, 200)), np.arange(200 * 300, dtype=np.float32).reshape(300, 200) / 1e4
    graph.output(ops.matmul(x, ops.transpose(graph.constant(weights), (1, 0))), "y")
    return graph


def test_large_results_of_constant_folding_are_deferred_and_the_same() -> None:
    graph = folded()
    better = CONSTANTS(graph)
    (entry,) = better.constants.entries.values()
    assert isinstance(entry, Deferred)
    (plain,), (turned,) = graph.constants.values(), better.constants.values()
    np.testing.assert_array_equal(turned, plain.T)
    feeds = {"x": np.ones((2, 200), np.float32)}
    run = engine.compile(better, backend="numpy", optimise=0)
    gc.collect()
    for _ in range(2):
        wanted = engine.compile(graph, backend="numpy", optimise=0).run(feeds)["y"]
        np.testing.assert_allclose(run.run(feeds)["y"], wanted, rtol=2e-6)  # BLAS adds in another order along columns


def test_a_constant_that_every_reader_packs_is_dropped_and_not_resident() -> None:
    graph = Graph()
    x, w = graph.input("x", (4, 40)), np.ones((40, 48), np.float32)
    graph.output(ops.matmul(x, graph.constant(w)), "y")
    plan = engine.make_plan(engine.optimise(graph, 3), backend="numba", optimise=0)
    call = next(c for c in plan.lowered.calls if c.kernel.unread_after_pack is first_weights)
    entries = {v: Deferred(spec_of(a), a.copy) for v, a in plan.lowered.constants.items()}
    lowered = evolve(plan.lowered, constants=entries)
    packed = pack_constants(lowered)
    gc.collect()
    assert call.inputs[1] not in packed.held
    memory = weight_memory(lowered)
    assert memory.weights_bytes == plan.weights_bytes >= w.nbytes
    assert memory.prepacked_bytes == packed.nbytes >= w.nbytes
    assert memory.resident_weights_bytes - packed.nbytes == plan.weights_bytes - w.nbytes
    assert plan.resident_weights_bytes == plan.weights_bytes + packed.nbytes  # its graph holds all arrays in memory


def test_an_array_that_is_used_often_is_one_source() -> None:
    stored = np.arange(3, dtype=np.float32)
    entry = Deferred(SPEC, partial(np.copy, stored))
    for _ in range(14):
        entry = Deferred(SPEC, partial(np.add, entry, entry))
    assert [id(a) for a in sources(entry, entry)] == [id(stored)]
    assert len(list(behind(entry))) == 16
