"""Memory that grows while something in it is alive: what is there stays, and lies where layouts say."""

import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.planning.reserved import BOUNDARY_BYTES
from engine.stages.segments import Memory, ReservedMemory, Segments, machine_bytes, new_memory
from ops.tensor.layout import Layout, address_of
from ops.tensor.spec import Array, TensorSpec

BYTE = np.dtype(np.uint8)


def piece(memory: Memory, low: int, count: int, step: int = 1) -> Array:
    """Returns bytes from `low` on, every `step`-th; backwards where the step is negative."""
    first = low if step > 0 else low + (count - 1) * -step
    return memory.view(Layout(first, (count,), (step,), 1), BYTE)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([Segments(64), Segments(4096), Segments(64, 1000), new_memory(0, 64)]),
    st.lists(st.integers(2, 60).map(lambda n: n * BOUNDARY_BYTES), min_size=1, max_size=5),
    st.sampled_from((1, 2, -1, -3)),
)
def test_segments_keep_their_bytes_while_they_grow(memory: Memory, steps: list[int], stride: int) -> None:
    """Memories are used again and again, as by runs of other lengths."""
    top, kept = 0, []
    for i, step in enumerate(steps):
        old, top = top, top + step
        if i == 0:
            memory.start(top)
        else:
            memory.grow(old, top)
        low = old + BOUNDARY_BYTES if i else 0  # a boundary is nobody's
        count = (top - low - 1) // abs(stride) + 1
        array = piece(memory, low, count, stride)
        array[:] = i + 1
        kept.append((low, count, i + 1, array, memory.relocations))
        for at, length, number, held, moves in kept:
            again = piece(memory, at, length, stride)
            assert address_of(again) == address_of(held) and moves == memory.relocations
            assert (again == number).all() and memory.contains(again)


def test_memory_tells_which_addresses_need_no_relocation() -> None:
    reserved, segments = new_memory(0, 64), Segments(64)
    assert reserved.has(1 << 20) and not reserved.has(1 << 60)
    assert not segments.has(64)
    segments.start(640)
    assert segments.has(640) and not segments.has(641)
    segments.grow(640, 6400)
    assert not segments.has(64)


@pytest.mark.parametrize("alignment", [64, 256, 8192])
def test_addresses_are_as_aligned_as_offsets_in_every_segment(alignment: int) -> None:
    memory = Segments(alignment)
    memory.start(640)
    memory.grow(640, 640 + 4 * alignment)
    memory.grow(640 + 4 * alignment, 640 + 9 * alignment)
    for low in range(0, 640 + 8 * alignment, alignment):
        if low in (640, 640 + 4 * alignment):
            continue  # a boundary
        array = memory.view(Layout.dense(TensorSpec((64,), BYTE), low), BYTE)
        assert address_of(array) % alignment == 0


def test_segments_become_one_when_nothing_is_alive() -> None:
    memory = Segments(64)
    memory.start(128)
    memory.grow(128, 512)
    assert len(memory.segments) == 2 and memory.relocations == 1
    memory.start(64)
    assert [(s.low, s.high) for s in memory.segments] == [(0, 512)] and memory.relocations == 2
    memory.start(512)
    memory.grow(64, 512)
    assert memory.relocations == 2 and len(memory.segments) == 1


def test_a_reserved_block_has_pages_for_what_was_needed_and_refuses_more() -> None:
    memory = new_memory(4096, 64)
    assert isinstance(memory, ReservedMemory) and memory.nbytes == 0
    memory.start(100)
    memory.grow(100, 300)
    memory.start(50)
    assert memory.nbytes == 300 and memory.relocations == 0
    with pytest.raises(MemoryError):
        memory.grow(300, 4097)
    assert memory.nbytes == 300


def test_memory_is_reserved_where_the_system_gives_addresses() -> None:
    assert machine_bytes() > 2**20
    assert isinstance(new_memory(0, 64), ReservedMemory)
    for alignment in (64, mmap.PAGESIZE, 2**20):
        memory = new_memory(0, alignment)
        assert isinstance(memory, ReservedMemory) and address_of(memory.bytes) % alignment == 0
    assert not new_memory(2**20, 64).contains(np.empty(8))


@pytest.mark.parametrize("alignment", [64, 2**20])
def test_of_a_capacity_no_more_is_reserved_than_the_machine_has(alignment: int) -> None:
    memory = new_memory(2**62, alignment)
    assert isinstance(memory, ReservedMemory) and len(memory.bytes) <= machine_bytes()
    exact = new_memory(5 * BOUNDARY_BYTES - 1, alignment)
    assert isinstance(exact, ReservedMemory) and len(exact.bytes) >= 5 * BOUNDARY_BYTES
    for held in (memory, exact):
        held.start(5 * BOUNDARY_BYTES)
        piece(held, 0, 5 * BOUNDARY_BYTES)[:] = 1
        with pytest.raises(MemoryError):
            held.grow(5 * BOUNDARY_BYTES, 2**61)


def test_where_the_system_gives_no_addresses_there_are_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert isinstance(new_memory(0, 64), Segments)
    kept = new_memory(1000, 64)
    kept.start(64)
    assert isinstance(kept, Segments) and kept.nbytes >= 1000  # one block, as a capacity is


@pytest.mark.parametrize("alignment", [64, 2**20])
def test_a_budget_may_be_more_than_the_machine_has(alignment: int) -> None:
    graph = Graph()
    graph.output(ops.exp(graph.input("x", ("n",))), "y")
    exe = engine.compile(graph, budget="100000 GiB", alignment=alignment)
    assert exe(x=np.zeros(3, np.float32))["y"].tolist() == [1, 1, 1]
