"""`arenaplan explain --budget`: the cheapest way to a budget, with the command line that takes it."""

import re
import shlex
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import count, pairwise, takewhile

from allocator.problem import NO_CAPACITY
from engine.budgets.ladder import Ladder
from engine.budgets.search import Resized, search_ladder
from engine.cli.options.common import plan_options, print_text
from engine.cli.options.embedded import REQUIRED
from engine.cli.options.models import named_model
from engine.cli.options.values import print_json
from engine.graph.graph import Graph
from engine.models.named import NamedModel, with_value
from engine.models.zoo import is_zoo, options_of
from engine.planning.options import Options

NO_FIT = 3
"""The exit code where nothing fits."""
_SIZES = ("batch", "image", "sequence")
"""Options of networks of the zoo that say how large inputs are."""
_DROPPED = ("--json", "-q", "--quiet")
_BUDGET = "--budget"
_DROPPED_WITH_VALUE = (_BUDGET, "--top")
_WITHOUT = "without "


def has_ladder(arguments: Namespace) -> bool:
    """Returns whether a command line asks for the way to a budget."""
    is_part = arguments.tensor is not None or arguments.operator is not None
    is_given = bool(arguments.length_ranges) or arguments.plan_from_file == REQUIRED
    return arguments.budget < NO_CAPACITY and not is_part and not is_given


def print_ladder(graph: Graph, arguments: Namespace) -> int:
    """Prints the way to the budget as text or JSON."""
    ladder = search_ladder(
        graph,
        arguments.budget,
        Options(**plan_options(arguments)),
        recompute=not arguments.no_recompute,
        resized=tuple(_resized(named_model(arguments))),
    )
    command = command_of(ladder, arguments.words)
    if arguments.json:
        print_json(ladder.to_json(command))
    else:
        print_text(ladder.text(command, arguments.top))
    return 0 if ladder.fits else NO_FIT


def command_of(ladder: Ladder, words: Sequence[str]) -> str:
    """Returns the command line of `plan` that takes the best way; `words` is the one of `explain`."""
    flags = [step.how for step in ladder.best.steps]
    undone = {flag.removeprefix(_WITHOUT) for flag in flags if flag.startswith(_WITHOUT)}
    budget = _written_budget(words) if ladder.fits else str(ladder.best.arena_bytes)
    kept = [word for word in _without_budget(words[1:]) if word not in undone and word not in _DROPPED]
    more = [word for flag in flags if not flag.startswith(_WITHOUT) for word in flag.split()]
    return shlex.join(["arenaplan", "plan", *kept, *more, _BUDGET, budget])


def _written_budget(words: Sequence[str]) -> str:
    """Returns the budget as it stands on a command line; the last one counts."""
    written = ""
    for word, behind in pairwise((*words, "")):
        flag, equals, value = word.partition("=")
        if flag == _BUDGET:
            written = value if equals else behind
    return written


def _without_budget(words: Sequence[str]) -> Iterator[str]:
    """Yields the words but for the flags that are dropped with their values."""
    skipped = False
    for word in words:
        if skipped:
            skipped = False
        elif word in _DROPPED_WITH_VALUE:
            skipped = True
        elif word.partition("=")[0] not in _DROPPED_WITH_VALUE:
            yield word


def _resized(named: NamedModel) -> Iterator[Resized]:
    """Yields the model at half, a quarter ... of each length that is known."""
    for name, whole in {**_network_sizes(named), **dict(named.lengths)}.items():
        for length in takewhile(bool, (whole >> halvings for halvings in count(1))):
            smaller = with_value(named, name, str(length))
            how = str(smaller.model) if smaller.model != named.model else f"--dim {name}={length}"
            yield Resized(name, length, how, smaller.load)


def _network_sizes(named: NamedModel) -> dict[str, int]:
    """Returns the sizes that a network of the zoo is built with, where no shape says them."""
    if not is_zoo(named.model) or named.shapes:
        return {}
    options, query = options_of(named.model), str(named.model).partition("?")[2]
    said = dict(part.partition("=")[::2] for part in re.split("[&,]", query) if part)
    texts = {name: said.get(name, str(options[name].default)) for name in _SIZES if name in options}
    return {name: int(value) for name, value in texts.items() if value.isdecimal()}
