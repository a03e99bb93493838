"""Every Python block of the documentation runs; every command line in it is understood; every path in it exists."""

import contextlib
import importlib
import re
import shlex
from pathlib import Path

import pytest

from allocator.solvers import STRATEGIES
from allocator.solvers.portfolio import PORTFOLIO
from engine.cli.main import COMMANDS, build_parser, main
from tests.helpers.cli.cli_checks import BUFFERS, PLACED, save
from tests.helpers.paths import ROOT
from tools.docs_pages import courses, run_page, with_outputs
from tools.draw_docs import DRAWN, pictures

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


_FILE = re.compile(r"(?<![\w./-])(?:ops|engine|allocator|tools|tests|docs|\.ci)/[\w./*-]*[\w/*]")
_MODULE = re.compile(r"`((?:ops|engine|allocator)(?:\.\w+)+)`")


def blocks(page: Path, language: str) -> list[str]:
    """Returns the fenced blocks of one language; "```python notest" is none of them."""
    return [text for name, text in _BLOCK.findall(page.read_text()) if name == language]


def commands(page: Path) -> list[str]:
    """Returns lines that call the command `arenaplan`."""
    lines = (line.strip() for text in blocks(page, "sh") for line in text.splitlines())
    return [line for line in lines if line.startswith("arenaplan ")]


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]
COURSES = [pages for pages in courses() if set(pages) & set(WITH_PYTHON)]


def title(page: Path) -> str:
    """Returns a page's path, as tests are named."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=title)
def test_paths_and_modules_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    assert [name for name in _FILE.findall(text) if not any(ROOT.glob(name))] == []
    assert [name for name in _MODULE.findall(text) if not is_there(name)] == []


def test_a_page_of_the_internals_names_every_room() -> None:
    text = "".join(page.read_text() for page in (ROOT / "docs" / "internals").glob("*.md"))
    rooms = [
        room.parent for package in ("ops", "engine", "allocator") for room in (ROOT / package).glob("*/__init__.py")
    ]
    assert len(rooms) > 40
    assert not [str(room) for room in rooms if f"`{room.relative_to(ROOT)}/`" not in text]


def is_there(dotted: str) -> bool:
    """Returns whether a name of our packages is a module, or is defined in one."""
    module, *rest = dotted.split(".")
    value: object = importlib.import_module(module)
    for name in rest:
        module = f"{module}.{name}"
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
        if not hasattr(value, name):
            return False
        value = getattr(value, name)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("pages", COURSES, ids=lambda pages: title(pages[0]))
def test_blocks_of_pages_run_one_after_the_other_and_print_what_is_shown(
    pages: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for page in pages:
        for ran in run_page(page.read_text(), page.name, names):
            assert ran.is_right, f"{page.name}: {ran.code}\nprints\n\n{ran.printed}\nand not\n\n{ran.shown}"


@pytest.mark.parametrize("course", [pages for pages in COURSES if len(pages) > 1], ids=lambda course: title(course[0]))
def test_the_first_page_of_a_course_lists_all_others(course: list[Path]) -> None:
    assert set(course) == set(course[0].parent.glob("*.md"))


@pytest.mark.slow
def test_pictures_show_what_the_pages_beside_them_make() -> None:
    drawn = dict(pictures())
    assert [path.name for path, text in drawn.items() if not path.exists() or path.read_text() != text] == [], (
        "out of date: python -m tools.draw_docs"
    )
    assert set(DRAWN.glob("*.svg")) == set(drawn)


def test_a_picture_below_a_command_is_what_that_writes() -> None:
    text = (DRAWN / "digits.svg").read_text()
    assert "162.00 KiB" in text and "25.31 KiB" not in text


def test_a_wrong_output_is_found_and_written_anew() -> None:
    page = "```python\nprint(6 * 7)\n```\n\n```output\n{}\n```\n\nend\n"
    assert with_outputs(page.format(41), "page", {}) == page.format(42)
    assert with_outputs(page.format("4..."), "page", {}) == page.format("4...")


def test_the_pages_that_explain_python_have_python_in_them() -> None:
    assert {page.name for page in WITH_PYTHON} >= {"README.md", "python.md", "own_operator.md"}


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_command_lines_of_a_page_are_understood(page: Path) -> None:
    parser = build_parser()
    for line in commands(page):
        assert callable(parser.parse_args(shlex.split(line, comments=True)[1:]).run)


def test_every_subcommand_is_shown() -> None:
    shown = {shlex.split(line)[1] for page in PAGES for line in commands(page)}
    assert shown == set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = [t for t in _LINK.findall(page.read_text()) if "://" not in t]
    assert [t for t in targets if not (page.parent / t).exists()] == []


def test_the_table_of_strategies_is_complete_and_right() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|.*?\| (yes|-) \| (yes|-) \|", (ROOT / "docs/strategies.md").read_text(), re.MULTILINE
    )
    traits = {name: (pins == "yes", conflicts == "yes") for name, pins, conflicts in rows}
    solvers = (PORTFOLIO, *STRATEGIES.values())
    assert traits == {s.name: (s.traits.pinned, s.traits.conflicts) for s in solvers}


def test_command_lines_that_solve_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path, BUFFERS)
    save(tmp_path, PLACED, "placed.csv")
    save(tmp_path, "2\n0 3 20\n2 5 10\n1\n1 0 6\n", "intervals.txt")
    save(tmp_path, "id,first_op,last_op,size_bytes\n0,0,1,32\n", "records.csv")
    assert main(["solve", "buffers.csv", "-o", "plan.bin"]) == 0
    lines = [line for page in PAGES for line in commands(page) if line.startswith("arenaplan solve ")]
    assert lines
    for line in lines:
        assert main(shlex.split(line, comments=True)[1:]) == 0, line + capsys.readouterr().err
