"""The options that say which file a plan is written to: -o, --prefix, and --save-plan, which -o has replaced."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from allocator.io import c_header
from allocator.io.files import write_whole
from engine import plan_files
from engine.cli.progress import warn
from engine.execution_plan import ExecutionPlan
from engine.models.zoo import is_zoo
from engine.plan_files.suffixes import JSON, ONNX, SUFFIXES, suffix_of
from engine.text.errors import OptionError
from engine.text.json_text import json_text


def add_plan_output(parser: ArgumentParser) -> None:
    """Adds the options that say which file is written."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help=f"write the plan; the suffix says what: {', '.join(SUFFIXES)} (docs/formats.md)",
    )
    parser.add_argument(
        "--prefix",
        metavar="NAME",
        default=c_header.PREFIX,
        help=f"with -o FILE.h: what all names in it begin with (default {c_header.PREFIX})",
    )
    parser.add_argument("--save-plan", metavar="FILE.onnx", type=Path, help=SUPPRESS)


def asked_output(arguments: Namespace) -> Path | None:
    """Returns the file to write; None where none is asked for. Raises OptionError for a name that cannot be."""
    if vars(arguments).get("save_plan") is not None:
        if arguments.output is not None:
            raise OptionError("--save-plan is the old name of -o FILE.onnx; give -o alone")
        warn("--save-plan FILE is now called -o FILE.onnx; the old name will be removed")
        arguments.output = arguments.save_plan
        suffix_of(arguments.output)
        _check_source(arguments)
        return Path(arguments.output)
    path: Path | None = vars(arguments).get("output")
    if path is not None and suffix_of(path) == ONNX:
        _check_source(arguments)
    return path


def write_planned(plan: ExecutionPlan, data: dict[str, Any], path: Path, arguments: Namespace) -> None:
    """Writes a plan to the file that was asked for; `data` is what --json prints."""
    if path.name.lower().endswith(JSON) and suffix_of(path) == JSON:
        write_whole(path, json_text(data).encode())
    else:
        plan_files.write_plan(plan, path, source=arguments.file, prefix=arguments.prefix)


def check_one_plan(path: Path | None, why: str) -> None:
    """Raises OptionError for a file that holds one plan of known lengths; `why` says why there is none."""
    if path is not None and suffix_of(path) != JSON:
        raise OptionError(f"-o {path} holds one plan: {why}")


def _check_source(arguments: Namespace) -> None:
    if is_zoo(arguments.file):
        raise OptionError(
            f"-o FILE{ONNX} writes the model's own file with a plan in it, and {arguments.file} is no file"
        )
