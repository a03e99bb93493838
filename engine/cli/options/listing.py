"""Lists below the options of a help text: a line for each choice, where argparse would make one long paragraph."""

import shutil
import textwrap
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping

_MARGIN = 2
"""Columns that argparse leaves free at the right."""


def add_list(parser: ArgumentParser, title: str, entries: Mapping[str, str]) -> None:
    """Shows what each choice is for; what else is told is laid out as before."""
    width = shutil.get_terminal_size().columns - _MARGIN
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.description = textwrap.fill(parser.description or "", width)
    rest = textwrap.fill(parser.epilog or "", width)
    column = max(map(len, entries), default=0) + 4
    lines = [_entry(name, text, column, width) for name, text in entries.items()]
    parser.epilog = "\n".join([f"{title}:", *lines, "", rest])


def _entry(name: str, text: str, column: int, width: int) -> str:
    """Argparse takes %(prog)s of an epilog for a name, so each % is doubled."""
    first = f"  {name}".ljust(column)
    return textwrap.fill(
        text.replace("%", "%%"), max(width, column + 20), initial_indent=first, subsequent_indent=" " * column
    )
