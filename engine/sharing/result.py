"""One arena for several networks: where each has its bytes, and how good that is."""

from typing import Any

from attrs import frozen

from allocator.problem import Bound, Status
from engine.api import Executable
from engine.check.shared import Link
from engine.execution_plan import ExecutionPlan
from engine.executor.arenas import OWN_ARENA, Arena, GivenArena, alignment_of, arena_at
from engine.system.arrays import aligned_empty
from engine.text.errors import NoMemoryError
from engine.text.tables import indented_table, joined
from engine.text.units import counted, format_bytes

_HEAD = ("network", "scratch", "state", "alone", "scratch at", "state at", "runs beside")


@frozen(eq=False)
class SharedModel:
    """A network in a shared arena. Offsets count from the first byte of that arena, those of `plan` from byte `first`.

    `state_bytes` must survive from run to run: parameters. `scratch_bytes` are needed during a run alone. An arena of
    its own would have `separate_bytes`.
    """

    name: str
    plan: ExecutionPlan
    first: int
    state_offset: int
    state_bytes: int
    scratch_offset: int
    scratch_bytes: int
    separate_bytes: int


@frozen(eq=False)
class SharedPlan:
    """One arena of `arena_bytes` for all `models`; no layout of their plans has fewer bytes than `bound`.

    `concurrent` has those that may run at the same time, as pairs of their numbers. `pipeline` has outputs that lie
    where inputs of others lie; the networks of each group of `same_state`, by number, have the same parameters.
    """

    models: tuple[SharedModel, ...]
    concurrent: tuple[tuple[int, int], ...]
    arena_bytes: int
    bound: Bound
    pipeline: tuple[Link, ...] = ()
    same_state: tuple[tuple[int, ...], ...] = ()

    @property
    def separate_bytes(self) -> int:
        """The bytes of an arena for each network."""
        return sum(model.separate_bytes for model in self.models)

    @property
    def lower_bound(self) -> int:
        """The bytes of the bound."""
        return self.bound.nbytes

    @property
    def status(self) -> Status:
        """Whether the arena is proved to be the smallest."""
        return Status.OPTIMAL if self.arena_bytes == self.lower_bound else Status.FEASIBLE

    @property
    def alignment(self) -> int:
        """The number of bytes of which the address of the arena must be a multiple."""
        return max(alignment_of(model.plan) for model in self.models)

    def executables(self, *, arena: Any = OWN_ARENA, debug: str = "") -> tuple[Executable, ...]:
        """Returns an executable of each network, in their order, all in one arena.

        `arena` and `debug` are those of `ExecutionPlan.executable`. A run raises ArenaInUseError while a network runs
        that has bytes in common with it. Raises OptionError, NoMemoryError.
        """
        if arena is OWN_ARENA:
            try:
                block = aligned_empty(self.arena_bytes, self.alignment)
            except MemoryError as error:
                raise NoMemoryError(
                    f"an arena of {self.arena_bytes} bytes cannot be allocated on this machine"
                ) from error
        else:
            block = arena_at(arena, self.arena_bytes, self.alignment, "the shared plan")
        state = {number: owner for group in self.same_state for owner in [object()] for number in group}
        parts = ((m.plan, block[m.first : m.first + m.plan.arena_bytes]) for m in self.models)
        lent = ((plan, GivenArena(Arena((part,)), state.get(number))) for number, (plan, part) in enumerate(parts))
        return tuple(plan.executable(arena=arena, debug=debug) for plan, arena in lent)

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return {
            "arena_bytes": self.arena_bytes,
            "lower_bound": self.lower_bound,
            "status": self.status.value,
            "alignment": self.alignment,
            "separate_bytes": self.separate_bytes,
            "pipeline": [self._link_data(link) for link in self.pipeline],
            "models": [self._model_data(number) for number in range(len(self.models))],
        }

    def text(self) -> str:
        """Returns a table of the networks, and how good the arena is."""
        saved = self.separate_bytes - self.arena_bytes
        proof = (
            "no arena has less"
            if self.status is Status.OPTIMAL
            else f"no arena has less than {format_bytes(self.lower_bound)} ({self.lower_bound} B)"
        )
        head = (
            f"{counted(len(self.models), 'network')} in one arena of {self.arena_bytes} B "
            f"({format_bytes(self.arena_bytes)}); {proof}"
        )
        rows = [self._row(number) for number in range(len(self.models))]
        sums = f"an arena for each: {format_bytes(self.separate_bytes)}, {format_bytes(abs(saved))} "
        sums += "more" if saved >= 0 else "less"
        in_place = [
            f"in place: {self.models[link.giver].name}: {link.output} = {self.models[link.taker].name}: {link.input}"
            for link in self.pipeline
        ]
        groups = (group for group in self.same_state if len(group) > 1)
        states = ["the same state: " + ", ".join(self.models[i].name for i in group) for group in groups]
        return joined((head, *indented_table(_HEAD, rows, {1, 2, 3, 4, 5}), *in_place, *states, sums))

    def __repr__(self) -> str:
        """Returns one line."""
        return f"<{counted(len(self.models), 'network')} in an arena of {self.arena_bytes} B, {self.status}>"

    def _beside(self, number: int) -> list[str]:
        """Returns the names of the networks that may run at the same time as one."""
        others = (sum(pair) - number for pair in self.concurrent if number in pair)
        return [self.models[other].name for other in sorted(others)]

    def _row(self, number: int) -> tuple[str, ...]:
        model = self.models[number]
        return (
            model.name,
            *map(format_bytes, (model.scratch_bytes, model.state_bytes, model.separate_bytes)),
            str(model.scratch_offset),
            str(model.state_offset) if model.state_bytes else "",
            ", ".join(self._beside(number)),
        )

    def _link_data(self, link: Link) -> dict[str, str]:
        giver, taker = self.models[link.giver].name, self.models[link.taker].name
        return {"giver": giver, "output": link.output, "taker": taker, "input": link.input}

    def _model_data(self, number: int) -> dict[str, Any]:
        model = self.models[number]
        return {
            "model": model.name,
            "scratch_bytes": model.scratch_bytes,
            "scratch_offset": model.scratch_offset,
            "state_bytes": model.state_bytes,
            "state_offset": model.state_offset,
            "separate_bytes": model.separate_bytes,
            "concurrent": self._beside(number),
            "same_state": [
                self.models[i].name for group in self.same_state if number in group for i in group if i != number
            ],
        }
