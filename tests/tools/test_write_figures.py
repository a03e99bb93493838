"""The memory figures of the pages: their sections, and figures that are in them as the plans have them."""

import re
from pathlib import Path

import pytest

import engine
from engine.text.units import format_bytes
from engine.zoo import squeezenet
from tests.helpers.paths import ROOT
from tools import write_figures
from tools.write_figures import SECTIONS, main


def _section(name: str) -> str:
    text = (ROOT / SECTIONS[name][0]).read_text()
    match = re.search(f"<!-- {name} -->\n(.*?)\n<!-- end of {name} -->", text, re.DOTALL)
    assert match, f"{SECTIONS[name][0]} has no section {name}"
    return match[1]


@pytest.mark.parametrize("name", SECTIONS)
def test_each_page_has_its_section_of_figures(name: str) -> None:
    assert len(_section(name).splitlines()) > 5


def test_the_zoo_page_has_the_figures_of_a_plan() -> None:
    report = engine.make_plan(squeezenet()).report()
    (row,) = [line for line in _section("zoo").splitlines() if line.startswith("| `squeezenet`")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    weights = sum(entry.nbytes for entry in squeezenet().constants.entries.values())
    assert cells[1:4] == [f"{weights / 2**20:.2f}", str(len(squeezenet().operators)), str(report.operators)]


def test_sections_are_written_into_their_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text("a\n<!-- shown plan -->\nold\n<!-- end of shown plan -->\nb\n")
    monkeypatch.setattr(write_figures, "ROOT", tmp_path)
    monkeypatch.setattr(write_figures, "SHOWN", "plan zoo:squeezenet?image=64")
    assert main(["shown plan", "--quiet"]) == 0
    lines = (tmp_path / "README.md").read_text().splitlines()
    assert lines[:4] == ["a", "<!-- shown plan -->", "```", "$ arenaplan plan zoo:squeezenet?image=64"]
    assert lines[-3:] == ["```", "<!-- end of shown plan -->", "b"]
    arena = engine.make_plan(squeezenet(image=64)).arena_bytes
    (line,) = [line for line in lines if line.startswith("  arena ")]
    assert line.split()[1] == str(arena) and format_bytes(arena) in line
