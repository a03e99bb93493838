"""The chunks of a static or a dynamic run: their addresses, their padding and the values that own them."""

from collections.abc import Mapping

import numpy as np
from attrs import evolve, frozen

from allocator.derive import chunks as memory
from allocator.problem import Column
from engine.lower.calls import Value
from engine.planning.placed import PlacedPlan
from engine.text.errors import OptionError
from engine.trace.trace import NOWHERE


@frozen(eq=False)
class Buffers:
    """The chunks of a run. Chunk c lies at `offset[c]` and ends with `padding[c]` bytes of padding."""

    plan: PlacedPlan
    mode: str
    chunks: memory.Chunks
    offset: Column
    padding: Column
    owners: Mapping[int, Value]


def buffers_of(plan: PlacedPlan, mode: str) -> Buffers:
    """Returns the chunks of the plan's arena ("static") or of reference counting ("dynamic"). Raises OptionError."""
    if mode == "static":
        size = plan.problem.size
        return _buffers(plan, mode, evolve(plan.chunks, size=size), plan.plan.offset, size - plan.chunks.size)
    if mode == "dynamic":
        chunks = memory.derive(plan.program, overwrite=False, reuse=True)
        return _buffers(plan, mode, chunks, np.full(len(chunks), NOWHERE), np.zeros(len(chunks), np.int64))
    raise OptionError(f"mode {mode!r} is unknown; one of: static, dynamic")


def _buffers(plan: PlacedPlan, mode: str, chunks: memory.Chunks, offset: Column, padding: Column) -> Buffers:
    return Buffers(plan, mode, chunks, offset, padding, plan.owners(chunks))
