"""A wheel that carries machine code runs a network with no compiler, the first time ever."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from allocator.machine_code import load
from allocator.machine_code.instructions import PROCESSORS, sets_of, this_kind
from tests.helpers.paths import ROOT
from tools import build_wheel
from tools.build_wheel import make_code, pack

_RUN = """
import sys
import numpy as np
import engine, ops
graph = engine.Graph("small")
graph.output(ops.softmax(ops.relu(graph.input("x", (3, 40)))), "y")
y = engine.compile(graph, threads=1).run({"x": np.linspace(-1, 1, 120, dtype=np.float32).reshape(3, 40)})["y"]
print(*y.ravel().tolist())
print(engine.__file__, *{"numba", "llvmlite"} & set(sys.modules))
"""


def _run(folder: Path, home: Path) -> tuple[str, str]:
    """Runs a network in a new process, with the packages of a folder; returns the numbers, and what was loaded."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    environment = {**kept, "PYTHONPATH": str(folder), "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error", "-c", _RUN]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    numbers, loaded = done.stdout.splitlines()
    return numbers, loaded


def _made(folder: Path) -> tuple[Path, str]:
    """Makes the code that the network needs, from the checkout; returns its folder and the numbers of the network."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder)}
    run = subprocess.run([sys.executable, "-c", _RUN], env=environment, capture_output=True, text=True, check=True)
    (code,) = folder.iterdir()
    return code, run.stdout.splitlines()[0]


@pytest.mark.slow
@pytest.mark.skipif(not load.IS_SUPPORTED or this_kind() not in PROCESSORS, reason="no machine code is kept here")
def test_a_wheel_with_machine_code_runs_without_a_compiler_the_first_time(tmp_path: Path) -> None:
    code, expected = _made(tmp_path / "code")
    wheel = pack(code, this_kind(), tmp_path / "dist", "--no-build-isolation")
    assert wheel.name.endswith(f"-py3-none-linux_{this_kind()}.whl")
    installed, home = tmp_path / "installed", tmp_path / "home"
    home.mkdir()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*install, "--target", str(installed), str(wheel)], check=True, capture_output=True)
    files = {*installed.rglob("*")}
    assert sum(path.suffix == ".code" for path in files) == len([*code.rglob("*.code")]) > 2
    for path in files:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert _run(installed, home) == (expected, str(installed / "engine" / "__init__.py"))
    assert {*installed.rglob("*")} == files and not [*home.rglob("*.code")]


@pytest.mark.slow
def test_a_wheel_has_all_packages_and_nothing_that_was_made_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, code = tmp_path / "checkout", tmp_path / "code"
    for name in ("engine", "allocator", "ops"):
        (checkout / name / "__pycache__").mkdir(parents=True)
        (checkout / name / "__init__.py").write_text("")
        (checkout / name / "__pycache__" / "old.code").write_text("")
    (checkout / "allocator" / "machine_code").mkdir()
    (checkout / "allocator" / "machine_code" / "__init__.py").write_text("")
    for name in ("arenaplan.py", "pyproject.toml", "README.md", "LICENSE"):
        (checkout / name).write_text((ROOT / name).read_text())
    (code / "ops.some_code").mkdir(parents=True)
    (code / "ops.some_code" / "work-avx2.code").write_text("code")
    monkeypatch.setattr(build_wheel, "ROOT", checkout)
    with ZipFile(pack(code, "aarch64", tmp_path / "dist", "--no-build-isolation")) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (tags,) = [name for name in wheel.namelist() if name.endswith("/WHEEL")]
        assert "Tag: py3-none-linux_aarch64" in wheel.read(tags).decode()
    assert names == {
        "arenaplan.py",
        *("engine/__init__.py", "allocator/__init__.py", "allocator/machine_code/__init__.py", "ops/__init__.py"),
        "allocator/machine_code/made/ops.some_code/work-avx2.code",
    }


def test_code_is_made_for_each_set_of_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[str] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: commands.append(" ".join(command[2:])))
    make_code(tmp_path, "x86_64")
    names = [each.name for each in sets_of("x86_64")]
    assert sorted(commands) == sorted(
        f"tools.make_machine_code {tmp_path} --instructions {name} --processor x86_64" for name in names
    )
