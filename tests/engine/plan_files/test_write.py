"""Plans as files: each is read back by somebody else, and a program in C uses the header."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import engine
from allocator.check.offsets import check
from allocator.errors import UnsupportedProblemError
from allocator.io import formats
from engine import ExecutionPlan, Graph
from engine.cli.main import main
from engine.plan_files.suffixes import SUFFIXES
from engine.plan_files.write import buffers_of
from engine.text.errors import OptionError
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.onnx.saved_models import save_perceptron
from tests.helpers.paths import ROOT
from tests.helpers.traces.moved_tensors import moved_tensors

COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
FLAGS = ("-std=c99", "-Wall", "-Werror", "-pedantic")
MACRO = re.compile(r"#define ARENA_(OFFSET|SIZE)_(\w+) (\d+)u")


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(save_perceptron(tmp_path / "m.onnx"))


def plan_of(model: str, **options: bool) -> ExecutionPlan:
    return engine.make_plan(engine.load_onnx(model), overwrite=options.get("overwrite", True))


def build(folder: Path, program: str) -> list[str]:
    """Compiles and runs a program beside the headers in a folder; returns the lines that it prints."""
    (folder / "main.c").write_text(program)
    command = [str(COMPILER), *FLAGS, str(folder / "main.c"), "-o", str(folder / "main")]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    done = subprocess.run([str(folder / "main")], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.splitlines()


@settings(max_examples=20, deadline=None)
@given(graphs())
def test_the_buffers_of_a_plan_with_their_offsets_pass_the_checker(graph: Graph) -> None:
    plan = engine.make_plan(graph, strategy="greedy_by_size")
    instance = buffers_of(plan)
    assert check(instance.problem, instance.offset, plan.arena_bytes) is None
    assert instance.arena_bytes == plan.arena_bytes


@settings(max_examples=20, deadline=None)
@given(graph=graphs())
def test_a_header_has_the_bytes_of_every_tensor(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("header") / "plan.h"
    plan = engine.make_plan(graph, strategy="greedy_by_size", optimise=0)
    engine.write_plan(plan, path)
    macros: dict[str, dict[str, int]] = {"OFFSET": {}, "SIZE": {}}
    for kind, name, value in MACRO.findall(path.read_text()):
        macros[kind][name] = int(value)
    users = np.zeros(plan.arena_bytes, int)
    for name, var in graph.inputs.items():
        assert macros["SIZE"][name] == var.spec.nbytes
        users[macros["OFFSET"][name] :][: var.spec.nbytes] += 1
    assert users.max(initial=0) <= 1  # all inputs are there when the run begins
    assert all(macros["OFFSET"][n] + macros["SIZE"][n] <= plan.arena_bytes for n in macros["OFFSET"])
    assert len(macros["SIZE"]) == len(plan.ids)
    assert f"#define ARENA_BYTES {plan.arena_bytes}u\n" in path.read_text()


def test_the_header_has_the_true_alignment(model: str, tmp_path: Path) -> None:
    for alignment in (16, 64, 256):
        plan = engine.make_plan(engine.load_onnx(model), alignment=alignment, target="none")
        engine.write_plan(plan, tmp_path / "plan.h")
        text = (tmp_path / "plan.h").read_text()
        assert f"#define ARENA_ALIGNMENT {alignment}u\n" in text and "for target 'none'" in text


@needs_compiler
def test_the_program_of_the_page_runs(model: str, tmp_path: Path) -> None:
    (program,) = re.findall(r"```c\n(.*?)```", (ROOT / "docs" / "firmware.md").read_text(), re.S)
    assert main(["plan", model, "-o", str(tmp_path / "plan.h")]) == 0
    lines = build(tmp_path, program)
    plan = plan_of(model)
    assert lines[-1] == f"{len(plan.ids)} tensors in {plan.arena_bytes} bytes"


@needs_compiler
def test_two_headers_of_different_prefixes_go_into_one_program(model: str, tmp_path: Path) -> None:
    for prefix in ("FIRST", "second"):
        assert main(["plan", model, "-o", str(tmp_path / f"{prefix}.h"), "--prefix", prefix]) == 0
    program = """#include <stdio.h>
