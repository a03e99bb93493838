"""The report of a plan: totals, the tensors that are alive at the peak, and the bytes that are idle there."""

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import asdict, evolve, fields, frozen
from attrs.filters import exclude

from allocator import bounds, solvers
from allocator.derive import chunks as memory
from allocator.derive.refcount import refcount_peak
from allocator.problem import Status, Witness
from allocator.solvers.base import arena_bytes
from engine.graph.opaque import OpaqueOperator, opaque_operators, opaque_text
from engine.lower.calls import Role, Value, is_again
from engine.lower.costs import operators_cost
from engine.lower.order import Ordering
from engine.planning.placed import Cascaded, Evicted, Optimisation, PlacedPlan, Recomputed
from engine.report.kernels import BackendShare, KernelUse, backend_shares, kernel_uses, shares_text
from engine.report.layers import Layer, layer_table, layers_of
from engine.report.layout_copies import Conversion, conversions
from engine.report.memories import Transfers, memory_table, transfers_of
from engine.report.parallelism import parallelism
from engine.report.peak import PeakTensor, peak_of
from engine.report.savings import Savings, nested_bytes, savings
from engine.text.errors import BudgetError
from engine.text.screen import UNBOUNDED
from engine.text.tables import fitted, indented_table, joined
from engine.text.units import agreed, counted, format_bytes

LEAN_NODES = 4
"""Steps of the search for the arena without workspaces. It starts from the plan, and must not make a report slow."""

MOST_NAMED = 3
"""Layout conversions that the text names one by one."""


@frozen(eq=False)
class Report:
    """The totals of a plan. Sizes in bytes. `arena_bytes` = bytes at the peak + `alignment_loss` + `fragmentation`.

    `naive_bytes`: every tensor that is no view has bytes of its own. `dynamic_peak_bytes`: reference counting without
    overwrites and without fragmentation. `weights_bytes`: constants of the graph; `prepacked_bytes`: copies that
    kernels make of them; `resident_weights_bytes`: what stays in memory of both and of their sources.
    None lies in the arena. `workspace_bytes`: the largest workspace; `arena_without_workspace`: the arena if kernels
    needed none.
    `lower_bound`: no arena is smaller for these calls in this order, with the views and overwrites that were taken;
    it may be unattainable. `bound_reason` says what proves it, and `witness` the tick or the chunks that add up to it;
    it names nothing where a search proved the bound.
    `gap` is arena / lower bound - 1: with 0 the arena is proved to be the smallest (status "optimal"), else it is
    "feasible". `strategy` made the plan. `flops`: operations of one run, as the schemas
    estimate them. Where operators may run at once, `parallel` is the policy that makes that safe, and
    `parallelism_by_*` are upper bounds on how many do on average, by their number and by their estimated cost.
    `orderings`: what the order costs, where the planner searched for one. `savings`: copies that are avoided;
    `conversions`: tensors that are copied into another order of axes.
    `recomputed`: operators that run again to keep within a budget; they are part of `operators` and `flops`, as those
    are that compute again what was dropped between memories.
    `evicted`: what a dynamic run costs that keeps within a budget; empty for all other runs.
    `backends`: the share of each back-end in a run; `kernels`: the kernel of each call.
    `origin`: whether the plan comes from a file, and if it does not although there was one, why.
    `optimisation`: what passes did to the graph before it was planned; empty where none ran.
    `opaque`: operators that nobody implements; the plan cannot run where there are some.
    `target`: the processor that the plan is for, "" for this one.
    `layers`: work and bytes at the peak by layer; empty where names of operators are no paths.
    `transfers`: what several memories cost, of which the arena then has parts behind each other; empty for one arena.
    """

    model: str
    operators: int
    flops: int
    arena_bytes: int
    lower_bound: int
    bound_reason: str
    witness: Witness
    gap: float
    naive_bytes: int
    dynamic_peak_bytes: int
    weights_bytes: int
    prepacked_bytes: int
    resident_weights_bytes: int
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
    evicted: tuple[Evicted, ...]
    backends: tuple[BackendShare, ...]
    kernels: tuple[KernelUse, ...]
    origin: str
    optimisation: tuple[Optimisation, ...]
    opaque: tuple[OpaqueOperator, ...]
    target: str
    layers: tuple[Layer, ...]
    transfers: tuple[Transfers, ...]

    def __repr__(self) -> str:
        """Returns one line; `print` shows the report."""
        arena = f"arena {self.arena_bytes} B, lower bound {self.lower_bound} B, {self.status}"
        return f"<report of {self.model!r}: {self.operators} operators, {arena}>"

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return asdict(
            self,
            filter=exclude(
                fields(Recomputed).before,
                fields(Recomputed).sequence,
                fields(Cascaded).cascades,
                fields(Cascaded).stripes,
            ),
        )

    def text(self, most: int = 10, width: int = UNBOUNDED) -> str:
        """Returns the report as text, with the `most` largest tensors at the peak, in lines of at most `width`."""
        rest = len(self.peak_tensors) - most
        lines = [*_totals(self), *memory_table(self.transfers, width), *_peak_table(self, most, width)]
        if rest > 0:
            left = sum(t.bytes for t in self.peak_tensors[most:])
            lines.append(f"  ... and {rest} smaller ones, {format_bytes(left)}")
        return fitted(joined([*lines, *layer_table(self.layers, most, width)]), width)

    def __str__(self) -> str:
        return self.text()


