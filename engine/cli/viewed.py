"""What `arenaplan view` is given, as plans to look at: models, buffers in files, saved traces."""

from argparse import ArgumentParser, Namespace

from attrs import frozen

from allocator import solvers
from allocator.errors import ProblemError
from allocator.io import formats
from allocator.io.instance import Instance, in_names
from allocator.problem import FREE, NO_CAPACITY, Plan
from engine.cli.common import add_parallel, add_planning, add_running
from engine.cli.optimising import add_optimise
from engine.cli.trace import add_mode, traced
from engine.cli.validation import validated
from engine.cli.zoo import is_zoo
from engine.errors import OptionError
from engine.exporters.html import titled
from engine.lives import Lives, lives
from engine.readers import is_saved_trace, read_trace
from engine.viewer.buffers import buffer_lives
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


def add_options(parser: ArgumentParser) -> None:
    """What is planned and run."""
    add_optimise(parser)
    add_planning(parser)
    add_parallel(parser)
    add_mode(parser)
    add_running(parser)


def viewed(arguments: Namespace) -> View:
    """The plan that a command line asks for. Raises the errors of readers and of the planner."""
    found = _found(arguments)
    title = " · ".join(filter(None, (titled(found.facts), arguments.told)))
    return View(title, pack(found, title))


def _found(arguments: Namespace) -> Lives:
    file = arguments.file
    if not is_zoo(file) and is_saved_trace(file):
        return lives(read_trace(file))
    if not is_zoo(file) and file.suffix.lower() in _BUFFERS:
        return _buffers(arguments)
    return lives(traced(arguments))


def _buffers(arguments: Namespace) -> Lives:
    if arguments.mode != "static":
        raise OptionError(f"{arguments.file} holds buffers, of which there is no dynamic run to show")
    _refuse_others(arguments)
    instance = formats.read(arguments.file)
    is_kept = arguments.strategy == solvers.BEST and not arguments.anew and _is_placed(instance)
    plan = _as_placed(instance, arguments) if is_kept else _placed(instance, arguments)
    return buffer_lives(arguments.file.name, instance, plan)


def _refuse_others(arguments: Namespace) -> None:
    """Raises OptionError for an option that would change nothing."""
    parser = ArgumentParser()
    add_options(parser)
    plain = vars(parser.parse_args([]))
    given = [name for name in plain.keys() - _OF_BUFFERS if vars(arguments)[name] != plain[name]]
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(given))
        raise OptionError(f"{arguments.file} holds buffers, which are only placed: {names} is for models")


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
