"""What `arenaplan view` is given, as plans to look at: models, buffers in files, saved traces."""

from argparse import Namespace

from attrs import frozen

from allocator import solvers
from allocator.errors import ProblemError
from allocator.io import formats
from allocator.io.instance import Instance, in_names
from allocator.problem import FREE, NO_CAPACITY, Plan
from engine.cli.options.unused import refuse_unused
from engine.cli.options.zoo import is_zoo
from engine.cli.trace import add_making, traced
from engine.cli.validation import validated
from engine.exporters.html import titled
from engine.readers import is_saved_trace
from engine.text.errors import OptionError
from engine.trace.rectangles import Rectangles, rectangles_of
from engine.viewer.buffers import buffer_rectangles
from engine.viewer.payload import pack

_BUFFERS = frozenset((".csv", ".txt", ".json", ".plc"))
"""What files of buffers are called; models are called otherwise."""
_OF_BUFFERS = frozenset(("strategy", "timeout", "nodes", "seed"))
"""Options that hold for buffers too: the rest says how buffers are made of a model, and how that is run."""


@frozen(eq=False)
class View:
    """A plan on a page: a line about it, and its data."""

    title: str
    payload: bytes


def viewed(arguments: Namespace) -> View:
    """The plan that a command line asks for. Raises the errors of readers and of the planner."""
    found = _found(arguments)
    title = " · ".join(filter(None, (titled(found.facts), arguments.told)))
    return View(title, pack(found, title))


def _found(arguments: Namespace) -> Rectangles:
    file = arguments.file
    is_saved = is_saved_trace(file)
    if is_saved and arguments.beside is not None:
        raise OptionError(f"{file} is a saved trace, of one plan: name another file beside it, and leave out --beside")
    if not is_saved and not is_zoo(file) and file.suffix.lower() in _BUFFERS:
        return _buffers(arguments)
    return rectangles_of(traced(arguments))


def _buffers(arguments: Namespace) -> Rectangles:
    if arguments.mode != "static":
        raise OptionError(f"{arguments.file} holds buffers, of which there is no dynamic run to show")
    why = f"{arguments.file} holds buffers, which are only placed"
    refuse_unused(arguments, why, (add_making,), _OF_BUFFERS)
    instance = formats.read(arguments.file)
    is_kept = arguments.strategy == solvers.BEST and not arguments.anew and _is_placed(instance)
    plan = _as_placed(instance, arguments) if is_kept else _placed(instance, arguments)
    return buffer_rectangles(arguments.file.name, instance, plan)


def _is_placed(instance: Instance) -> bool:
    has_place = instance.offset != FREE
    return bool((has_place | (instance.problem.size == 0)).all() and has_place.any())


def _as_placed(instance: Instance, arguments: Namespace) -> Plan:
    """Where the file says. Raises PlanError where two buffers share bytes there."""
    return validated(instance, instance.problem, instance.offset, arguments.file, NO_CAPACITY)


def _placed(instance: Instance, arguments: Namespace) -> Plan:
    limits = {"seconds": arguments.timeout, "nodes": arguments.nodes}
    try:
        return solvers.solve(instance.problem, arguments.strategy, arguments.seed, **limits)
    except ProblemError as error:
        raise type(error)(f"{arguments.file}: {in_names(str(error), instance.ids)}") from error