def report(plan: PlacedPlan) -> Report:
    """Returns the report of a plan."""
    tick, tensors = peak_of(plan)
    peak = sum(t.bytes for t in tensors)
    loss, holes = _idle_bytes(plan, tensors)
    program = plan.program
    at_once, weights = parallelism(plan), plan.weight_memory
    again = [operator for call in plan.lowered.calls if is_again(plan.lowered, call) for operator in call.operators]
    return Report(
        model=plan.lowered.graph.name,
        operators=len(plan.lowered.graph.operators) + len(again),
        flops=operators_cost((*plan.lowered.graph.operators, *again)).flops,
        arena_bytes=plan.arena_bytes,
        lower_bound=plan.plan.lower_bound,
        bound_reason=plan.plan.bound.reason,
        witness=plan.plan.bound.witness,
        gap=_gap(plan),
        naive_bytes=int(memory.derive(program, overwrite=False).size.sum()) + nested_bytes(plan),
        dynamic_peak_bytes=refcount_peak(program),
        weights_bytes=weights.weights_bytes,
        prepacked_bytes=weights.prepacked_bytes,
        resident_weights_bytes=weights.resident_weights_bytes,
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
        evicted=(),
        backends=backend_shares(plan),
        kernels=kernel_uses(plan),
        origin=plan.origin,
        optimisation=plan.optimisation,
        opaque=opaque_operators(plan.lowered.graph),
        target=plan.lowered.target.name,
        layers=layers_of(plan.lowered.graph, tensors),
        transfers=transfers_of(plan),
    )


def check_budget(plan: PlacedPlan, where: str = "", *, least: Sequence[PlacedPlan] = ()) -> None:
    """Raises BudgetError where a plan needs more than its capacity; `where` is put before the message.

    `least` is the smallest plan that more work led to; empty where that was not tried or did not help.
    """
    needed, available = plan.arena_bytes, plan.plan.capacity
    if needed > available:
        message = where + _budget_message(plan, least)
        least_bytes = min([needed, *(p.arena_bytes for p in least)])
        share = sum(done.share for other in least for done in _more_work(other))
        raise BudgetError(message, needed, available, plan.plan.lower_bound, least=least_bytes, share=share)


