"""Which options a command line gives beside those that it leaves as they are: what would change nothing is refused."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection

from engine.cli.options.common import add_model
from engine.text.errors import OptionError

AddOptions = Callable[[ArgumentParser], None]


def refuse_given(arguments: Namespace, why: str, adders: Collection[AddOptions], allowed: Collection[str] = ()) -> None:
    """Raises OptionError for options of models that are no defaults, and are none of `allowed`; `why` begins it."""
    beside = vars(arguments).get("beside") or {}
    names = _given(arguments, adders) - set(allowed)
    given = sorted(f"--beside {name}" if name in beside else f"--{name.replace('_', '-')}" for name in names)
    if given:
        raise OptionError(f"{why}: leave out {', '.join(given)}")


def _given(arguments: Namespace, adders: Collection[AddOptions]) -> set[str]:
    """By the names under which the parser keeps them; --beside gives what it changes, whatever that is."""
    parser = ArgumentParser()
    for add in (add_model, *adders):
        add(parser)
    plain = vars(parser.parse_args(["--", str(arguments.file)]))
    known = vars(arguments)
    beside = known.get("beside") or {}
    return {name for name in plain.keys() & known.keys() if name in beside or known[name] != plain[name]}
