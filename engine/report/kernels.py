"""The back-end and the kernel that compute each call of a plan, and the share of each back-end."""

from collections.abc import Sequence

from attrs import frozen

from engine.lower.calls import Call
from engine.lower.costs import call_cost
from engine.lower.kernel_choice import why_not_text
from engine.planning.placed import PlacedPlan
from engine.text.screen import UNBOUNDED
from engine.text.tables import in_columns, joined
from engine.text.units import counted

MOST_NAMED = 4
"""Operators inside another that a table names."""


@frozen
class KernelUse:
    """The kernel of one call. `workspace_bytes` is what it needs besides its inputs and outputs; `parts` are the
    operators of the graph before passes that it computes besides the one of its name.
    """

    operator: str
    kind: str
    backend: str
    kernel: str
    workspace_bytes: int
    parts: tuple[str, ...]


@frozen
class BackendShare:
    """The part of one back-end in a run: its calls, and its share of the estimated work (operations plus bytes)."""

    backend: str
    calls: int
    work: float


def kernel_uses(plan: PlacedPlan) -> tuple[KernelUse, ...]:
    """Returns the kernel of each call, in order of ticks."""
    parts = plan.lowered.graph.vanished.all_parts()
    return tuple(_of_call(plan, call, parts.get(call.name, ())) for call in plan.lowered.calls)


def _of_call(plan: PlacedPlan, call: Call, parts: tuple[str, ...]) -> KernelUse:
    workspace = sum(plan.lowered.values[v].spec.nbytes for v in call.workspace)
    kind = plan.lowered.tick_kind(call.tick)
    return KernelUse(call.name, kind, call.kernel.backend, call.kernel.name, workspace, parts)


def backend_shares(plan: PlacedPlan) -> tuple[BackendShare, ...]:
    """Returns the share of each back-end, the one with most work first."""
    calls: dict[str, int] = {}
    work: dict[str, int] = {}
    for call in plan.lowered.calls:
        name = call.kernel.backend
        calls[name] = calls.get(name, 0) + 1
        work[name] = work.get(name, 0) + call_cost(call)
    total = max(sum(work.values()), 1)
    return tuple(
        BackendShare(name, calls[name], work[name] / total) for name in sorted(work, key=lambda n: (-work[n], n))
    )


def shares_text(shares: Sequence[BackendShare]) -> str:
    """Returns the shares as one line of text."""
    return ", ".join(f"{s.backend} ({counted(s.calls, 'call')}, {s.work:.1%} of the work)" for s in shares)


def kernel_table(plan: PlacedPlan, width: int = UNBOUNDED) -> str:
    """Returns a line for each call, for people, with the reasons why preferred back-ends do not compute it."""
    rows = [("operator", "kind", "backend", "kernel", "workspace", "computes also", "why")]
    for use, call in zip(kernel_uses(plan), plan.lowered.calls, strict=True):
        why = why_not_text(plan.lowered, call)
        more = f" and {len(use.parts) - MOST_NAMED} more" if len(use.parts) > MOST_NAMED else ""
        parts = ", ".join(use.parts[:MOST_NAMED]) + more
        rows.append((use.operator, use.kind, use.backend, use.kernel, str(use.workspace_bytes), parts, why))
    return joined(in_columns(rows, width=width))
