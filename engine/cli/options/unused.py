"""Refuses options that would change nothing: those that a command line gives and a command does not use."""

from argparse import Namespace
from collections.abc import Collection

from engine.cli.options.common import AddOptions, add_model, defaults
from engine.text.errors import OptionError


def refuse_unused(
    arguments: Namespace, why: str, adders: Collection[AddOptions], allowed: Collection[str] = ()
) -> None:
    """Raises OptionError for options of models that do not have their defaults and are not `allowed`.

    The message begins with `why`. An option that --beside changes counts whatever its value is.
    """
    beside, values = vars(arguments).get("beside") or {}, vars(arguments)
    default = defaults((add_model, *adders), arguments.file)
    changed = {name for name in default.keys() & values.keys() if name in beside or values[name] != default[name]}
    flags = sorted(
        f"--beside {name}" if name in beside else f"--{name.replace('_', '-')}" for name in changed - set(allowed)
    )
    if flags:
        raise OptionError(f"{why}: leave out {', '.join(flags)}")
