"""What the site of the documentation has beside docs/: MkDocs calls `on_files` when it builds (docs/site/mkdocs.yml).

The pages are made of the parsers, of the names that `ops` exports and of the repository's top level, so they are never
behind the program; none of them is written to disk.
"""

import contextlib
import importlib
import inspect
import io
import os
import re
from collections import defaultdict
from pathlib import Path
from unittest import mock

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import ops
from engine.cli.main import COMMANDS, build_parser

ROOT = Path(__file__).resolve().parent.parent
WIDTH = "80"
"""Columns of a help text, so that it needs no scrolling in a page."""
_TOP_LEVEL = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
}
_LINK = re.compile(r"\]\((?!https?://)([^)#]+)(#[^)]*)?\)")
_NAMED = re.compile(r"\[(?:docs/)?[\w/]+\.md\]\(([\w./]+\.md)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made while the site is built."""
    for path, text in {
        "reference/commands.md": commands_page(),
        "reference/ops.md": ops_page(),
        "architecture.md": top_level_page("ARCHITECTURE.md"),
        "changelog.md": top_level_page("CHANGELOG.md"),
        "contributing.md": top_level_page("CONTRIBUTING.md"),
    }.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Rewrites a page that is written for a checkout for readers of the site.

    Links to files of the top level lead to the pages that stand for them, links that are called after a file are called
    after its heading, and marks for our tests are taken out.
    """
    depth = page.file.src_uri.count("/")
    up = "../" * (depth + 1)
    for name, inside in _TOP_LEVEL.items():
        markdown = markdown.replace(f"]({up}{name}", f"]({'../' * depth}{inside}")
    markdown = markdown.replace("```python notest\n", "```python\n").replace("```sh notest\n", "```sh\n")
    return _NAMED.sub(lambda m: f"[{_title(Path(page.file.src_uri).parent / m[1])}]({m[1]}", markdown)


def _title(path: Path) -> str:
    """Returns the heading of a page of docs/, or its name if it is made while the site is built."""
    page = ROOT / "docs" / path
    return page.read_text().partition("\n")[0].removeprefix("# ") if page.exists() else path.name


def commands_page() -> str:
    """Makes the page that shows what `arenaplan COMMAND --help` prints, for each command."""
    parts = [
        "# Subcommands",
        "What `arenaplan COMMAND --help` prints. [The command](../cli.md) explains it with examples.",
    ]
    for name in COMMANDS:
        usage, _, options = help_text(name).partition("\n\n")
        parts += [f"## arenaplan {name}", f"```text\n{usage}\n```", f"```text\n{options.strip()}\n```"]
    return "\n\n".join(parts) + "\n"


def help_text(command: str) -> str:
    """Returns the help of one command, `WIDTH` columns wide."""
    printed = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": WIDTH, "NO_COLOR": "1"}),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        build_parser().parse_args([command, "--help"])
    return printed.getvalue()


def ops_page() -> str:
    """Makes the page of all that `ops` exports, below the docstrings of the modules that define it."""
    rooms = defaultdict(list)
    for name in ops.__all__:
        rooms[getattr(ops, name).__module__].append(name)
    parts = ["# Python: ops", inspect.cleandoc(ops.__doc__ or "")]
    for room in sorted(rooms, key=lambda room: (room.startswith(("ops.schema.", "ops.tensor.")), room)):
        text = inspect.cleandoc(importlib.import_module(room).__doc__ or room)
        parts += [f"## {room.rpartition('.')[2]}", text, *(_member(room, name) for name in sorted(rooms[room]))]
    return "\n\n".join(parts) + "\n"


def _member(room: str, name: str) -> str:
    """Returns the reference of a name, by the module that defines it: some functions are called like their module."""
    return f"::: {room}.{name}\n    options:\n      heading: ops.{name}\n      toc_label: {name}"


def top_level_page(name: str) -> str:
    """Returns a page of the top level, whose links now lead from docs/."""
    return _LINK.sub(lambda m: f"]({_inside(m[1])}{m[2] or ''})", (ROOT / name).read_text())


def _inside(target: str) -> str:
    """Returns where a file that the top level links to stands in the site."""
    return _TOP_LEVEL.get(target, target.removeprefix("docs/"))
