"""The memory figures of the pages: their sections, and figures that are in them as the plans have them."""

import re
from pathlib import Path

import pytest

import engine
from allocator.solvers import solve
from engine.cli.options.models import light_model, seeded_subject
from engine.text.units import format_bytes
from engine.zoo import NETWORKS, squeezenet
from ops.convolution.packed import has_avx512
from tests.helpers.allocator.usage_records import DEEPLAB_V3
from tests.helpers.paths import ROOT
from tools import bench_nest, bench_remat, write_figures
from tools.demo import memory_rows
from tools.write_figures import SECTIONS, main

needs_avx512 = pytest.mark.skipif(not has_avx512(), reason="workspaces are those of a processor with AVX-512")
CHARTS = [name for name, (page, _) in SECTIONS.items() if not page.endswith(".md")]


def _page(name: str) -> str:
    return " ".join((ROOT / name).read_text().split())


def _section(name: str, page: str = "") -> str:
    text = (ROOT / (page or SECTIONS[name][0])).read_text()
    match = re.search(f"<!-- {name} -->\n(.*?)\n<!-- end of {name} -->", text, re.DOTALL)
    assert match, f"{SECTIONS[name][0]} has no section {name}"
    return match[1]


def _rows(name: str, page: str = "") -> list[list[str]]:
    """Returns the cells of a section's table, without its head."""
    _, _, *lines = [line for line in _section(name, page).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _share(text: str) -> float:
    return float(text.rstrip("%"))


@pytest.mark.parametrize("name", [name for name in SECTIONS if name not in CHARTS])
def test_each_page_has_its_section_of_figures(name: str) -> None:
    assert len(_section(name).splitlines()) >= 4


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_is_drawn_from_the_figures_of_its_table(chart: str) -> None:
    _, _, *lines = _section(chart.removesuffix(" chart")).splitlines()
    drawn = (ROOT / SECTIONS[chart][0]).read_bytes()
    assert drawn.startswith((b"\x89PNG", b"<svg"))
    assert "\n".join(lines[:2]).encode() in drawn


def test_the_zoo_page_has_the_figures_of_a_plan() -> None:
    report = engine.make_plan(squeezenet()).report()
    (row,) = [line for line in _section("zoo").splitlines() if line.startswith("| `squeezenet`")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    weights = sum(entry.nbytes for entry in squeezenet().constants.entries.values())
    assert cells[1:4] == [f"{weights / 2**20:.2f}", str(len(squeezenet().operators)), str(report.operators)]


@pytest.mark.slow
def test_the_readme_has_the_figures_of_the_demo() -> None:
    plan = engine.make_plan(seeded_subject(light_model("resnet50")).graph)
    assert _rows("first figures") == [list(row) for row in memory_rows(plan)]


def test_sections_are_written_into_their_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/report.md").write_text("a\n<!-- shown plan -->\nold\n<!-- end of shown plan -->\nb\n")
    monkeypatch.setattr(write_figures, "ROOT", tmp_path)
    monkeypatch.setattr(write_figures, "SHOWN", "plan zoo:squeezenet?image=64")
    assert main(["shown plan", "--quiet"]) == 0
    lines = (tmp_path / "docs/report.md").read_text().splitlines()
    assert lines[:4] == ["a", "<!-- shown plan -->", "```", "$ arenaplan plan zoo:squeezenet?image=64"]
    assert lines[-3:] == ["```", "<!-- end of shown plan -->", "b"]
    arena = engine.make_plan(squeezenet(image=64)).arena_bytes
    (line,) = [line for line in lines if line.startswith("  arena ")]
    assert line.split()[1] == str(arena) and format_bytes(arena) in line


def test_a_chart_is_written_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs/images").mkdir(parents=True)
    monkeypatch.setattr(write_figures, "ROOT", tmp_path)
    monkeypatch.setattr(write_figures, "SECTIONS", {"chart": ("docs/images/chart.png", lambda: b"bytes")})
    assert main(["chart", "--quiet"]) == 0
    assert (tmp_path / "docs/images/chart.png").read_bytes() == b"bytes"


@needs_avx512
def test_the_page_on_nesting_has_the_figures_of_plans() -> None:
    (row,) = [row for row in _rows("nested") if row[:3] == ["squeezenet", "8", "yes"]]
    graph = bench_nest.built("squeezenet", 8, train=True)
    sizes = [engine.make_plan(graph, nest=nest, optimise=0).arena_bytes for nest in (False, True)]
    assert row[3:6] == [*(f"{size:,}" for size in sizes), f"{1 - sizes[1] / sizes[0]:.1%}"]


@needs_avx512
def test_the_page_on_passes_has_the_figures_of_plans() -> None:
    for level, *sizes in _rows("levels"):
        plans = (engine.make_plan(NETWORKS["unet"](), optimise=int(level), nest=nest) for nest in (True, False))
        assert sizes == [f"{plan.arena_bytes / 2**20:.2f}" for plan in plans]


@pytest.mark.slow
def test_the_page_on_recomputing_has_the_figures_of_a_plan() -> None:
    graph = bench_remat.chain(16)
    (row,) = [row for row in _rows("chains") if row[0] == graph.name]
    (planned, _) = bench_remat.rows_of(graph.name, graph, (40, 30))
    assert row[1] == f"{planned.plain / 2**20:.0f}" and row[4:6] == [f"{planned.share:.1%}", ""]


@needs_avx512
@pytest.mark.parametrize(("shown", "name"), [("ResNet18", "resnet18"), ("MobileNetV2", "mobilenet_v2")])
def test_the_page_on_fusion_has_the_operators_and_bytes_of_plans(shown: str, name: str) -> None:
    built = NETWORKS[name]()
    graphs = built, engine.optimise(built, 2)
    counts, sizes = (
        [str(len(g.operators)) for g in graphs],
        [engine.make_plan(g, optimise=0).arena_bytes for g in graphs],
    )
    (line,) = [line for line in (ROOT / "docs/fusion.md").read_text().splitlines() if line.startswith(f"| {shown} | ")]
    operators, arenas = line.split("|")[2:4]
    assert [operators.split(",")[0].strip(), operators.split(",")[2].strip()] == counts
    assert arenas.strip() == ", ".join(f"{size:,}" for size in sizes)


def test_sentences_on_savings_are_those_of_the_table() -> None:
    page, rows = _page("docs/compare_plans.md"), _rows("placements")
    saved = [_share(row[-1]) for row in rows]
    assert f"{min(saved):.0f} to {max(saved):.0f} % less" in page
    small = {row[0]: [float(cell.split()[0]) for cell in row[2:-1]] for row in rows if row[1] == "1"}
    large = {
        row[0]: [float(cell.split()[0]) for cell in row[2:5]] + [float(row[5].split()[0])]
        for row in rows
        if row[1] != "1"
    }
    pytorch = [sizes[2] for sizes in small.values()]
    assert f"PyTorch's reserves {min(pytorch):.0f} to {max(pytorch):.0f} MiB" in page
    assert small["resnet50"][3] == small["resnet50"][4] == small["mobilenet_v2"][3] == small["mobilenet_v2"][4]
    assert f"cannot go below {small['resnet50'][3]:.2f} MiB" in page
    less = [1 - small[name][5] / small[name][4] for name in ("resnet50", "mobilenet_v2")]
    assert "ResNet-50 needs {:.0f} % less and MobileNetV2 {:.0f} %".format(*(100 * share for share in less)) in page
    above = [large[name][2] / large[name][3] - 1 for name in ("resnet50", "mobilenet_v2")]
    assert (
        "{:.0f} % above reference counting for ResNet-50, {:.0f} % for MobileNetV2".format(
            *(100 * share for share in above)
        )
        in page
    )


def test_a_sentence_on_measured_memory_is_that_of_the_table() -> None:
    off = max(abs(_share(row[3])) for row in _rows("measured"))
    assert f"static predictions there hold within {off:.1f} %" in _page("docs/faq.md")


def test_sentences_on_nesting_are_those_of_the_table() -> None:
    saved = [_share(row[5]) for row in _rows("nested") if row[0] == "densenet121" and row[2]]
    assert f"DenseNet needs {min(saved):.0f} to {max(saved):.0f} % less" in _page("docs/algorithms/nesting.md")


def test_sentences_on_orders_are_those_of_the_table() -> None:
    page = _page("docs/order.md")
    saved = {row[0]: _share(row[5]) for row in _rows("order", "docs/benchmarks.md")}
    wired = [saved[f"random_wired?wiring={wiring}"] for wiring in range(3)]
    assert f"need {min(wired):.0f} to {max(wired):.0f} % less" in page
    assert f"and {saved['random_wired?nodes=48']:.0f} % less with 48" in page
    assert f"ShuffleNet needs {saved['light:shufflenet']:.0f} % less, MiniLM {saved['minilm']:.0f} %" in page
    trained = max(share for name, share in saved.items() if name.startswith("train:"))
    assert f"need up to {trained:.0f} % less" in page
    *late, most = sorted(share for name, share in saved.items() if name.startswith("late:"))
    assert f"{late[0]:.0f} to {late[-1]:.0f} %, and {most:.0f} % where" in page


def test_a_sentence_on_strip_packing_is_that_of_its_plans() -> None:
    problem = DEEPLAB_V3.problem()
    packed, by_size = (solve(problem, strategy) for strategy in ("strip_packing_bestfit", "greedy_by_size"))
    assert packed.arena_bytes == packed.lower_bound
    sizes = packed.arena_bytes / 2**20, by_size.arena_bytes / 2**20
    wanted = "DeepLab v3 it needs {:.2f} MiB, which is the bound, and greedy by size needs {:.2f}.".format(*sizes)
    assert wanted in _page("docs/algorithms/strip_packing.md")