def _budget_message(plan: PlacedPlan, least: Sequence[PlacedPlan]) -> str:
    """Returns required, available and excess bytes, what is proved, and the peak of the smallest plan."""
    needed, available, bound = plan.arena_bytes, plan.plan.capacity, plan.plan.lower_bound
    verdict = "a smaller plan may exist: give the strategy 'best' and a longer timeout (--timeout 60s)"
    if plan.plan.status is Status.INFEASIBLE:
        verdict = f"proved: no plan of these calls {_terms(plan.schedule.policy)} fits"
    head = (
        f"the plan needs {needed} bytes ({format_bytes(needed)}), {available} bytes ({format_bytes(available)}) are "
        f"available: {needed - available} bytes too much; lower bound {bound} bytes, {verdict}"
    )
    if not least:
        head += "".join(f"; {each.text}" for each in _more_work(plan))
    for other in least:
        size, done = other.arena_bytes, "; ".join(each.text for each in _more_work(other))
        head += f". The smallest arena found has {size} bytes ({format_bytes(size)}): {done}"
    return "\n".join([head, *_peak_table(report([plan, *least][-1]), 10)])


def _more_work(plan: PlacedPlan) -> tuple[Cascaded | Recomputed, ...]:
    """Returns what is computed more than once: rows of cascades, and operators that run again."""
    return (*(cascaded for done in plan.optimisation for cascaded in done.cascades), *plan.recomputed)


def _workspaces(plan: PlacedPlan) -> list[Value]:
    return [v for v in plan.lowered.values if v.role is Role.WORKSPACE]


def _gap(plan: PlacedPlan) -> float:
    bound = plan.plan.lower_bound
    return plan.arena_bytes / bound - 1 if bound else 0.0


def _arena_without_workspace(plan: PlacedPlan) -> int:
    """Returns the arena if workspaces had no bytes: that of this plan, or of a quick new one where that is smaller.

    Where operators may run at once it is that of this plan, since a new one would have to be made safe again; so it is
    in several memories, whose arenas are parts of this one.
    """
    workspaces = [plan.chunk_of(v.id) for v in _workspaces(plan) if not v.is_view]  # others lie in those of tensors
    if not workspaces:
        return plan.arena_bytes
    size = plan.problem.size.copy()
    size[workspaces] = 0
    lean = evolve(plan.problem, size=size)
    kept = arena_bytes(lean, plan.plan.offset)
    if plan.schedule.policy or plan.memories or kept == bounds.lower_bound(lean):
        return kept
    return min(kept, solvers.solve(lean, nodes=LEAN_NODES).arena_bytes)


def _idle_bytes(plan: PlacedPlan, tensors: Iterable[PeakTensor]) -> tuple[int, int]:
    """Returns the bytes that are idle at the peak: those lost to alignment, and those of other holes."""
    spans = sorted((t.offset, t.offset + t.bytes) for t in tensors)
    loss = holes = top = 0
    for low, high in [*spans, (plan.arena_bytes, plan.arena_bytes)]:
        gap = max(low - top, 0)
        aligned = min(gap, -top % plan.alignment)
        loss, holes, top = loss + aligned, holes + gap - aligned, max(top, high)
    return loss, holes


def _terms(policy: str) -> str:
    return f"with parallel={policy!r}" if policy else "in this order"


def _totals(report: Report) -> list[str]:
    gap = (
        f"arena is {report.gap:.2%} above; the bound may be unattainable"
        if report.gap
        else f"met: these calls {_terms(report.parallel)} fit in no smaller arena"
    )
    rows = [
        ("arena", report.arena_bytes, f"strategy {report.strategy}, {report.status}"),
        ("lower bound", report.lower_bound, gap),
        ("dynamic peak", report.dynamic_peak_bytes, "reference counting, nothing overwritten"),
        ("naive", report.naive_bytes, "every tensor except views has bytes of its own"),
        ("weights", report.weights_bytes, "of the model, outside of the arena"),
        ("prepacked", report.prepacked_bytes, "copies of weights that kernels make when they are bound"),
        ("resident weights", report.resident_weights_bytes, "what stays in memory of both and of their sources"),
        (
            "largest workspace",
            report.workspace_bytes,
            f"without workspaces the arena is {format_bytes(report.arena_without_workspace)}",
        ),
        ("alignment loss", report.alignment_loss, f"at the peak, alignment {report.alignment}"),
        ("fragmentation", report.fragmentation, "other bytes that are idle at the peak"),
    ]
    rows += [row for ordering in report.orderings for row in _order_rows(ordering)]
    rows += _savings_rows(report.savings) + _conversion_rows(report.conversions) + _again_rows(report.recomputed)
    rows += [row for evicted in report.evicted for row in _evicted_rows(evicted)]
    head = (
        f"{report.model}: {counted(report.operators, 'operator')}, {report.flops / 1e6:,.1f} million operations a run"
    )
    if report.parallel:
        head += (
            f"\n  at once ({report.parallel}): {report.parallelism_by_count:.2f} calls on average, "
            f"{report.parallelism_by_cost:.2f} by cost"
        )
    for optimisation in report.optimisation:
        head += "".join(f"\n  {text}" for text in (optimisation.text, *(c.text for c in optimisation.cascades)))
    if report.target:
        head += f"\n  planned for target {report.target!r}, not for this processor: it cannot run here"
    elif report.backends:
        head += f"\n  computed by {shares_text(report.backends)}"
    if report.opaque:
        head += f"\n  cannot run: nobody implements {opaque_text(report.opaque)}"
    if report.origin:
        head += f"\n  plan: {report.origin}"
    return [head] + [f"  {name:<18}{size:>14} B {format_bytes(size):>12}   {why}" for name, size, why in rows]