#include "FIRST.h"
#include "second.h"
int main(void) { printf("%u %u %d\\n", FIRST_BYTES, second_BYTES, FIRST_TENSORS == (int)second_TENSORS); return 0; }
"""
    size = plan_of(model).arena_bytes
    assert build(tmp_path, program) == [f"{size} {size} 1"]


def test_a_prefix_that_is_no_identifier_is_refused(model: str, tmp_path: Path, capsys: Capture) -> None:
    words = ["plan", model, "-o", str(tmp_path / "plan.h"), "--prefix", "a-b"]
    assert "is no identifier of C" in error(words, 1, capsys)
    assert not (tmp_path / "plan.h").exists()


def test_the_json_file_is_what_the_command_prints(model: str, tmp_path: Path, capsys: Capture) -> None:
    printed = data(["plan", model, "-o", str(tmp_path / "plan.json")], capsys)
    assert json.loads((tmp_path / "plan.json").read_text()) == printed
    engine.write_plan(plan_of(model), tmp_path / "other.json")
    assert json.loads((tmp_path / "other.json").read_text()).keys() == printed.keys()


@pytest.mark.parametrize("suffix", [".csv", ".plc"])
def test_buffers_without_overwrites_are_read_back_and_checked(suffix: str, model: str, tmp_path: Path) -> None:
    plan, path = plan_of(model, overwrite=False), tmp_path / f"plan{suffix}"
    engine.write_plan(plan, path)
    instance = formats.read(path)
    assert instance.offset.tolist() == plan.plan.offset.tolist()
    assert check(instance.problem, instance.offset, plan.arena_bytes) is None
    with pytest.raises(UnsupportedProblemError, match="cannot hold overwrites; plan without them"):
        engine.write_plan(plan_of(model), path)


def test_intervals_keep_alignment_in_their_sizes(model: str, tmp_path: Path) -> None:
    plan = plan_of(model)
    engine.write_plan(plan, tmp_path / "plan.txt")
    problem = formats.read(tmp_path / "plan.txt").problem
    roots = np.setdiff1d(np.arange(len(problem)), problem.src)
    assert (problem.size[roots] % 64 == 0).all() and len(problem.src) == len(plan.problem.src)


def test_plans_for_tensorflow_lite_have_the_offsets_in_order(model: str, tmp_path: Path) -> None:
    plan = plan_of(model)
    engine.write_plan(plan, tmp_path / "plan.bin")
    engine.write_plan(plan, tmp_path / "plan.c")
    offsets = plan.plan.offset.tolist()
    assert np.fromfile(tmp_path / "plan.bin", "<i4").tolist() == [0, 1, len(offsets), *offsets]
    assert re.findall(r"offset = (\d+)", (tmp_path / "plan.c").read_text()) == [str(o) for o in offsets]


def test_a_record_of_megengine_is_read_back_from_its_own_suffix(model: str, tmp_path: Path, capsys: Capture) -> None:
    path = str(tmp_path / "plan.megengine.json")
    assert main(["plan", model, "-o", path]) == 0
    capsys.readouterr()
    plan = plan_of(model)
    assert data(["solve", path, "--validate"], capsys)["arena_bytes"] == plan.arena_bytes
    again = str(tmp_path / "again.megengine.json")
    assert main(["solve", path, "-o", again]) == 0
    assert formats.read(Path(again)).ids == formats.read(Path(path)).ids


def test_a_model_with_its_plan_needs_the_model(model: str, tmp_path: Path) -> None:
    plan = plan_of(model)
    with pytest.raises(OptionError, match="give `source`"):
        engine.write_plan(plan, tmp_path / "planned.onnx")
    engine.write_plan(plan, tmp_path / "planned.onnx", source=model)
    saved = engine.load_plan(tmp_path / "planned.onnx")
    assert saved is not None and saved.arena_bytes == plan.arena_bytes


def test_an_unknown_suffix_is_refused_with_the_list(model: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=re.escape(", ".join(SUFFIXES))):
        engine.write_plan(plan_of(model), tmp_path / "plan.yaml")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]


def test_a_file_of_one_plan_is_refused_for_ranges_of_lengths(tmp_path: Path, capsys: Capture) -> None:
    model = str(save_perceptron(tmp_path / "n.onnx", "n"))
    words = ["plan", model, "--length-ranges", "n=1:4", "-o"]
    assert "give --dim in place of --length-ranges" in error([*words, str(tmp_path / "p.h")], 2, capsys)
    printed = data([*words, str(tmp_path / "p.json")], capsys)
    assert json.loads((tmp_path / "p.json").read_text()) == printed and "bound_costs" in printed


def test_the_solver_writes_what_it_prints(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "b.csv").write_text("id,lower,upper,size\na,0,2,10\nb,1,3,20\n")
    printed = data(["solve", str(tmp_path / "b.csv"), "-o", str(tmp_path / "out.json")], capsys)
    assert json.loads((tmp_path / "out.json").read_text()) == printed
    assert main(["solve", str(tmp_path / "b.csv"), "-o", str(tmp_path / "out.h"), "--prefix", "MINE"]) == 0
    assert "#define MINE_BYTES 30u" in (tmp_path / "out.h").read_text()


@pytest.mark.parametrize("name", ["plan.c", "plan.bin"])
def test_a_plan_of_one_arena_is_refused_where_tensors_lie_in_several_memories(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedProblemError, match=r"has one arena, this one lies in sram, dram; \.h and \.json"):
        engine.write_plan(moved_tensors(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_table_of_buffers_names_the_memory_of_each_where_there_are_several(tmp_path: Path, capsys: Capture) -> None:
    graph, path = Graph("sums"), str(tmp_path / "plan.csv")
    x = graph.input("x", (16, 16))
    graph.output(x @ (x @ x) + x, "y")
    plan = engine.make_plan(graph, memories=["fast=2KiB,10GB/s", "slow=64KiB,1GB/s"], overwrite=False, optimise=0)
    engine.write_plan(plan, path)
    head, *rows = Path(path).read_text().splitlines()
    assert head.endswith(",memory,offset") and {row.split(",")[-2] for row in rows} == {"fast", "slow"}
    instance = formats.read(Path(path))
    ((memories,), fast) = plan.memories, np.array(instance.memory) == "fast"
    low, high = memories.ranges[0]
    assert (fast == ((low <= instance.offset) & (instance.offset < high))).all()
    assert data(["solve", path, "--validate"], capsys)["arena_bytes"] == plan.arena_bytes
    for more in ([], ["--pinned"], ["--validate", path]):
        said = error(["solve", path, *more], 2, capsys)
        assert "its buffers lie in the memories slow, fast (column 'memory')" in said.replace(
            "fast, slow", "slow, fast"
        )
    assert "leave out --strategy" in error(["view", path, "--strategy", "naive", "-o", f"{path}.html"], 2, capsys)
    assert main(["view", path, "-o", f"{path}.html"]) == 0
    with pytest.raises(UnsupportedProblemError, match="cannot hold memories"):
        engine.write_plan(plan, tmp_path / "plan.plc")
