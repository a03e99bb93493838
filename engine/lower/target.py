"""Targets: processors that a plan is made for and that this process does not have, known by their kernels' workspaces.

A plan for a target has the calls of this program, with the workspaces of the target's kernels in place of our own.
"""

from collections.abc import Collection, Mapping

from attrs import field, frozen

from allocator.memories.memory import Memory
from engine.lower.memories import memory_text
from engine.text.errors import TargetError
from engine.text.options import close_to
from ops.registry import REGISTRY
from ops.schema.schema import Kernel, Signature
from ops.tensor.spec import Shape


@frozen
class Workspace:
    """The bytes that the kernels of one kind of operator need besides inputs and outputs.

    `inputs` are the shapes of the first inputs, and `output` is that of the first output; None where any fits.
    """

    operator: str
    bytes: int
    inputs: tuple[Shape, ...] = ()
    output: Shape | None = None

    @property
    def shapes(self) -> tuple[tuple[Shape, ...], Shape | None]:
        """Returns the shapes that are given."""
        return self.inputs, self.output

    @property
    def given(self) -> int:
        """Returns how many shapes are given."""
        return len(self.inputs) + (self.output is not None)

    def __str__(self) -> str:
        """Returns one line, such as "conv(1x16x8x8) -> 1x32x8x8: 4096 B"."""
        inputs = ", ".join(map(_shape_text, self.inputs))
        output = "" if self.output is None else f" -> {_shape_text(self.output)}"
        return f"{self.operator}({inputs}){output}: {self.bytes} B"

    def fits(self, signature: Signature) -> bool:
        """Returns whether a use of the operator has these shapes."""
        shapes = tuple(spec.shape for spec in signature.inputs)
        is_output = self.output is None or self.output == signature.y.shape
        return is_output and shapes[: len(self.inputs)] == self.inputs


def _shape_text(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _by_operator(target: "Target") -> Mapping[str, tuple[Workspace, ...]]:
    """Returns the workspaces by kind of operator, those with most shapes first."""
    rows: dict[str, tuple[Workspace, ...]] = {}
    for row in sorted(target.workspaces, key=lambda row: -row.given):
        rows[row.operator] = (*rows.get(row.operator, ()), row)
    return rows


@frozen
class Target:
    """A processor: its name, "" for that of this process, the workspaces of its kernels, and its memories.

    An operator that no row of `workspaces` fits needs none. Where several fit, the one that gives most shapes holds,
    and of these the first.
    """

    name: str
    workspaces: tuple[Workspace, ...] = ()
    memories: tuple[Memory, ...] = ()
    _rows: Mapping[str, tuple[Workspace, ...]] = field(init=False, repr=False, eq=False)

    @_rows.default
    def _sorted(self) -> Mapping[str, tuple[Workspace, ...]]:
        return _by_operator(self)

    @property
    def is_host(self) -> bool:
        """True if plans are for the processor of this process."""
        return not self.name

    def workspace_bytes(self, kind: str, signature: Signature, kernel: Kernel) -> int:
        """Returns the bytes of the workspace of one call; `kernel` is the one that this process would run."""
        if self.is_host:
            return kernel.workspace(signature)
        return next((row.bytes for row in self._rows.get(kind, ()) if row.fits(signature)), 0)

    def check_operators(self, kinds: Collection[str]) -> None:
        """Raises TargetError for a row about an operator that is neither ours nor one of `kinds`, those of a graph."""
        for kind in self._rows:
            if kind not in REGISTRY and kind not in kinds:
                raise TargetError(
                    f"target {self.name!r}: operator {kind!r} is unknown; {close_to(kind, (*kinds, *REGISTRY))}"
                )

    def check_is_host(self) -> None:
        """Raises TargetError for another processor than that of this process."""
        if not self.is_host:
            raise TargetError(f"this plan is for target {self.name!r}, not for this processor: it cannot run here")

    @property
    def text(self) -> str:
        """Returns all of it in a line, "" for the processor of this process; equal targets have equal texts."""
        return "; ".join((self.name, *map(str, self.workspaces), *map(memory_text, self.memories)))


HOST = Target("")
"""The processor of this process."""
NONE = Target("none")
"""A processor whose kernels need no workspaces."""
