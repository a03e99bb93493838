"""`arenaplan heaps`: what dynamic allocators would hold where the plan needs one arena."""

from argparse import ArgumentParser, Namespace
from typing import Any

from attrs import asdict, frozen

from allocator.errors import OutOfMemoryError
from allocator.heaps import HEAPS, simulate
from allocator.heaps.events import Events
from allocator.problem import NO_CAPACITY, Column
from allocator.progress import each
from engine.api import make_plan
from engine.cli.evictions import run_evictions
from engine.cli.options.common import add_evict, add_planning, add_running, plan_options, print_text
from engine.cli.options.compile import compile_subject
from engine.cli.options.model_flags import add_model
from engine.cli.options.models import load_graph, load_subject
from engine.cli.options.values import add_json, print_json, size
from engine.graph.graph import Graph
from engine.text.tables import in_columns, joined
from engine.trace.to_problem import heap_events
from engine.trace.trace import ARRIVALS, Trace

HELP = "compare a plan with dynamic allocators, simulated on the same tensors"


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of this subcommand."""
    add_model(parser)
    add_planning(parser)
    add_running(parser)
    parser.set_defaults(parallel="")
    parser.add_argument(
        "--capacity",
        metavar="SIZE",
        type=size,
        default=NO_CAPACITY,
        help='most bytes that a heap may hold, such as "8 MiB"',
    )
    add_evict(parser)
    parser.add_argument("--timeline", action="store_true", help="with --json: the bytes after each event, too")
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Prints a line for each heap."""
    if arguments.evict:
        return run_evictions(arguments)
    graph = load_graph(arguments)
    requests = _staged_requests(arguments) if graph.is_symbolic else _planned_requests(graph, arguments)
    rows = [_row(name, requests, arguments.capacity, arguments.timeline) for name in each("heap", tuple(HEAPS))]
    if arguments.json:
        head = {"model": requests.model, "arena_bytes": requests.arena_bytes, "lower_bound": requests.lower_bound}
        print_json(head | {"heaps": [_data(row) for row in rows]})
    else:
        print_text(_text(requests, rows))
    return 0


@frozen(eq=False)
class _Requests:
    """Requests of a dynamic run to a heap, and the arena (in bytes) that replaces the heap."""

    model: str
    arena_bytes: int
    lower_bound: int
    trace: Trace
    events: Events
    blocks: Column

    def place(self, number: int) -> tuple[int, str, str]:
        """Returns the tick, the operator and the tensor of the request with this number in `events`."""
        wanted = (event for event in self.trace if event.kind in ARRIVALS and event.bytes)
        block = int(self.events.id[number])
        first = next(event for event, of in zip(wanted, self.blocks.tolist(), strict=True) if of == block)
        return first.tick, first.operator, first.tensor


def _requests(model: str, arena_bytes: int, lower_bound: int, trace: Trace) -> _Requests:
    return _Requests(model, arena_bytes, lower_bound, trace, *heap_events(trace))


def _planned_requests(graph: Graph, arguments: Namespace) -> _Requests:
    plan = make_plan(graph, budget=arguments.budget, recompute=not arguments.no_recompute, **plan_options(arguments))
    return _requests(graph.name, plan.arena_bytes, plan.plan.lower_bound, plan.trace("dynamic"))


def _staged_requests(arguments: Namespace) -> _Requests:
    """Returns the requests of a run, which decides the sizes; the bound is that of one plan that knows all sizes."""
    subject = load_subject(arguments)
    executable = compile_subject(subject, arguments, "static")
    executable.run(subject.feeds)
    story = executable.stage_report()
    return _requests(story.model, story.arena_bytes, story.known_bound, executable.trace("dynamic"))


@frozen(eq=False)
class _Row:
    """One heap; peaks in bytes.

    `fragmentation` is the worst one: the share of the free bytes outside the largest free block. Where it has no room
    for a tensor, there are no numbers: `note` says why, and `failed_*` which tensor of which operator.
    """

    heap: str
    peak_requested: int = 0
    peak_reserved: int = 0
    fragmentation: float = 0.0
    allocs: int = 0
    frees: int = 0
    segment_allocs: int = 0
    segment_frees: int = 0
    timeline: tuple[tuple[str, list[int]], ...] = ()
    note: str = ""
    failed_tick: int = 0
    failed_operator: str = ""
    failed_tensor: str = ""


def _row(name: str, requests: _Requests, capacity: int, timeline: bool) -> _Row:
    try:
        simulation = simulate(name, requests.events, capacity)
    except OutOfMemoryError as error:
        tick, operator, tensor = requests.place(error.event)
        return _Row(name, note=str(error), failed_tick=tick, failed_operator=operator, failed_tensor=tensor)
    line = simulation.timeline
    columns = {"tick": line.tick, "live": line.live, "reserved": line.reserved, "largest_free": line.largest_free}
    return _Row(
        heap=name,
        peak_requested=simulation.peak_requested,
        peak_reserved=simulation.peak_reserved,
        fragmentation=float(line.fragmentation.max(initial=0.0)),
        allocs=simulation.calls.alloc,
        frees=simulation.calls.free,
        segment_allocs=simulation.calls.segment_alloc,
        segment_frees=simulation.calls.segment_free,
        timeline=tuple((key, column.tolist()) for key, column in columns.items()) if timeline else (),
    )


def _data(row: _Row) -> dict[str, Any]:
    data = asdict(row) | {"timeline": dict(row.timeline)}
    left_out = () if row.note else ("note", "failed_tick", "failed_operator", "failed_tensor")
    return {key: value for key, value in data.items() if value != {} and key not in left_out}


def _text(requests: _Requests, rows: list[_Row]) -> str:
    arena = requests.arena_bytes
    table: list[tuple[str, ...]] = [
        ("heap", "requested", "reserved", "of arena", "fragmentation", "calls", "to system")
    ]
    table.append(("plan", "", f"{arena} B", "100.0%", "", "0", "1"))
    for r in (r for r in rows if not r.note):
        share, calls = f"{r.peak_reserved / max(arena, 1):.1%}", str(r.allocs + r.frees)
        system = str(r.segment_allocs + r.segment_frees)
        numbers = (f"{r.peak_requested} B", f"{r.peak_reserved} B", share, f"{r.fragmentation:.1%}", calls, system)
        table.append((r.heap, *numbers))
    head = f"{requests.model}: one arena, or reference counting on a heap; peaks of one run"
    notes = [f"out of memory in tick {r.failed_tick}, at {_failed(r)}: {r.note}" for r in rows if r.note]
    return joined((head, *in_columns(table, set(range(1, 7))), *notes))


def _failed(row: _Row) -> str:
    return f"{row.failed_tensor!r} of {row.failed_operator}"
