"""`arenaplan fit`: the largest length of a dimension whose plan keeps within a budget."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from functools import partial

from allocator.io.files import check_folder, write_whole
from allocator.problem import NO_CAPACITY
from engine.budgets.fit import Axis, search_fit
from engine.budgets.fitted import fit_chart
from engine.cli.ladder import NO_FIT
from engine.cli.options.common import add_parallel, add_planning, is_planning_option, plan_options, print_text
from engine.cli.options.model_flags import add_model
from engine.cli.options.models import named_model
from engine.cli.options.values import add_json, print_json
from engine.cli.options.vary import Vary, add_vary, check_names
from engine.cli.sweep import chart_path
from engine.graph.graph import Graph
from engine.models.named import NamedModel, is_length, with_value
from engine.models.zoo import is_zoo, options_of
from engine.pictures.matplotlib import PICTURES, picture
from engine.planning.options import Options
from engine.text.errors import ModelError, OptionError

HELP = "find the largest length of a dimension, such as the batch, that fits a budget"


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of this subcommand."""
    add_model(parser)
    add_vary(parser, "a length to find the largest of: a range with both ends, or values; two give a frontier")
    add_planning(parser)
    add_parallel(parser)
    parser.add_argument(
        "--chart",
        metavar="FILE",
        type=chart_path,
        help=f"draw arenas by length with the budget: {', '.join(PICTURES)}; needs matplotlib (extra `charts`)",
    )
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Prints the largest lengths, as a table or JSON."""
    if arguments.budget == NO_CAPACITY:
        raise OptionError("fit needs a budget to fit: give --budget SIZE, such as --budget 512MiB")
    if not arguments.vary:
        raise OptionError("fit needs a length to vary: give --vary NAME=LOW:HIGH, such as --vary batch=1:256")
    check_names(arguments.vary)
    if arguments.chart is not None:
        check_folder(arguments.chart)
    axes = [_axis(one) for one in arguments.vary]
    named = named_model(arguments)
    _check_open(named, [axis.name for axis in axes])
    title = str(named.model) if is_zoo(named.model) else named.model.name
    result = search_fit(title, partial(_load, named), arguments.budget, axes, Options(**plan_options(arguments)))
    if arguments.chart is not None:
        write_whole(arguments.chart, picture(fit_chart(result), arguments.chart.suffix.lower()))
    if arguments.json:
        print_json(result.to_json())
    else:
        print_text(result.text())
    return 0 if result.largest else NO_FIT


def _axis(one: Vary) -> Axis:
    if is_planning_option(one.name):
        raise OptionError(f"fit varies lengths, and {one.name} is an option of planning; arenaplan sweep varies these")
    if one.is_range:
        return Axis(one.name, range(one.low, one.high + 1))
    for value in one.values:
        if not is_length(value):
            raise OptionError(f"{one.name}={value[:40]} is no length of a dimension; give an integer from 0 on")
    return Axis(one.name, sorted(map(int, one.values)))


def _load(named: NamedModel, lengths: Mapping[str, int]) -> Graph:
    for name, length in lengths.items():
        named = with_value(named, name, str(length))
    return named.load()


def _check_open(named: NamedModel, names: list[str]) -> None:
    """Raises ModelError for a name that the model has not, with the way to give a dimension that name."""
    if is_zoo(named.model):
        options = options_of(named.model)
        for name in names:
            if name not in options:
                raise ModelError(f"{named.model} has no length {name!r}; its options are {', '.join(options)}")
        return
    graph = named.read()
    for name in names:
        if name not in graph.symbols:
            there, way = ", ".join(graph.symbols), "Name a dimension"
            if not there:
                there, way = "none", "The file fixes all its lengths: export it with an open one, and name that"
            raise ModelError(
                f"{named.model} leaves no dimension {name!r} open; names that are open: {there}. {way} with --shape, "
                f"for example --shape {_example(graph, name)}"
            )


def _example(graph: Graph, name: str) -> str:
    """Returns the shape of the first input with the name in place of its first dimension."""
    for var in graph.inputs.values():
        if var.shape:
            return f"{var.name}={','.join([name, *map(str, var.shape[1:])])}"
    return f"x={name},3,224,224"
