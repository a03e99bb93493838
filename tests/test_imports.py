"""Which modules may import what is heavy: compiled code stays in its rooms, and `import engine` loads neither."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

PACKAGES = ("ops", "allocator", "engine")
EMITS_CODE = re.compile(
    r"allocator/machine_code/(memory|arrays_code)\.py|ops/(native|vector)/|ops/\w+/(\w+_)?(code|emit)\.py"
)
HEAVY = {"numba", "llvmlite", "onnx", "onnxruntime", "cffi", "matplotlib", "bokeh", "scipy", "perfetto", "google"}
"""Packages that nothing may load that can do without."""
MOST_MODULES = 20
"""Of our own that `import engine` may load: public names are imported when they are first used."""


def test_only_rooms_that_emit_code_import_numba_and_llvmlite() -> None:
    importers = {str(path) for path, module in _imports() if module.split(".")[0] in ("numba", "llvmlite")}
    assert importers, "compiled code imports numba"
    assert not {path for path in importers if not EMITS_CODE.match(path)}


def test_import_engine_loads_no_heavy_package_and_few_modules_of_ours() -> None:
    code = "import sys, engine; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert not HEAVY & set(loaded)
    assert sum(name.split(".")[0] in PACKAGES for name in loaded) <= MOST_MODULES


LAZY = ("explain", "remat", "saved", "searches", "stages", "trace")
"""Rooms of the engine whose names are imported when they are first used."""

RELU = """
import engine, numpy as np, ops
graph = engine.Graph("relu")
graph.output(ops.relu(graph.input("x", (4,))), "y")
engine.compile(graph, backend="numpy").run({"x": np.ones(4, np.float32)})
"""
SOLVE = """
from pathlib import Path
from engine.cli.main import main
Path("two.csv").write_text("id,lower,upper,size\\na,0,2,8\\nb,1,3,8\\n")
assert main(["solve", "two.csv", "-q"]) == 0
import sys
assert not {"numpy.ma", "allocator.solvers.race", "allocator.io.megengine_record"} & set(sys.modules)
"""
PLAN = """
from engine.cli.main import main
assert main(["plan", "zoo:squeezenet?image=64", "-q", "--backend", "numpy"]) == 0
"""


@pytest.mark.parametrize(
    ("program", "most", "draws"),
    [(RELU, 485, False), (SOLVE, 119, False), (PLAN, 625, True)],
    ids=["relu", "arenaplan solve", "arenaplan plan"],
)
def test_what_reads_no_model_file_loads_no_onnx_and_few_modules_of_ours(
    program: str, most: int, draws: bool, tmp_path: Path
) -> None:
    code = f"{program}\nimport sys; print(*sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    loaded = run.stdout.splitlines()[-1].split()
    assert not {*HEAVY, "importlib.metadata", "asyncio"} & set(loaded)
    assert ("numpy.random" in loaded) == draws
    assert sum(name.split(".")[0] in PACKAGES for name in loaded) <= most


COLLECTED = """
import gc, sys
from engine.cli.main import main
for words in (["solve", "none.csv", "-q"], None):
    sys.argv = ["arenaplan", "solve", "none.csv", "-q"]
    assert main(words) == 1
    print(gc.isenabled(), gc.get_freeze_count() > 10_000)
"""


def test_the_garbage_collector_passes_over_what_the_process_of_a_command_imports(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", COLLECTED], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == ["True False", "True True"]


@pytest.mark.parametrize("name", ["engine", "ops", *(f"engine.{room}" for room in LAZY)])
def test_public_names_are_imported_from_where_types_are_checked(name: str) -> None:
    package = import_module(name)
    body = ast.parse(Path(str(package.__file__)).read_text()).body
    (guard,) = [node for node in body if _is_guard(node)]
    imports = [node for node in ast.walk(guard) if isinstance(node, ast.ImportFrom)]
    homes = {name.asname or name.name: f"{node.module}:{name.name}" for node in imports for name in node.names}
    assert homes == package._HOMES
    assert sorted(homes) == sorted(package.__all__)
    assert all(getattr(package, name) is not None for name in package.__all__)


def _is_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _imports() -> Iterator[tuple[Path, str]]:
    """Yields each import in our packages, inside functions too: the path of the module, and what it imports."""
    for path in sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((path.relative_to(ROOT), name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield path.relative_to(ROOT), node.module
