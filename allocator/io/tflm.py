"""Offline plans of TensorFlow Lite Micro: the metadata buffer "OfflineMemoryAllocation", and a BufferPlan in C.

(docs/memory_management.md and docs/offline_memory_plan.md there.) Both hold nothing but offsets in the arena, 32 bits
each, in the order of the tensors. Buffers may overlap, so overwrites need no word. The arena wants 16-byte alignment.
"""

import numpy as np

from allocator.errors import FormatError, UnsupportedProblemError, shown
from allocator.io.instance import Instance, check_holds, check_placed
from allocator.problem import FREE, Column, column

_TITLE = "TensorFlow Lite Micro's offline plan"
_VERSION, _SUBGRAPHS = 0, 1
_HEAD = 3
_WORD = np.dtype("<i4")
_LARGEST = 2**31


def parse_metadata(content: bytes) -> Column:
    """Parses the offset of each tensor; FREE for those that are planned at load time. Raises FormatError."""
    if len(content) % _WORD.itemsize or len(content) < _HEAD * _WORD.itemsize:
        raise FormatError(f"has {len(content)} bytes; words of 4 bytes are wanted, {_HEAD} at least")
    words = np.frombuffer(content, _WORD)
    if words[_HEAD - 1] != len(words) - _HEAD:
        raise FormatError(f"word 2: {words[_HEAD - 1]} offsets are announced, {len(words) - _HEAD} follow")
    wrong = np.flatnonzero(words[_HEAD:] < FREE)
    if len(wrong):
        tensor = int(wrong[0])
        raise FormatError(f"word {_HEAD + tensor}: the offset {words[_HEAD + tensor]} of tensor {tensor} is negative")
    return column(words[_HEAD:])


def render_metadata(instance: Instance) -> bytes:
    """Returns the words of the metadata buffer: version, subgraphs, count, offsets. Raises UnsupportedProblemError."""
    offset = _offsets(instance)
    return np.array([_VERSION, _SUBGRAPHS, len(offset), *offset], _WORD).tobytes()


def render_struct(instance: Instance) -> bytes:
    """Returns the plan as a C struct for a NonPersistentMemoryPlannerShim. Raises UnsupportedProblemError."""
    offset = _offsets(instance)
    entries = [f"    [{i}] = {{ .offset = {at} }}," for i, at in enumerate(offset)]
    lines = (
        f"// {instance.arena_bytes} bytes of arena.",
        '#include "tensorflow/lite/micro/memory_planner/memory_plan_struct.h"',
        "",
        "const struct BufferPlan kOfflineNonPersistentBufferPlan = {",
        f"  .buffer_count = {len(offset)},",
        "  .buffer_plan_entries = {",
        *entries,
        "  }",
        "};",
        "",
    )
    return "\n".join(lines).encode()


def _offsets(instance: Instance) -> list[int]:
    check_holds(instance, _TITLE, ("overwrites", "alignments", "gaps"))
    check_placed(instance, _TITLE)
    too_high = np.flatnonzero(instance.offset >= _LARGEST)
    if len(too_high):
        name, at = instance.ids[int(too_high[0])], instance.offset[too_high[0]]
        raise UnsupportedProblemError(f"{_TITLE} has 32-bit offsets; buffer {shown(name)} lies at {at}")
    offsets: list[int] = np.maximum(instance.offset, 0).tolist()
    return offsets
