"""What --vary says: a dimension or an option takes one value after the other, or any within a range."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from attrs import frozen

from engine.cli.options.common import is_planning_option, planning_option
from engine.models import named as models
from engine.models.named import NamedModel, is_length
from engine.text.errors import OptionError


@frozen
class Vary:
    """A name, and the values that it takes in their order; or a range with both ends `low` and `high` inside of it.

    The name is that of a planning option, of an option of a network of the zoo, or of a dimension; the first of these
    that there is. Values are texts as the command line has them. `values` is empty for a range.
    """

    name: str
    values: tuple[str, ...] = ()
    low: int = 0
    high: int = 0

    @property
    def is_range(self) -> bool:
        """True if it has a least and a greatest length in place of values."""
        return not self.values

    @property
    def each(self) -> tuple[str, ...]:
        """The values one by one; of a range its low end, doubled again and again, and its high end."""
        if not self.is_range:
            return self.values
        numbers, number = list[int](), self.low
        while number < self.high:
            numbers.append(number)
            number = max(2 * number, 1)
        return (*map(str, numbers), str(self.high))


def add_vary(parser: ArgumentParser, what: str) -> None:
    """Adds --vary; the namespace has a list of `Vary`. `what` is its help text."""
    parser.add_argument(
        "--vary",
        metavar="NAME=V,V,... or NAME=LOW:HIGH",
        type=vary,
        action="append",
        default=[],
        help=f"{what}; repeatable",
    )


def vary(text: str) -> Vary:
    """Reads NAME=V,V,... or NAME=LOW:HIGH. Raises ArgumentTypeError, also for a value that an option cannot have."""
    name, equals, rest = (part.strip() for part in text.partition("="))
    values = tuple(value.strip() for value in rest.split(","))
    if not name or not equals or not all(values):
        raise ArgumentTypeError(
            f"{text[:60]!r} is no NAME=VALUE,VALUE and no NAME=LOW:HIGH; write for example batch=1,8"
        )
    if ":" in rest and not is_planning_option(name):
        return _range(name, rest, text)
    if len(set(values)) < len(values):
        raise ArgumentTypeError(f"{text[:60]!r} has a value twice")
    if is_planning_option(name):
        _check_values(name, values)
    return Vary(name, values)


def check_names(varied: list[Vary]) -> None:
    """Raises OptionError for a name that is varied twice."""
    names = [one.name for one in varied]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"--vary has {name!r} twice; give all its values in one, such as {name}=1,2,4")


def with_value(arguments: Namespace, name: str, value: str) -> Namespace:
    """Returns a command line in which a name has a value, in place of what was said about it before.

    Raises OptionError for a value that the name cannot have, ModelError for a network that is not in the zoo.
    """
    if is_planning_option(name):
        changed: dict[str, Any] = dict([planning_option(name, value)])
    else:
        named = models.with_value(NamedModel(arguments.file, lengths=tuple(arguments.dim)), name, value)
        changed = {"file": named.model, "dim": list(named.lengths)}
    return Namespace(**vars(arguments) | changed)


def _check_values(name: str, values: tuple[str, ...]) -> None:
    for value in values:
        try:
            planning_option(name, value)
        except OptionError as error:
            raise ArgumentTypeError(str(error)) from error


def _range(name: str, rest: str, text: str) -> Vary:
    low, _, high = (part.strip() for part in rest.partition(":"))
    if not is_length(low) or not is_length(high) or int(low) > int(high):
        raise ArgumentTypeError(f"{text[:60]!r} has no least and greatest length; write for example {name}=1:64")
    return Vary(name, low=int(low), high=int(high))
