"""Memories that are buffers of their own: those that the caller gives, and files in a folder."""

import errno
import gc
import mmap
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import ops
from allocator.memories.memory import Memory
from engine import SGD, Executable, ExecutionPlan, Graph
from engine.executor.static import StaticExecutor
from engine.graph.mapped import mapping_of
from engine.saved import embed
from engine.system.file_bytes import bytes_in_file
from engine.system.process_memory import whole_pages
from engine.text.errors import NoMemoryError, OptionError
from ops.tensor.layout import address_of
from ops.tensor.spec import Array
from tests.helpers.graphs.perceptrons import perceptron, perceptron_feeds
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds

WAYS: tuple[dict[str, Any], ...] = ({}, {"debug": "poison"})


def _graph() -> Graph:
    """Returns two layers with a softmax between them; the widest tensor has 8 KiB, the weights 272 KiB."""
    rng, graph = np.random.default_rng(0), Graph("small")
    x = graph.input("x", (4, 128))
    hidden = ops.softmax(x @ graph.constant(rng.normal(size=(128, 512)).astype(np.float32), "wide"), axis=1)
    graph.output(hidden @ graph.constant(rng.normal(size=(512, 8)).astype(np.float32), "narrow"), "y")
    return graph


def _memories(folder: Path | str) -> list[Memory]:
    return [
        Memory("sram", 6 << 10, 4e9, 4e9),
        Memory("disk", 1 << 20, 1e9, 1e9, folder=str(folder)),
        Memory("flash", 1 << 20, 1e9, 1e9, writable=False, folder=str(folder)),
    ]


def _plan(folder: Path | str = "", **options: Any) -> ExecutionPlan:
    place = {"constants": "flash", "inputs": "sram"}
    return engine.make_plan(_graph(), memories=_memories(folder), place=place, **options)


def _rows(exe: Executable) -> tuple[Array, ...]:
    assert isinstance(exe.executor, StaticExecutor)
    return exe.executor.arena.rows


@pytest.fixture(scope="module")
def plan() -> ExecutionPlan:
    return _plan()


def _sizes(plan: ExecutionPlan) -> dict[str, int]:
    (transfers,) = plan.report().transfers
    return {share.name: share.arena_bytes for share in transfers.memories}


def test_a_folder_that_is_not_there_is_said_before_anything_is_planned(tmp_path: Path) -> None:
    disk = Memory("disk", 64, 1e9, 1e9, folder=str(tmp_path / "none"))  # too small for a plan
    with pytest.raises(OptionError, match="no file can be made there: No such file or directory"):
        engine.compile(_graph(), memories=[disk])


def test_bytes_in_files_are_not_expected_to_be_resident(tmp_path: Path, plan: ExecutionPlan) -> None:
    tiers, sizes = _plan(tmp_path), _sizes(plan)
    assert tiers.resident_set().tensor_bytes == whole_pages(tiers.arena_bytes - sizes["disk"])
    assert plan.resident_set().tensor_bytes == whole_pages(plan.arena_bytes)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("named", [(), ("sram",), ("flash", "disk"), ("sram", "disk", "flash")], ids=str)
def test_each_memory_lies_in_the_buffer_of_its_name_with_the_bits_of_one_arena(
    named: tuple[str, ...], way: dict[str, Any], plan: ExecutionPlan
) -> None:
    feeds, sizes = random_feeds(plan.graph), _sizes(plan)
    assert sizes["sram"] and sizes["disk"] and not sizes["flash"]
    buffers = {name: np.full(sizes[name] + 63, 0x11, np.uint8) for name in named}
    exe = plan.executable(arena=buffers, **way)
    for _ in range(2):
        assert_same(exe.run(feeds), engine.compile(_graph()).run(feeds))
    for name, row in zip(sizes, _rows(exe), strict=True):
        assert len(row) == sizes[name]
        assert not len(row) or address_of(row) % 64 == 0
        assert not len(row) or name not in named or np.shares_memory(row, buffers[name])
    copied = pickle.loads(pickle.dumps(exe))
    assert_same(copied.run(feeds), exe.run(feeds))


def test_buffers_that_cannot_be_memories_are_refused_in_one_line(plan: ExecutionPlan) -> None:
    sizes = _sizes(plan)
    block = np.zeros(sum(sizes.values()) + 200, np.uint8)
    small = np.zeros(sizes["disk"] - 1, np.uint8)
    mistakes: dict[str, Any] = {
        "memory 'dram' is unknown; did you mean 'sram'": {"dram": block},
        f"memory 'disk' of the plan of 'small' needs an arena of {sizes['disk']} bytes": {"disk": small},
        "arena.'sram'. is a bytes that is read-only": {"sram": bytes(sizes["sram"])},
        "arena.'disk'. has 9 elements of float32": {"disk": np.zeros(9, np.float32)},
        "memories 'sram' and 'disk' have bytes in common": {"sram": block, "disk": block},
    }
    for message, arena in mistakes.items():
        with pytest.raises(OptionError, match=message) as caught:
            plan.executable(arena=arena)
        assert "\n" not in str(caught.value)
    with pytest.raises(OptionError, match="and the plan of 'small' has one arena: give one buffer"):
        engine.make_plan(_graph()).executable(arena={"sram": block})


