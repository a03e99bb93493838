"""What one process measures of itself while it runs a network: memory above what it held before, faults, seconds."""

import hashlib
import multiprocessing
import time
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import define, field, frozen

import ops
from engine.api import Executable, compile_graph
from engine.graph.graph import Graph
from engine.system import process_memory
from engine.system.process_memory import Faults
from engine.system.timing import Stopwatch
from ops.schema.schema import Thunk
from ops.tensor.spec import Array

Outputs = Mapping[str, Array]
Run = Callable[[], Outputs]

_MIB = 2**20
_INTERVAL = 1e-3
"""Seconds between two samples, at least."""
_QUIET = 2
"""Runs of next to nothing that tell the noise floor."""
_ARRAYS = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)


@frozen
class Watched:
    """Bytes above the resident set just before a run: the system's peak, the peak by sampling, and those held after it.

    `samples` are how many there were. `huge_bytes` lay in huge pages. None: this system, or this installation, does not
    tell.
    """

    peak_bytes: int | None
    sampled_bytes: int | None
    samples: int
    held_bytes: int | None
    huge_bytes: int | None


@frozen
class Traced:
    """Bytes that tracemalloc saw in a run, at its peak: numpy's arrays when a kernel began, and all at any time."""

    numpy_bytes: int
    traced_bytes: int


@frozen
class Timed:
    """One run."""

    seconds: float
    faults: Faults | None


def watch(run: Run) -> Watched:
    """Runs once and returns its memory; memory-profiler samples from a process of its own, where it is installed."""
    levels: list[tuple[int | None, ...]] = []
    samples = _sampled(lambda: levels.append(_high_water(run)))
    before, peak, after = levels[0]
    base = before if before is not None else (samples or [0])[0]
    return Watched(
        peak_bytes=_above(before, peak),
        sampled_bytes=max(samples) - base if samples else None,
        samples=len(samples),
        held_bytes=_above(before, after),
        huge_bytes=process_memory.huge_bytes(),
    )


def noise_bytes() -> int | None:
    """Returns the largest peak of a run that needs next to nothing: differences below it mean nothing."""
    graph = Graph("nothing")
    graph.output(ops.relu(graph.input("x", (16,))), "y")
    exe, feeds = compile_graph(graph, optimise=0), {"x": np.zeros(16, np.float32)}
    peaks = [watch(lambda: exe.run(feeds)).peak_bytes for _ in range(_QUIET + 1)]
    measured = [peak for peak in peaks[1:] if peak is not None]
    return max(measured) if measured else None


def trace_arrays(executable: Executable, feeds: Outputs) -> Traced:
    """Runs once more, without copies of the outputs; nothing counts that was there before."""
    census = Census()
    tracemalloc.start()
    try:
        executable.executor.run_timed(feeds, {}, False, census)
        return Traced(census.peak, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def time_runs(run: Run, runs: int) -> list[Timed]:
    """Returns the times of a first run and of `runs` more; each run's outputs are gone before the next."""
    return [_timed(run) for _ in range(runs + 1)]


def digest(outputs: Outputs) -> str:
    """Returns a hash that is the same for the same names, shapes, dtypes and bits."""
    digester = hashlib.sha256()
    for name, array in outputs.items():
        digester.update(f"{name!r} {array.shape} {array.dtype}".encode())
        digester.update(array.tobytes())
    return digester.hexdigest()


@define(eq=False)
class Census(Stopwatch):
    """Counter of the bytes of numpy's arrays whenever a kernel is about to run."""

    peak: int = field(default=0)

    def around(self, tick: int, thunk: Thunk) -> Thunk:  # noqa: ARG002 (a census has no use for the time)
        """Returns the same thunk, with a count before it."""

        def run() -> None:
            traces = tracemalloc.take_snapshot().filter_traces([_ARRAYS]).traces
            self.peak = max(self.peak, sum(trace.size for trace in traces))
            thunk()

        return run


@define(eq=False)
class AnonymousPeak(Stopwatch):
    """The most bytes of this process that are no pages of files (RssAnon), above those at first: behind calls."""

    before: int | None = field(factory=process_memory.anonymous_bytes)
    peak: int | None = None

    def around(self, tick: int, thunk: Thunk) -> Thunk:  # noqa: ARG002 (bytes, not seconds)
        """Returns the same thunk, with a look at the bytes behind it."""

        def run() -> None:
            thunk()
            self.look()

        return run

    def look(self) -> None:
        """Notes the bytes of this moment."""
        above = _above(self.before, process_memory.anonymous_bytes())
        self.peak = above if self.peak is None or above is None else max(self.peak, above)


def _timed(run: Run) -> Timed:
    before, begin = process_memory.page_faults(), time.perf_counter()
    outputs = run()
    seconds, after = time.perf_counter() - begin, process_memory.page_faults()
    del outputs
    if before is None or after is None:
        return Timed(seconds, None)
    return Timed(seconds, Faults(after.minor - before.minor, after.major - before.major))


def _high_water(run: Run) -> tuple[int | None, int | None, int | None]:
    """Returns the resident bytes before a run, at its peak, and after it when its outputs are gone."""
    was = process_memory.peak_bytes()
    reset = process_memory.reset_peak()
    before = process_memory.resident_bytes()
    outputs = run()
    peak = process_memory.peak_bytes()
    del outputs
    if not reset and peak is not None and was is not None and peak <= was:
        peak = None  # an older peak hides this one
    return before, peak, process_memory.resident_bytes()


def _above(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(after - before, 0)


def _sampled(function: Callable[[], None]) -> list[int]:
    """Calls a function once, and returns the resident bytes sampled meanwhile; none without memory-profiler."""
    try:
        import memory_profiler  # noqa: PLC0415 (optional)
    except ImportError:
        function()
        return []
    spawn: Any = multiprocessing
    spawn.set_start_method("spawn", force=True)  # a fork would share our pages, and each write to one would be a fault
    errors = list[BaseException]()

    def guarded() -> None:  # after an error, memory-profiler would wait for its other process forever
        try:
            function()
        except BaseException as error:
            errors.append(error)

    samples = memory_profiler.memory_usage((guarded, (), {}), interval=_INTERVAL, max_iterations=1)
    if errors:
        raise errors.pop()
    return [int(sample * _MIB) for sample in samples]
