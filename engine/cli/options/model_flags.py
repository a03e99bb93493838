"""Options that say which model a command is about; for another file, such as buffers, they are refused."""

from argparse import ArgumentParser, Namespace
from collections.abc import Collection
from pathlib import Path

from engine.cli.options.common import AddOptions, defaults
from engine.cli.options.dims import named_lengths
from engine.cli.options.values import named_path, named_rule, named_shape
from engine.text.errors import OptionError
from engine.zoo import NETWORKS


def add_model(parser: ArgumentParser) -> None:
    """Adds MODEL, and the options of its import."""
    names = ", ".join(NETWORKS)
    what = f"an ONNX file, or a network of the zoo, such as zoo:resnet50 or 'zoo:resnet50?batch=8&image=64': {names}"
    parser.add_argument("file", metavar="MODEL", type=Path, help=what)
    add_import(parser)


def add_import(parser: ArgumentParser) -> None:
    """Adds the options that say how a model is imported."""
    parser.add_argument(
        "--shape",
        metavar="NAME=D,D,...",
        type=named_shape,
        action="append",
        default=[],
        help="shape of an input that leaves dimensions open, or of the zoo's x, such as x=1,3,224,224; a dimension may "
        "get a name: x=batch,3,224,224; repeatable",
    )
    parser.add_argument(
        "--dim",
        metavar="NAME=N,...",
        type=named_lengths,
        action="extend",
        default=[],
        help="lengths of dimensions that are names, such as batch=4,seq=128; repeatable",
    )
    parser.add_argument(
        "--constant",
        metavar="NAME=FILE.npy",
        type=named_path,
        action="append",
        default=[],
        help="an input that is fixed to an array, needed where it decides shapes; repeatable",
    )
    add_ops(parser)
    parser.add_argument(
        "--infer",
        metavar="OPERATOR=RULE",
        type=named_rule,
        action="append",
        default=[],
        help="what an operator that nobody implements gives, to plan a model without running it, such as "
        "acme.MyOp=like:0: shape and type of its input 0 (like:0,like:1 for two outputs); repeatable",
    )


def add_ops(parser: ArgumentParser) -> None:
    """Adds the option for files of operators."""
    parser.add_argument(
        "--ops",
        metavar="FILE.py",
        type=Path,
        action="append",
        default=[],
        help="a Python file that registers operators of your own (arenaplan.register_operator); it is run; repeatable",
    )


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
