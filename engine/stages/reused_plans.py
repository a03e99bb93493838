"""Stages for new lengths: which of the stages that were planned each is made like, and which are made ahead.

A decoder with a key/value cache asks for lengths that grow by the same step from run to run. Then the stages of some
steps to come are made together. That takes less time than one by one between runs, as what makes them stays in the
caches of the processor.
"""

from collections.abc import Iterator, Mapping

from attrs import define, field

from engine.executor.binding import PackCache
from engine.executor.team import Runner
from engine.graph.bindings import Bindings
from engine.stages.bind import input_shapes
from engine.stages.geometry import OtherChoiceError
from engine.stages.length_ranges import LengthRangePlanner
from engine.stages.reuse import Planner, PlanReuse, ReusedRunner, ReusedStage, plan_reuse
from engine.stages.segments import Memory
from engine.stages.stage import Stage, Terms
from engine.stages.stage_runner import StageRunner
from engine.stages.task import Template
from engine.text.errors import EngineError
from ops.tensor.errors import OpError

MOST_MODELS = 4
"""Stages that new lengths are made like, at most: each keeps its plan and its bound calls."""
MOST_AHEAD = 4
"""Stages that are made ahead, at most; a run that makes them takes longer. tools/bench_stages.py times a decoder."""
_SURE = 2
"""Equal steps in a row after which another one is expected."""


@define(eq=False)
class Growth:
    """The latest lengths that were asked for, and by how much each grew. `equal` counts such steps in a row."""

    latest: Mapping[str, int] = field(factory=dict)
    step: Mapping[str, int] = field(factory=dict)
    equal: int = 0

    def note(self, lengths: Mapping[str, int]) -> None:
        """Takes up the next lengths."""
        step = {name: length - self.latest.get(name, length) for name, length in lengths.items()}
        self.equal = self.equal + 1 if step == self.step else 1
        self.latest, self.step = lengths, step

    def following(self) -> Iterator[dict[str, int]]:
        """Yields the lengths that are expected next: no more than there were equal steps."""
        count = min(self.equal, MOST_AHEAD) if self.equal >= _SURE and any(self.step.values()) else 0
        for turn in range(1, count + 1):
            yield {name: length + turn * self.step[name] for name, length in self.latest.items()}


@define(eq=False)
class ReusedPlans:
    """Makes stages for new lengths from those that were planned before, where that is right.

    A stage that had to be planned becomes a model for the lengths to come when the next new lengths are asked for, as
    long as models before it were of use.
    """

    template: Template
    terms: Terms
    packs: PackCache
    planner: Planner
    _latest: list[StageRunner] = field(factory=list)
    _models: list[PlanReuse] = field(factory=list)
    _spare: int = 2
    _growth: Growth = field(factory=Growth)
    _ahead: dict[tuple[tuple[str, int], ...], ReusedRunner] = field(factory=dict)

    def stage(self, bindings: Bindings) -> tuple[Stage, ...]:
        """Returns the stage for some lengths; () where they must be planned."""
        if isinstance(self.planner, LengthRangePlanner):
            self.planner.check(bindings.lengths)
        self._growth.note(bindings.lengths)
        ready = self._ahead.get(_key(bindings)) if not bindings.data else None
        if ready:
            return (ready.stage,)
        self._ahead.clear()  # other lengths than expected
        self._learn()
        for model in self._models:
            try:
                stage = model.stage(bindings)
            except (OtherChoiceError, OpError):
                continue
            self._models.remove(model)
            self._models.insert(0, model)
            self._spare += 1
            return (stage,)
        return ()

    def runner(self, stage: Stage, memory: Memory, runner: Runner) -> StageRunner | ReusedRunner:
        """Binds the calls of a stage to the bytes of the arena."""
        if isinstance(stage, ReusedStage):
            ready = self._ahead.pop(_key(stage.before.bindings), None)
            if ready and ready.stage is stage:
                return ready
            bound = stage.reuse.runner(stage, memory, runner)
            self._look_ahead(stage.reuse, memory, runner)
            return bound
        planned = StageRunner(stage, memory, self.packs, runner)
        self._latest = [planned] if stage.number == 1 and stage.is_last else []
        return planned

    def forget(self) -> None:
        """Drops all stages whose calls are bound to bytes that are no longer those of the arena."""
        self._latest.clear()
        self._models.clear()
        self._ahead.clear()

    def _learn(self) -> None:
        """Makes the latest planned stage a model."""
        if self._latest and self._spare:
            self._spare -= 1
            learned = plan_reuse(self.template, self.terms, self._latest[0], self.packs, self.planner)
            self._models = [*learned, *self._models][:MOST_MODELS]
        self._latest.clear()

    def _look_ahead(self, model: PlanReuse, memory: Memory, runner: Runner) -> None:
        """Makes the stages of the lengths that are expected next, up to the first that the model does not fit.

        Its error is raised when, and if, these lengths are asked for.
        """
        if self.template.data:
            return
        for lengths in self._growth.following():
            try:
                if isinstance(self.planner, LengthRangePlanner):
                    self.planner.check(lengths)
                bindings = Bindings(lengths, input_shapes(self.template.graph, lengths))
                stage = model.stage(bindings)
                if not memory.has(stage.after.top):
                    return
                self._ahead[_key(bindings)] = model.runner(stage, memory, runner)
            except (OtherChoiceError, OpError, EngineError):
                return


def _key(bindings: Bindings) -> tuple[tuple[str, int], ...]:
    return tuple(bindings.lengths.items())
