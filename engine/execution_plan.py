"""A placed plan that can tell about itself."""

from collections.abc import Callable
from typing import Any, overload

from attrs import fields, frozen

from engine import explain as explaining
from engine import saved as saving
from engine.executor.arenas import OWN_ARENA
from engine.planning.placed import PlacedPlan
from engine.report.report import Report, report
from engine.report.resident import ResidentSet, resident_set
from engine.text.errors import EngineError
from engine.trace.build import IN_TICKS, trace
from engine.trace.trace import Trace

Follow = Callable[..., PlacedPlan]
"""Plans a graph as the plan says that it is given as `embedded`."""
MakeExecutable = Callable[..., Any]
"""Makes an executable of a plan; keywords are those of `ExecutionPlan.executable`."""


def _no_alternatives(plan: PlacedPlan) -> "explaining.Alternatives":
    return explaining.no_alternatives(plan)


def _cannot_follow(*, embedded: "saving.EmbeddedPlan") -> PlacedPlan:
    raise EngineError(f"the plan of one stage cannot be made again from {embedded.source}")


def _cannot_run(plan: PlacedPlan, **_: Any) -> Any:
    raise EngineError(f"the plan of one stage of {plan.lowered.graph.name!r} cannot be run by itself")


def _followed(follow: "Follow", saved: "saving.EmbeddedPlan") -> PlacedPlan:
    return follow(embedded=saved)


@frozen(eq=False)
class ExecutionPlan(PlacedPlan):
    """Everything that an executor needs but the arrays; see `PlacedPlan` for the fields.

    `find_alternatives` plans the same network in other ways; `follow` plans it as a plan says that was saved;
    `make_executable` makes it runnable. It can be pickled and copied, unless it is one stage of a run.
    """

    find_alternatives: "explaining.FindAlternatives" = _no_alternatives
    follow: "Follow" = _cannot_follow
    make_executable: "MakeExecutable" = _cannot_run

    def __reduce__(self) -> Any:
        """Returns how it is pickled: the graph is planned again, with the addresses that are known."""
        if self.follow is _cannot_follow:
            raise EngineError("the plan of one stage cannot be pickled or copied; pickle the executable")
        return _followed, (self.follow, saving.embed(self))

    @property
    def is_stage(self) -> bool:
        """Whether this is the plan of one stage of a run, which cannot be run by itself."""
        return self.make_executable is _cannot_run

    def executable(self, *, arena: Any = OWN_ARENA, mode: str = "static", debug: str = "") -> Any:
        """Returns an `arenaplan.Executable` of this plan; each call makes one, and all share packed weights.

        `arena` is a buffer of at least `arena_bytes` bytes that can be written: one row of unsigned bytes, as a numpy
        array, a tensor with DLPack, or anything with the buffer protocol. Its first bytes that are aligned as the plan
        asks are the arena. A plan in several memories may have a buffer for each: `arena` then maps their names to
        buffers, and a memory that is not named gets bytes of its own. Several executables may have the same buffer, one
        running at a time: a second one raises ArenaInUseError. They are compared by address, within this process: where
        memory is mapped twice, or by several processes, the caller takes care. Without a buffer the executable has an
        arena of its own. `mode` and `debug` are those of `arenaplan.compile`. Raises OptionError for a buffer that
        cannot be the arena, or that has parameters of another executable.
        """
        return self.make_executable(self, arena=arena, mode=mode, debug=debug)

    def report(self) -> Report:
        """Returns the report: the costs of the plan, and the tensors alive at its peak."""
        return report(self)

    def resident_set(self) -> ResidentSet:
        """Returns the resident set to expect of this process, once it runs the plan.

        Call it before `engine.compile`: code and interpreter are measured, so the arena must not be there yet.
        """
        return resident_set(self)

    def trace(self, mode: str = "static", *, heap: str = "", threads: int = IN_TICKS) -> Trace:
        """Returns all allocations, overwrites, views and frees of a "static" or "dynamic" run, in ticks; nothing runs.

        `heap` names a model (`allocator.heaps`) that serves a dynamic run. With `threads`, the times at which calls
        would run on so many are estimated. Raises OptionError, UnknownHeapError.
        """
        return trace(self, mode, heap=heap, threads=threads)

    @overload
    def explain(self) -> "explaining.Explanation": ...

    @overload
    def explain(self, *, tensor: str) -> "explaining.TensorExplanation": ...

    @overload
    def explain(self, *, operator: str) -> "explaining.OperatorExplanation": ...

    def explain(
        self, *, tensor: str = "", operator: str = ""
    ) -> "explaining.Explanation | explaining.TensorExplanation | explaining.OperatorExplanation":
        """Explains why the arena is as large as it is, or one tensor or operator, by its name in a trace.

        Raises UnknownNameError. Other ways to plan are tried as well, which takes seconds for a large network.
        """
        if tensor:
            return explaining.explain_tensor(self, tensor)
        if operator:
            return explaining.explain_operator(self, operator)
        return explaining.explain(self, self.find_alternatives)

    def __repr__(self) -> str:
        """Returns one line: all that is in a plan is more than a screen, or a notebook, should hold."""
        operators, arena = len(self.lowered.graph.operators), self.arena_bytes
        return f"<plan of {self.lowered.graph.name!r}: {operators} operators, arena {arena} B, {self.plan.status}>"


def execution_plan(
    placed: PlacedPlan,
    find_alternatives: "explaining.FindAlternatives" = _no_alternatives,
    follow: "Follow" = _cannot_follow,
    make_executable: "MakeExecutable" = _cannot_run,
) -> ExecutionPlan:
    """Returns the placed plan with its report, its trace and its explanation; the same object where it has them."""
    if isinstance(placed, ExecutionPlan):
        return placed
    return ExecutionPlan(
        **{field.name: getattr(placed, field.name) for field in fields(PlacedPlan)},
        find_alternatives=find_alternatives,
        follow=follow,
        make_executable=make_executable,
    )