def _again_rows(recomputed: Sequence[Recomputed]) -> list[tuple[str, int, str]]:
    return [("without the budget", again.plain_bytes, again.text) for again in recomputed]


def _evicted_rows(evicted: Evicted) -> list[tuple[str, int, str]]:
    return [
        ("with eviction", evicted.reserved_bytes, evicted.text),
        ("smallest budget", evicted.smallest_budget, evicted.smallest_text),
    ]


def _savings_rows(savings: Savings) -> list[tuple[str, int, str]]:
    inside = "of a concatenation is written directly into its output"
    all_inside = "of concatenations are written directly into their outputs"
    rows = (
        ("joined in place", savings.nested, "input", inside, all_inside),
        ("views", savings.views, "output", "is a view and is not copied", "are views and are not copied"),
        ("overwritten", savings.overwrites, "output", "is computed in place", "are computed in place"),
        ("copied", savings.copies, "input", "is copied into place", "are copied into place"),
    )
    return [(name, s.bytes, agreed(s.tensors, *words)) for name, s, *words in rows if s.tensors]


def _conversion_rows(conversions: Sequence[Conversion]) -> list[tuple[str, int, str]]:
    if not conversions:
        return []
    names = ", ".join(f"{c.tensor} for {c.reader}" for c in conversions[:MOST_NAMED])
    more = f" and {len(conversions) - MOST_NAMED} more" if len(conversions) > MOST_NAMED else ""
    head = agreed(
        len(conversions), "tensor", "is copied into another order of axes", "are copied into another order of axes"
    )
    return [("layout conversions", sum(c.bytes for c in conversions), f"{head}: {names}{more}")]


def _order_rows(ordering: Ordering) -> list[tuple[str, int, str]]:
    verdict = "met" if ordering.is_proved else "it may be unattainable"
    return [
        ("order given", ordering.given_bytes, "most bytes alive at once, before anything is nested"),
        ("order chosen", ordering.chosen_bytes, f"the same in the order {ordering.order!r}"),
        ("any order", ordering.bound, f"{ordering.claim}: {verdict}"),
    ]


def _peak_table(report: Report, most: int, width: int = UNBOUNDED) -> list[str]:
    operator = f"{report.peak_operator} {report.peak_kind}".rstrip()
    where = f"tick {report.peak_tick} ({operator})"
    head = f"peak in {where}: {report.peak_bytes} B alive"
    if report.parallel:
        head = f"peak: {report.peak_bytes} B may be alive at once, the last of them written in {where}"
    columns, rows = ("tensor", "operator", "shape", "bytes", "share", "lifetime", "offset"), []
    for t in report.peak_tensors[:most]:
        shape = "x".join(map(str, t.shape)) or "scalar"
        operator = f"{t.operator} {t.kind}".rstrip()
        rows.append((t.name, operator, shape, str(t.bytes), f"{t.share:.1%}", f"[{t.begin}, {t.end})", str(t.offset)))
    return [head, *indented_table(columns, rows, width=width)]
