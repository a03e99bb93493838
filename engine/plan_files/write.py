"""Plans as files, by suffix: for firmware, for allocators, in a model, as data."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from attrs import evolve

from allocator.errors import AllocatorError, UnsupportedProblemError
from allocator.io import c_header, formats
from allocator.io.files import open_whole, write_whole
from allocator.io.instance import Instance
from allocator.problem import FREE, Problem
from engine.execution_plan import ExecutionPlan, execution_plan
from engine.exporters import megengine
from engine.lower.calls import Storage
from engine.onnx.saved import save_plan
from engine.plan_files.suffixes import JSON, ONE_ARENA, ONNX, RECORD, suffix_of
from engine.planning.placed import PlacedPlan
from engine.report.data import plan_data
from engine.text.errors import OptionError
from engine.text.json_text import json_text


def write_plan(plan: PlacedPlan, path: str | Path, *, source: str | Path = "", prefix: str = c_header.PREFIX) -> None:
    """Writes a plan whole or not at all; the suffix says what: see docs/formats.md.

    `source` is the model's file, for `.onnx`, which is that file with the plan in it. `prefix` begins all names in a C
    header. Raises OptionError for an unknown suffix or a missing source, UnsupportedProblemError where a format cannot
    hold the plan, OSError, and for `.onnx` what `save_plan` raises.
    """
    target = Path(path)
    _WRITERS.get(suffix_of(target), _write_buffers)(execution_plan(plan), target, source, prefix)


def _write_header(plan: ExecutionPlan, path: Path, _: str | Path, prefix: str) -> None:
    parts = [
        c_header.Part(memory.name, low, high)
        for placed in plan.memories
        for memory, (low, high) in zip(placed.memories, placed.ranges, strict=True)
    ]
    content = c_header.render_tensors(
        tensors_of(plan), plan.arena_bytes, _alignment(plan), prefix, _title(plan), parts=parts
    )
    write_whole(path, content)


def _write_json(plan: ExecutionPlan, path: Path, _: str | Path, __: str) -> None:
    write_whole(path, json_text(plan_data(plan)).encode())


def _write_record(plan: ExecutionPlan, path: Path, _: str | Path, __: str) -> None:
    with open_whole(path) as out:
        megengine.write(plan.trace(), out)


def _write_model(plan: ExecutionPlan, path: Path, source: str | Path, _: str) -> None:
    if not os.fspath(source):
        raise OptionError(f"{os.fspath(path)} would be the model's own file with the plan in it: give `source`")
    save_plan(plan, source, path)


def _write_buffers(plan: ExecutionPlan, path: Path, _: str | Path, __: str) -> None:
    if suffix_of(path) in ONE_ARENA and (names := _held(plan))[1:]:
        where = f"{os.fspath(path)}: a plan of TensorFlow Lite Micro has one arena, this one lies in {', '.join(names)}"
        raise UnsupportedProblemError(f"{where}; .h and .json say what lies where")
    instance = buffers_of(plan)
    if path.suffix.lower() == ".txt":
        instance = evolve(instance, problem=_rounded(instance))
    try:
        formats.write(path, instance)
    except AllocatorError as error:
        if "overwrites" not in str(error):
            raise
        raise type(error)(f"{error}; plan without them (--no-overwrite), or write one of .h, .txt, {RECORD}") from error


_WRITERS: Mapping[str, Callable[[ExecutionPlan, Path, str | Path, str], None]] = MappingProxyType(
    {".h": _write_header, JSON: _write_json, RECORD: _write_record, ONNX: _write_model}
)


def _held(plan: ExecutionPlan) -> list[str]:
    """Returns the memories that tensors lie in, where there are several."""
    pairs = (pair for placed in plan.memories for pair in zip(placed.memories, placed.parts, strict=True))
    return [memory.name for memory, part in pairs if part.arena_bytes]


def tensors_of(plan: PlacedPlan) -> list[c_header.Tensor]:
    """Returns each tensor and workspace in the arena, in the order of the calls; views and parts of others, too."""
    rows, values = [], plan.lowered.values
    for value in values:
        if value.storage is Storage.ARENA:
            low, high = plan.places[value.id].layout.extent
            chunk = plan.chunk_of(value.id)
            shape = "x".join(map(str, value.spec.shape)) or "scalar"
            ticks = c_header.lifetime(int(plan.chunks.begin[chunk]), int(plan.chunks.end[chunk]))
            about = f"{value.role.value} {shape} {value.spec.dtype.name}, {ticks}"
            if plan.memories:
                about += f", in {plan.memory_of(chunk)}"
            if value.is_view:
                about += f", inside {values[value.owner].name}"
            rows.append(c_header.Tensor(value.name, low, high - low, about))
    return rows


def buffers_of(plan: PlacedPlan) -> Instance:
    """Returns the chunks of a plan as buffers with names, lifetimes, alignments, overwrites, memories and offsets."""
    owners = plan.owners(plan.chunks)
    names = megengine.unique_names(owners[chunk].name for chunk in range(len(plan.chunks)))
    problem = evolve(plan.problem, size=plan.chunks.size, pinned=np.full(len(names), FREE))
    return Instance(problem, names, plan.plan.offset, memory=_memory_of(plan))


def _memory_of(plan: PlacedPlan) -> list[str]:
    """Returns the name of the memory of each chunk; nothing where all lie in one."""
    names = [plan.memory_of(chunk) for chunk in range(len(plan.chunks))]
    return names if len(set(names)) > 1 else []


def _rounded(instance: Instance) -> Problem:
    """Returns the problem with sizes that are multiples of alignments, which then need not be told."""
    problem = instance.problem
    size = -(-problem.size // problem.alignment) * problem.alignment
    return evolve(problem, size=size, alignment=np.ones_like(size))


def _alignment(plan: PlacedPlan) -> int:
    """Returns the alignment that the first byte of the arena needs."""
    return int(np.lcm.reduce(plan.problem.alignment, initial=1))


def _title(plan: PlacedPlan) -> str:
    target = plan.lowered.target
    for_target = "" if target.is_host else f", for target {target.name!r}"
    return f"The arena of {plan.lowered.graph.name!r}{for_target}, planned by arenaplan."
