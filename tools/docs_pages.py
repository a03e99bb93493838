"""Runs the blocks of pages of the documentation, and writes what they print into the pages.

    python -m tools.docs_pages docs/tutorial/*.md

Python is run, and command lines where a block `output` stands below them; `python notest` is not. What is shown may
have "..." where a machine decides what stands there.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from engine.cli.main import main as arenaplan

_BLOCK = re.compile(
    r"^```(?P<language>python|sh)\n(?P<code>.*?)^```\n(?:\n```output\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)


@frozen(eq=False)
class Ran:
    """A block of a page that was run: its place in the text, what it printed, and what the page says that it does."""

    start: int
    end: int
    code: str
    language: str
    printed: str
    shown: str
    is_shown: bool

    @property
    def is_right(self) -> bool:
        """Whether the page tells the truth, or nothing."""
        return not self.is_shown or doctest.OutputChecker().check_output(self.shown, self.printed, doctest.ELLIPSIS)


def run_page(text: str, name: str) -> Iterator[Ran]:
    """Runs the blocks of a page one after the other, in the current folder; Python keeps its names."""
    names: dict[str, object] = {}
    for number, found in enumerate(_BLOCK.finditer(text), start=1):
        language, code, shown = found["language"], found["code"], found["shown"]
        if language == "sh" and shown is None:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if language == "python":
                exec(compile(code, f"{name}, block {number}", "exec"), names)
            else:
                _run_commands(code)
        yield Ran(found.start(), found.end(), code, language, _tidy(printed), shown or "", shown is not None)


def _run_commands(code: str) -> None:
    """Runs command lines; what goes wrong is told on stderr, which a page shows as well."""
    for line in code.splitlines():
        _, *arguments = shlex.split(line, comments=True)
        with contextlib.redirect_stderr(sys.stdout):
            arenaplan(arguments)


def _tidy(printed: io.StringIO) -> str:
    return "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())


def with_outputs(text: str, name: str) -> str:
    """The page with what its blocks print; what is right already stays as it is."""
    parts, at = [], 0
    for ran in run_page(text, name):
        if not ran.is_right:
            parts += [text[at : ran.start], f"```{ran.language}\n{ran.code}```\n\n```output\n{ran.printed}```\n"]
            at = ran.end
    return "".join([*parts, text[at:]])


def main(argv: Sequence[str] | None = None) -> int:
    """Writes pages anew; says which of them have changed."""
    start = Path.cwd()
    for path in [start / name for name in (sys.argv[1:] if argv is None else argv)]:
        text = path.read_text()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            written = with_outputs(text, path.name)
            os.chdir(start)
        if written != text:
            path.write_text(written)
            print(path.relative_to(start))
    return 0


if __name__ == "__main__":
    sys.exit(main())
