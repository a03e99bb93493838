"""A partition that runs: each part in a worker of its own, and several runs under way at once."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import uuid4

from attrs import asdict, define, field

from engine.executor.feeds import read_feeds
from engine.partitions.actor import Answer, State, forget, run_part
from engine.partitions.result import Part, Partition
from engine.planning.options import FIELDS
from engine.planning.placed import PlacedPlan
from engine.saved import embed
from engine.spool import Contents, spooled_parts
from engine.system.threads import check_threads, cpus
from engine.text.errors import EngineError, OptionError
from engine.workers.names import HERE, PROCESSES
from engine.workers.place import Place
from engine.workers.places import opened_seats
from ops.tensor.spec import Array

Values = dict[str, Array]
_START = State(0, {})
_PATIENCE = 5.0
"""Seconds in which workers that stay let go of their parts."""


@define(eq=False)
class _Actor:
    """A part in its seat. It does one run at a time; `waiting` are the numbers of those that wait for it.

    `at` is the state behind the last run whose answer came. A process that does not have it gets it with the program:
    the folder `spool`, or all its contents where there is none, or the worker's machine does not have it.
    """

    part: Part
    seat: Place
    contents: Contents
    spool: Path | None
    changed: tuple[str, ...]
    key: str = field(factory=lambda: uuid4().hex)
    at: State = _START
    is_fresh: bool = True
    deaths: int = 0
    waiting: deque[int] = field(factory=deque)
    running: int = -1
    future: "Future[Any] | None" = None

    def start(self, feeds: Mapping[str, Array]) -> None:
        """Sends a run."""
        program = (self.spool or self.contents) if self.is_fresh else None
        at = self.at if self.is_fresh else State(self.at.runs, {})
        self.future = self.seat.submit(run_part, self.key, feeds, at, program, self.changed)

    def end(self) -> Answer | None:
        """Returns the answer of the run; None where it has to be sent again. Raises the error of a part."""
        future, self.future = self.future, None
        if future is None:
            return None
        if future.cancelled() or future.exception() is not None:
            self.deaths += 1
            self.is_fresh = True
            error = self.seat.verdict(future, self.deaths)
            if error is not None:
                raise error
            return None
        answer: Answer | None = future.result()
        if answer is None and self.is_fresh:
            self.spool = None
        self.is_fresh = answer is None
        if answer is not None:
            self.at, self.deaths = answer.state, 0
        return answer


@define(eq=False)
class Pipeline:
    """A partition whose parts are actors: workers that keep their part, its arena and its weights.

    A worker that dies is replaced: its part is sent again, with the parameters as they were before the run that it did.
    What parts send to each other goes through this process. After an error nothing more can be run.
    """

    partition: Partition
    _actors: tuple[_Actor, ...]
    _values: dict[int, Values] = field(factory=dict, init=False)
    _numbers: Iterator[int] = field(factory=count, init=False)
    _is_broken: bool = field(default=False, init=False)
    _is_closed: bool = field(default=False, init=False)

    def run(self, feeds: Mapping[str, Any]) -> Values:
        """Runs once; returns the outputs by name. Raises what `Executable.run` does, and WorkerError."""
        (outputs,) = self.map([feeds])
        return outputs

    def map(self, batches: Iterable[Mapping[str, Any]], *, ahead: int = 0) -> Iterator[Values]:
        """Yields the outputs of runs with these inputs, in their order.

        At most `ahead` have been read and not been yielded, by default two for each part. Runs of a network with
        parameters follow each other as they do in one process.
        """
        if not isinstance(ahead, int) or isinstance(ahead, bool) or ahead < 0:
            raise OptionError(f"ahead {ahead!r} is no number of runs from 0 on")
        return self._mapped(iter(batches), ahead or 2 * len(self._actors))

    @property
    def parameters(self) -> Values:
        """Returns the values of the parameters that runs change, by name."""
        values = {n: p.initial for part in self.partition.parts for n, p in _parameters(part).items()}
        return values | {name: array for actor in self._actors for name, array in actor.at.values.items()}

    def _mapped(self, batches: Iterator[Mapping[str, Any]], ahead: int) -> Iterator[Values]:
        if self._is_closed:
            raise EngineError("the block of the pipeline has ended, and its workers with it; open it again")
        if self._is_broken:
            raise EngineError(f"a run of {self.partition.graph.name!r} in parts has failed; open it again")
        specs = {name: var.spec for name, var in self.partition.graph.inputs.items()}
        is_read, self._is_broken = False, True  # until the end: a caller may stop in the middle
        while True:
            while not is_read and len(self._values) < ahead:
                feeds = next(batches, None)
                is_read = feeds is None
                if feeds is not None:
                    number = next(self._numbers)
                    self._values[number] = dict(read_feeds(feeds, specs))
                    self._actors[0].waiting.append(number)
            if not self._values:
                break
            yield from self._step()
        self._is_broken = False

    def _step(self) -> Iterator[Values]:
        """Starts what can start and waits until something has ended; yields the outputs of a run that is complete."""
        for actor in self._actors:
            if actor.future is None and (actor.running >= 0 or actor.waiting):
                actor.running = actor.running if actor.running >= 0 else actor.waiting.popleft()
                values = self._values[actor.running]
                actor.start({name: values[name] for name in actor.part.part.graph.inputs})
        done, _ = wait([a.future for a in self._actors if a.future is not None], return_when=FIRST_COMPLETED)
        for position, actor in reversed([*enumerate(self._actors)]):
            if actor.future is not None and actor.future in done:
                answer = actor.end()
                if answer is not None:
                    yield from self._passed_on(position, answer)

    def _passed_on(self, position: int, answer: Answer) -> Iterator[Values]:
        actor = self._actors[position]
        number, actor.running = actor.running, -1
        values = self._values[number]
        values |= answer.outputs
        if position + 1 < len(self._actors):
            self._actors[position + 1].waiting.append(number)
            return
        del self._values[number]
        whole = self.partition.graph
        yield {name: values[var.name] for name, var in whole.outputs.items()}


@contextmanager
def pipeline(
    partition: Partition, *, on: str = PROCESSES, threads: int = 0, folder: str | PathLike[str] = ""
) -> Iterator[Pipeline]:
    """Opens a partition as a pipeline for the block: each part in a worker of its own.

    `on` is "processes", "here", or "dask://HOST:PORT". Each part computes on `threads` threads; where none are given,
    all parts together have as many as this machine has processors. Workers map the weights, and what kernels make of
    them, from files in memory, or inside `folder`; one on a machine that does not have the files is sent its part.
    Raises OptionError, EngineError.
    """
    check_threads(threads, 0, "the processors of this machine")
    each = threads or max(1, cpus() // len(partition.parts))
    contents = [_contents(part.plan, each) for part in partition.parts]
    with opened_seats(on, len(contents)) as seats, _spools(contents, on, Path(folder) if folder else None) as spools:
        actors = tuple(
            _Actor(part, seat, own, spool, _changed(part))
            for part, seat, own, spool in zip(partition.parts, seats, contents, spools, strict=True)
        )
        pipe = Pipeline(partition, actors)
        try:
            yield pipe
        finally:
            pipe._is_closed = True
            if on != PROCESSES:  # whose processes end
                with suppress(EngineError):
                    wait([actor.seat.submit(forget, actor.key) for actor in actors], timeout=_PATIENCE)


def _spools(
    contents: Sequence[Contents], on: str, folder: Path | None
) -> AbstractContextManager[tuple[Path | None, ...]]:
    """Returns the folders of all parts for a block; none in this process, which has the weights already."""
    if on == HERE:
        return nullcontext((None,) * len(contents))
    return spooled_parts(contents, folder and folder.absolute())


def _contents(plan: PlacedPlan, threads: int) -> Contents:
    plan.options.target.check_is_host()
    options = asdict(plan.options, recurse=False)
    kept = {name: value for name, value in options.items() if name in FIELDS and name != "threads"}
    return Contents(plan.lowered.graph, {**kept, "threads": threads}, embed(plan), {})


def _changed(part: Part) -> tuple[str, ...]:
    return tuple(v.name for v in part.part.graph.updates)


def _parameters(part: Part) -> dict[str, Any]:
    graph = part.part.graph
    return {v.name: graph.parameters[v] for v in graph.updates}
