"""Runs the blocks of pages of the documentation, and writes what they print into the pages.

    python -m tools.docs_pages [docs/tutorial/report.md ...]

Python is run, and command lines where a block `output` stands below them; `python notest` is not. What is shown may
have "..." where a machine decides what stands there.
"""

import contextlib
import doctest
import io
import re
import shlex
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from engine.cli.main import main as arenaplan
from tools.entry import run_script

ROOT = Path(__file__).resolve().parent.parent
_CHAPTER = re.compile(r"^(?:\d+\.|-) \[.*?\]\((\w+\.md)\)", re.MULTILINE)
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
        """True if the page shows no output, or what was printed."""
        return not self.is_shown or doctest.OutputChecker().check_output(self.shown, self.printed, doctest.ELLIPSIS)


def run_page(text: str, name: str, names: dict[str, object]) -> Iterator[Ran]:
    """Runs the blocks of a page one after the other, in the current folder; Python adds to `names`."""
    for number, block in enumerate(_BLOCK.finditer(text), start=1):
        language, code, shown = block["language"], block["code"], block["shown"]
        if language == "sh" and shown is None:
            continue
        printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with contextlib.redirect_stdout(printed):
            if language == "python":
                exec(compile(code, f"{name}, block {number}", "exec"), names)
            else:
                run_commands(code)
        yield Ran(block.start(), block.end(), code, language, _tidy(printed), shown or "", shown is not None)


def run_commands(code: str) -> None:
    """Runs command lines; what goes wrong is told on stderr, which a page shows as well."""
    for line in code.splitlines():
        _, *arguments = shlex.split(line, comments=True)
        with contextlib.redirect_stderr(sys.stdout):
            arenaplan(arguments)


def _tidy(printed: io.TextIOWrapper) -> str:
    printed.seek(0)
    return "\n".join(line.rstrip() for line in printed.read().splitlines()).rstrip("\n") + "\n"


def with_outputs(text: str, name: str, names: dict[str, object]) -> str:
    """Returns the page with what its blocks print. Output that is right already stays as it is."""
    parts, at = [], 0
    for ran in run_page(text, name, names):
        if not ran.is_right:
            parts += [text[at : ran.start], f"```{ran.language}\n{ran.code}```\n\n```output\n{ran.printed}```\n"]
            at = ran.end
    return "".join([*parts, text[at:]])


def courses() -> list[list[Path]]:
    """Returns all pages, in the groups in which they are run: those of a course share names and files.

    The first page of a course lists the others in their order.
    """
    groups = [_course(ROOT / "docs" / folder / "index.md") for folder in ("tutorial", "algorithms")]
    pages = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    return [*groups, *([page] for page in pages if not any(page in group for group in groups))]


def _course(index: Path) -> list[Path]:
    return [index, *(index.parent / name for name in _CHAPTER.findall(index.read_text()))]


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the outputs of the pages named, or of all, anew; says which pages have changed."""
    parser = ArgumentParser("docs_pages", description=main.__doc__)
    parser.add_argument("pages", metavar="PAGE", type=Path, nargs="*", help="a page of docs/ (default: all)")
    wanted = {page.resolve() for page in parser.parse_args(argv).pages}
    if unknown := wanted - {page for pages in courses() for page in pages}:
        parser.error(f"{min(unknown)} is no page with outputs")
    for pages in courses():
        if not wanted or wanted & set(pages):
            _write(pages)
    return 0


def _write(pages: Sequence[Path]) -> None:
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for page in pages:
            text = page.read_text()
            written = with_outputs(text, page.name, names)
            if written != text:
                page.write_text(written)
                print(page.relative_to(ROOT))


if __name__ == "__main__":
    run_script(main)
