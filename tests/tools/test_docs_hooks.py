"""Pages that the site has beside docs/: made of parsers, names and docstrings. And the site itself."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import ops
from engine.cli.main import COMMANDS
from engine.exporters import FORMATS
from tests.helpers.browser.browser_session import Session

pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install -e '.[check]'")
import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File
from mkdocs.structure.pages import Page

from tools.docs_fields import AttrsFields
from tools.docs_hooks import ROOT, WIDTH, commands_page, help_text, on_page_markdown, ops_page, top_level_page

SEEN = ("index", "tutorial/trace", "algorithms/remat", "reference/commands", "reference/ops", "operators")
WAYS = (("light", 1280), ("dark", 420))


@pytest.mark.slow
def test_the_help_of_every_command_is_on_the_page_and_not_too_wide() -> None:
    page = commands_page()
    for command in COMMANDS:
        assert f"## arenaplan {command}\n" in page
        text = help_text(command)
        assert text.startswith(f"usage: arenaplan {command}")
        assert [line for line in text.splitlines() if len(line) > int(WIDTH)] == []


def test_each_name_of_ops_is_looked_up_where_it_is_written() -> None:
    headings = dict(re.findall(r"^::: (\S+)\n    options:\n      heading: ops\.(\w+)$", ops_page(), re.MULTILINE))
    assert sorted(headings.values()) == sorted(ops.__all__)
    assert headings["ops.elementwise.cast.cast"] == "cast"


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CHANGELOG.md"])
def test_links_of_the_top_level_lead_somewhere_from_docs(name: str) -> None:
    generated = {"architecture.md", "changelog.md", "contributing.md"}
    targets = {t for t in re.findall(r"\]\(([^)#]+)", top_level_page(name)) if "://" not in t}
    assert {t for t in targets - generated if not (ROOT / "docs" / t).exists()} == set()


@pytest.mark.parametrize(("at", "up", "inside"), [("faq.md", "../", ""), ("algorithms/a.md", "../../", "../")])
def test_links_to_the_top_level_stay_in_the_site(at: str, up: str, inside: str) -> None:
    config = MkDocsConfig()
    config.load_dict({"site_name": "x", "docs_dir": "docs", "site_dir": "site"})
    page = Page("title", File(at, "docs", "site", use_directory_urls=False), config)
    rewritten = on_page_markdown(
        f"[how]({up}ARCHITECTURE.md#6-solve)\n```python notest\n[faq.md]({inside}faq.md)", page
    )
    assert rewritten == f"[how]({inside}architecture.md#6-solve)\n```python\n[Questions]({inside}faq.md)"


def test_fields_of_attrs_classes_stand_below_their_docstrings() -> None:
    read = griffe.load(
        "allocator.problem",
        search_paths=[str(ROOT)],
        extensions=griffe.Extensions(AttrsFields()),
        allow_inspection=False,
    )
    docstring = read["Lifetime"].docstring.value
    assert "```python\n" in docstring and "begin: int\n" in docstring
    assert "```" not in read["Status"].docstring.value


def build(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Builds the site of a checkout as `make docs` does. (With --quiet, MkDocs would count no warnings.)"""
    config = root / "docs" / "site" / "mkdocs.yml"
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(folder)],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(root)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the site of this checkout."""
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.slow
def test_each_format_of_traces_has_its_lines_in_the_help_text() -> None:
    lines = help_text("trace").partition("\nformats:\n")[2].splitlines()
    assert {line.split()[0] for line in lines if re.match(r"  \S", line)} == set(FORMATS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "names"),
    [
        (("[x](gone.md)", "[x](faq.md#missing)", "[x][engine.nowhere]"), ("gone.md", "missing", "engine.nowhere")),
        pytest.param(("::: engine.nowhere",), ("engine.nowhere",), marks=pytest.mark.slow),
    ],
)
def test_dead_links_of_the_site_are_an_error(tmp_path: Path, faults: Sequence[str], names: Sequence[str]) -> None:
    for part in ROOT.iterdir():
        if part.name not in (".git", "docs", "out"):
            (tmp_path / part.name).symlink_to(part)
    shutil.copytree(ROOT / "docs/site", tmp_path / "docs/site")
    for name in ("index.md", "faq.md", "python.md"):
        shutil.copy(ROOT / "docs" / name, tmp_path / "docs")
    with (tmp_path / "docs/index.md").open("a") as page:
        page.writelines(f"\n{fault}\n" for fault in faults)
    built = build(tmp_path, tmp_path / "out")
    assert built.returncode != 0
    assert all(name in built.stderr for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize(("scheme", "width"), WAYS)
def test_a_page_needs_no_network_says_nothing_and_is_no_wider_than_its_window(
    site: Path, browser: Session, name: str, scheme: str, width: int
) -> None:
    window = {"width": width, "height": 900}
    with browser.visit(site / f"{name}.html", allowed=(site.as_uri(),), color_scheme=scheme, viewport=window) as page:
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")


@pytest.mark.slow
def test_the_search_of_the_site_works_from_disk(site: Path, browser: Session) -> None:
    with browser.visit(site / "index.html", allowed=(site.as_uri(), "about:")) as page:
        page.click(".md-search__input")
        page.locator(".md-search__input").press_sequentially("pushdown")
        page.wait_for_selector(".md-search-result__link >> text=MegEngine: pushdown")


@pytest.mark.slow
def test_no_mark_of_ours_and_no_raw_fence_is_left_in_a_page(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert "```" not in re.sub(r"<(pre|code)\b.*?</\1>", "", path.read_text(), flags=re.DOTALL), path