def test_state_in_a_buffer_of_one_memory_keeps_other_executables_out() -> None:
    memories = [Memory("sram", 1 << 10, 4e9, 4e9), Memory("disk", 1 << 16, 1e9, 1e9)]
    training = engine.make_plan(perceptron(1, 8, SGD(0.1)), memories=memories, place={"parameters": "disk"})
    block = np.zeros(1 << 17, np.uint8)
    exe = training.executable(arena={"disk": block})
    with pytest.raises(OptionError, match="must stay there from run to run"):
        training.executable(arena={"disk": block})
    beside, plain = training.executable(arena={"disk": block[1 << 16 :]}), engine.compile(perceptron(1, 8, SGD(0.1)))
    feeds = perceptron_feeds(8)
    for _ in range(3):
        wanted = plain.run(feeds)
        assert_same(exe.run(feeds), wanted)
        assert_same(beside.run(feeds), wanted)


@pytest.mark.parametrize(
    "options", [{}, {"debug": "poison"}, {"parallel": "edges", "threads": 2}, {"backend": "numpy"}], ids=str
)
def test_a_memory_with_a_folder_is_a_file_without_a_name(options: dict[str, Any], tmp_path: Path) -> None:
    place = {"constants": "flash", "inputs": "sram"}
    exe = engine.compile(_graph(), memories=_memories(tmp_path), place=place, **options)
    feeds = random_feeds(exe.graph)
    plain = {name: value for name, value in options.items() if name == "backend"}
    assert_same(exe.run(feeds), engine.compile(_graph(), **plain).run(feeds))
    sram, disk, _ = _rows(exe)
    assert mapping_of(sram) is None and mapping_of(disk) is not None
    packed = [array for arrays in exe.executor._packed.arrays.values() for array in arrays]  # type: ignore[union-attr]
    assert all(mapping_of(array) is not None or array.nbytes < 4096 for array in packed)
    assert bool(packed) == (not plain)
    mapped = sum(array.nbytes for array in packed if mapping_of(array) is not None)
    resident = exe.plan.resident_set().weights_bytes
    assert resident == whole_pages(exe.plan.resident_weights_bytes - mapped) and (mapped > 0) == (not plain)
    assert not list(tmp_path.iterdir())


def test_a_saved_plan_is_followed_in_another_folder(tmp_path: Path) -> None:
    here, there = (tmp_path / name for name in ("here", "there"))
    there.mkdir()
    plan = _plan(there, embedded=embed(_plan(here)))
    assert plan.is_followed
    exe = plan.executable()
    assert mapping_of(_rows(exe)[1]) is not None
    assert_same(exe.run(random_feeds(exe.graph)), engine.compile(_graph()).run(random_feeds(exe.graph)))


def test_a_step_of_training_with_its_state_on_a_disk_has_the_same_bits(tmp_path: Path) -> None:
    memories = ["sram=1KiB,4GB/s", f"disk=64KiB,1GB/s,folder={tmp_path}"]
    exe = engine.compile(perceptron(1, 8, SGD(0.1)), memories=memories, place={"parameters": "disk"})
    plain = engine.compile(perceptron(1, 8, SGD(0.1)))
    feeds = perceptron_feeds(8)
    for _ in range(3):
        assert_same(exe.run(feeds), plain.run(feeds))
    assert_same(exe.parameters, plain.parameters)


@pytest.mark.parametrize(("nbytes", "alignment"), [(0, 64), (1, 64), (10_000, 64), (100, 1 << 16)])
def test_bytes_in_a_file_are_aligned_zeros_that_keep_the_file(nbytes: int, alignment: int, tmp_path: Path) -> None:
    row = bytes_in_file(tmp_path, nbytes, alignment)
    assert len(row) == nbytes and not row.any() and (not nbytes or address_of(row) % alignment == 0)
    row[:] = 7
    gc.collect()
    assert (row == 7).all() and not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="nothing is reserved here")
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP])
def test_a_file_system_that_reserves_nothing_has_a_file_with_holes(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    row = bytes_in_file(tmp_path, 10_000, 64)
    assert len(row) == 10_000 and not row.any()


def test_a_file_that_cannot_be_mapped_says_nothing_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(NoMemoryError, match=r"^a file of 9\.77 KiB cannot be mapped: "):
        bytes_in_file(tmp_path, 10_000, 64)
