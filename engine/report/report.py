"""What a plan costs, and why: totals, what is alive at the peak, and where the rest of the arena went."""

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import asdict, evolve, fields, frozen
from attrs.filters import exclude

from allocator import bounds, solvers
from allocator.derive import chunks as memory
from allocator.problem import Status
from allocator.solvers.base import arena_bytes
from engine.lower.calls import Role, Value
from engine.lower.costs import graph_cost
from engine.lower.order import Ordering
from engine.planning.placed import PlacedPlan
from engine.planning.recomputed import Recomputed
from engine.report.kernels import BackendShare, KernelUse, backend_shares, kernel_uses, shares_text
from engine.report.layout_copies import Conversion, conversions
from engine.report.parallelism import parallelism
from engine.report.peak import PeakTensor, peak_of
from engine.report.savings import Savings, nested_bytes, savings
from engine.text.errors import BudgetError
from engine.text.plurals import agreed, counted
from engine.text.tables import in_columns
from engine.text.units import format_bytes

LEAN_NODES = 4
"""Steps of a search for the arena without workspaces: the plan itself is its start, so that a report stays quick."""

MOST_NAMED = 3
"""Conversions of layouts that are told one by one."""


@frozen(eq=False)
class Report:
    """Sizes in bytes. `arena_bytes` = live bytes at the peak + `alignment_loss` + `fragmentation`.

    `naive_bytes`: every tensor that is no view has bytes of its own. `dynamic_peak_bytes`: reference counting without
    overwrites and without fragmentation. `workspace_bytes`: the largest workspace; `arena_without_workspace`: what
    would do if kernels needed none. `lower_bound`: no arena is smaller for these calls in this order, with the views
    and overwrites that were taken; it may be unattainable. `gap` is arena / lower bound - 1: 0 is proved to be the
    smallest arena (status "optimal"), more is "feasible". `strategy` is the one that made the plan. `flops`: operations
    of one run as the schemas estimate them. Where operators may run at once, `parallel` is the policy that makes that
    safe; how many do on average, by their number and by their estimated cost, no more than `parallelism_by_*`.
    `orderings` has what the order costs, where another than the given one was looked for. `savings`: what need not be
    copied; `conversions`: what is copied into another order of axes.
    `recomputed`: what runs again to keep within a budget, where anything does; it is part of `operators` and `flops`.
    `backends`: what computes how much of a run; `kernels`: the same call by call.
    `origin`: where there was a plan in a file, whether this is that one, and why not.
    """

    model: str
    operators: int
    flops: int
    arena_bytes: int
    lower_bound: int
    gap: float
    naive_bytes: int
    dynamic_peak_bytes: int
    constants_bytes: int
    workspace_bytes: int
    arena_without_workspace: int
    alignment: int
    alignment_loss: int
    fragmentation: int
    strategy: str
    status: str
    peak_tick: int
    peak_operator: str
    peak_kind: str
    peak_bytes: int
    peak_tensors: tuple[PeakTensor, ...]
    parallel: str
    parallelism_by_count: float
    parallelism_by_cost: float
    orderings: tuple[Ordering, ...]
    savings: Savings
    conversions: tuple[Conversion, ...]
    recomputed: tuple[Recomputed, ...]
    backends: tuple[BackendShare, ...]
    kernels: tuple[KernelUse, ...]
    origin: str

    def to_json(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return asdict(self, filter=exclude(fields(Recomputed).before, fields(Recomputed).sequence))

    def text(self, most: int = 10) -> str:
        """A page for people, with the `most` largest tensors at the peak."""
        rest = len(self.peak_tensors) - most
        lines = [*_totals(self), *_peak_table(self, most)]
        if rest > 0:
            left = sum(t.bytes for t in self.peak_tensors[most:])
            lines.append(f"  ... and {rest} smaller ones, {format_bytes(left)}")
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.text()


def report(plan: PlacedPlan) -> Report:
    """Everything that there is to say about a plan."""
    tick, tensors = peak_of(plan)
    peak = sum(t.bytes for t in tensors)
    loss, holes = _idle_bytes(plan, tensors)
    program = plan.program
    at_once = parallelism(plan)
    return Report(
        model=plan.lowered.graph.name,
        operators=len(plan.lowered.graph.operators),
        flops=graph_cost(plan.lowered.graph).flops,
        arena_bytes=plan.arena_bytes,
        lower_bound=plan.plan.lower_bound,
        gap=_gap(plan),
        naive_bytes=int(memory.derive(program, overwrite=False).size.sum()) + nested_bytes(plan),
        dynamic_peak_bytes=bounds.refcount_peak(program),
        constants_bytes=plan.constants_bytes,
        workspace_bytes=max((v.spec.nbytes for v in _workspaces(plan)), default=0),
        arena_without_workspace=_arena_without_workspace(plan),
        alignment=plan.alignment,
        alignment_loss=loss,
        fragmentation=holes,
        strategy=plan.plan.strategy,
        status=plan.plan.status,
        peak_tick=tick,
        peak_operator=plan.lowered.tick_name(tick),
        peak_kind=plan.lowered.tick_kind(tick),
        peak_bytes=peak,
        peak_tensors=tensors,
        parallel=plan.schedule.policy,
        parallelism_by_count=at_once.by_count,
        parallelism_by_cost=at_once.by_cost,
        orderings=plan.orderings,
        savings=savings(plan),
        conversions=conversions(plan),
        recomputed=plan.recomputed,
        backends=backend_shares(plan),
        kernels=kernel_uses(plan),
        origin=plan.origin,
    )


def check_budget(plan: PlacedPlan, where: str = "", *, least: Sequence[PlacedPlan] = ()) -> None:
    """Raises BudgetError where a plan needs more than its capacity; `where` stands in front of the message.

    `least` is the smallest plan that recomputing led to, where that was tried and helped.
    """
    needed, available = plan.arena_bytes, plan.plan.capacity
    if needed > available:
        message, found = where + _budget_message(plan, least), tuple(r for p in least for r in p.recomputed)
        least_bytes = min([needed, *(p.arena_bytes for p in least)])
        share = max((r.share for r in found), default=0.0)
        raise BudgetError(message, needed, available, plan.plan.lower_bound, least=least_bytes, share=share)


def _budget_message(plan: PlacedPlan, least: Sequence[PlacedPlan]) -> str:
    """Required, available and excess bytes, whether less would do, and who is alive at the peak of the smallest one."""
    needed, available, bound = plan.arena_bytes, plan.plan.capacity, plan.plan.lower_bound
    verdict = "a smaller plan may exist: give the strategy 'best' and a longer timeout (--timeout 60s)"
    if plan.plan.status is Status.INFEASIBLE:
        verdict = f"proved: no plan of these calls {_terms(plan.schedule.policy)} fits"
    head = (
        f"the plan needs {needed} bytes ({format_bytes(needed)}), {available} bytes ({format_bytes(available)}) are "
        f"available: {needed - available} bytes too much; lower bound {bound} bytes, {verdict}"
    )
    for other in least:
        size, done = other.arena_bytes, "; ".join(again.text for again in other.recomputed)
        head += f". The least that was found has {size} bytes ({format_bytes(size)}): {done}"
    return "\n".join([head, *_peak_table(report([plan, *least][-1]), 10)])


def _workspaces(plan: PlacedPlan) -> list[Value]:
    return [v for v in plan.lowered.values if v.role is Role.WORKSPACE]


def _gap(plan: PlacedPlan) -> float:
    bound = plan.plan.lower_bound
    return plan.arena_bytes / bound - 1 if bound else 0.0


def _arena_without_workspace(plan: PlacedPlan) -> int:
    """The smaller of the same plan and a quick new one by the best of all strategies, with workspaces of no bytes.

    Only the former where operators may run at once: a new one would have to be made safe again.
    """
    workspaces = [plan.chunk_of(v.id) for v in _workspaces(plan) if not v.is_view]  # others lie in those of tensors
    if not workspaces:
        return plan.arena_bytes
    size = plan.problem.size.copy()
    size[workspaces] = 0
    lean = evolve(plan.problem, size=size)
    kept = arena_bytes(lean, plan.plan.offset)
    if plan.schedule.policy or kept == bounds.lower_bound(lean):
        return kept
    return min(kept, solvers.solve(lean, nodes=LEAN_NODES).arena_bytes)


def _idle_bytes(plan: PlacedPlan, tensors: Iterable[PeakTensor]) -> tuple[int, int]:
    """Bytes of the arena that hold nothing at the peak: lost to alignment, and the other holes."""
    spans = sorted((t.offset, t.offset + t.bytes) for t in tensors)
    loss = holes = top = 0
    for low, high in [*spans, (plan.arena_bytes, plan.arena_bytes)]:
        gap = max(low - top, 0)
        aligned = min(gap, -top % plan.alignment)
        loss, holes, top = loss + aligned, holes + gap - aligned, max(top, high)
    return loss, holes


def _terms(policy: str) -> str:
    return f"with parallel={policy!r}" if policy else "in this order"


def _totals(found: Report) -> list[str]:
    gap = (
        f"arena is {found.gap:.2%} above; the bound may be unattainable"
        if found.gap
        else f"met: these calls {_terms(found.parallel)} fit in no smaller arena"
    )
    rows = [
        ("arena", found.arena_bytes, f"strategy {found.strategy}, {found.status}"),
        ("lower bound", found.lower_bound, gap),
        ("dynamic peak", found.dynamic_peak_bytes, "reference counting, nothing overwritten"),
        ("naive", found.naive_bytes, "every tensor but views has bytes of its own"),
        ("constants", found.constants_bytes, "outside of the arena"),
        (
            "largest workspace",
            found.workspace_bytes,
            f"without workspaces the arena is {format_bytes(found.arena_without_workspace)}",
        ),
        ("alignment loss", found.alignment_loss, f"at the peak, alignment {found.alignment}"),
        ("fragmentation", found.fragmentation, "other bytes that are idle at the peak"),
    ]
    rows += [row for ordering in found.orderings for row in _order_rows(ordering)]
    rows += _savings_rows(found.savings) + _conversion_rows(found.conversions) + _again_rows(found.recomputed)
    head = f"{found.model}: {counted(found.operators, 'operator')}, {found.flops / 1e6:,.1f} million operations a run"
    if found.parallel:
        head += (
            f"\n  at once ({found.parallel}): {found.parallelism_by_count:.2f} calls on average, "
            f"{found.parallelism_by_cost:.2f} by cost"
        )
    if found.backends:
        head += f"\n  computed by {shares_text(found.backends)}"
    if found.origin:
        head += f"\n  plan: {found.origin}"
    return [head] + [f"  {name:<18}{size:>14} B {format_bytes(size):>12}   {why}" for name, size, why in rows]


def _again_rows(found: Sequence[Recomputed]) -> list[tuple[str, int, str]]:
    return [("without that budget", again.plain_bytes, again.text) for again in found]


def _savings_rows(found: Savings) -> list[tuple[str, int, str]]:
    told = (
        ("joined in place", found.nested, "input", *_are("computed inside what {} joined to", "it is", "they are")),
        ("views", found.views, "output", "is a view, and not copied", "are views, and not copied"),
        ("overwritten", found.overwrites, "output", *_are("written over what dies")),
        ("copied", found.copies, "input", *_are("copied to where {} needed", "it is", "they are")),
    )
    return [(name, s.bytes, agreed(s.tensors, *words)) for name, s, *words in told if s.tensors]


def _conversion_rows(found: Sequence[Conversion]) -> list[tuple[str, int, str]]:
    if not found:
        return []
    names = ", ".join(f"{c.tensor} for {c.reader}" for c in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    head = agreed(len(found), "tensor", *_are("copied in another order of axes"))
    return [("layout conversions", sum(c.bytes for c in found), f"{head}: {names}{more}")]


def _are(what: str, one: str = "", more: str = "") -> tuple[str, str]:
    """What is said of one, and of more."""
    return f"is {what.format(one)}", f"are {what.format(more)}"


def _order_rows(found: Ordering) -> list[tuple[str, int, str]]:
    verdict = "met" if found.is_proved else "it may be unattainable"
    return [
        ("order given", found.given_bytes, "most bytes alive at once, before anything is nested"),
        ("order chosen", found.chosen_bytes, f"the same in the order {found.order!r}"),
        ("any order", found.bound, f"{found.claim}: {verdict}"),
    ]


def _peak_table(found: Report, most: int) -> list[str]:
    operator = f"{found.peak_operator} {found.peak_kind}".rstrip()
    where = f"tick {found.peak_tick} ({operator})"
    head = f"peak in {where}: {found.peak_bytes} B alive"
    if found.parallel:
        head = f"peak: {found.peak_bytes} B may be alive at once, the last of them written in {where}"
    rows = [("tensor", "operator", "shape", "bytes", "share", "lifetime", "offset")]
    for t in found.peak_tensors[:most]:
        shape = "x".join(map(str, t.shape)) or "scalar"
        operator = f"{t.operator} {t.kind}".rstrip()
        rows.append((t.name, operator, shape, str(t.bytes), f"{t.share:.1%}", f"[{t.begin}, {t.end})", str(t.offset)))
    return [head, *(f"  {line}" for line in in_columns(rows))]
