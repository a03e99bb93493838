"""The resident set to expect of this process, once it runs a plan: what the plan tells, and what is there already."""

from typing import Any

from attrs import asdict, frozen

from allocator.derive.refcount import refcount_peak
from engine.executor.arenas import file_bytes
from engine.executor.file_packs import packed_file_bytes
from engine.graph.deferred import sources
from engine.graph.mapped import mapping_of, release_files
from engine.planning.placed import PlacedPlan
from engine.planning.weights import identity
from engine.system import process_memory
from engine.system.process_memory import whole_pages
from engine.text.tables import joined
from engine.text.units import format_bytes

STATIC = "static"
_UNKNOWN = "-"


@frozen
class ResidentSet:
    """The bytes that a process has resident while it runs a plan, each part in whole pages.

    `tensor_bytes`: the arena without what lies in files, whose pages the system can drop, or what reference counting
    needs at its peak. `weights_bytes`: resident weights, without what kernels packed into files of a memory.
    `output_bytes`: the copies of outputs that a run returns. `code_bytes` and `interpreter_bytes` were measured in this
    process, before it had an arena: pages of files (libraries and machine code), and all others but weights (Python's
    objects, modules, the graph, its plan). They are None where the system does not tell.
    """

    tensor_bytes: int
    weights_bytes: int
    output_bytes: int
    code_bytes: int | None
    interpreter_bytes: int | None

    @property
    def resident_bytes(self) -> int | None:
        """Returns the sum; None where a part is unknown."""
        if self.code_bytes is None or self.interpreter_bytes is None:
            return None
        return self.tensor_bytes + self.weights_bytes + self.output_bytes + self.code_bytes + self.interpreter_bytes

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return asdict(self) | {"resident_bytes": self.resident_bytes}

    def text(self) -> str:
        """Returns a line for each part, and the sum."""
        rows = (
            ("arena", self.tensor_bytes, "in whole pages"),
            ("resident weights", self.weights_bytes, "weights that kernels read, and prepacked copies"),
            ("outputs", self.output_bytes, "copies that a run returns"),
            ("code", self.code_bytes, "measured: libraries and machine code"),
            ("interpreter", self.interpreter_bytes, "measured: Python, modules, the graph and its plan"),
            ("sum", self.resident_bytes, "what this process would have resident while it runs"),
        )
        return joined(("resident set to expect", *(_row(*row) for row in rows)))


def resident_set(plan: PlacedPlan, mode: str = STATIC) -> ResidentSet:
    """Returns the resident set to expect if this process runs a plan, in a mode ("static" or "dynamic").

    An arena and packed weights must not be there yet, else they count twice. Gives back what planning has freed.
    """
    lowered, is_static = plan.lowered, mode == STATIC
    arrays = tuple(sources(*lowered.constants.entries.values()))
    release_files(arrays)
    process_memory.trim()
    resident, code = process_memory.resident_bytes(), process_memory.file_bytes()
    held = whole_pages(sum({identity(a): a.nbytes for a in arrays if mapping_of(a) is None}.values()))
    outputs = [lowered.values[v].spec.nbytes for v in lowered.outputs.values()] if is_static else []
    return ResidentSet(
        tensor_bytes=whole_pages(plan.arena_bytes - file_bytes(plan) if is_static else refcount_peak(plan.program)),
        weights_bytes=whole_pages(plan.resident_weights_bytes - packed_file_bytes(plan)),
        output_bytes=sum(map(whole_pages, outputs)),
        code_bytes=code,
        interpreter_bytes=None if resident is None or code is None else resident - code - held,
    )


def _row(name: str, size: int | None, why: str) -> str:
    shown = _UNKNOWN if size is None else f"{size} B {format_bytes(size):>12}"
    return f"    {name:<16}{shown:>29}   {why}"
