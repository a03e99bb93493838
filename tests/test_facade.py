"""`import arenaplan` has the public names of all packages, and says where a foreign package stands before ours."""

import subprocess
import sys
from pathlib import Path

import pytest

import allocator
import arenaplan
import engine
import ops
from engine import zoo
from tests.helpers.paths import ROOT


def test_the_facade_has_the_public_names() -> None:
    assert dir(arenaplan) == sorted([*engine.__all__, "allocator", "ops", "zoo"])
    assert all(getattr(arenaplan, name) is getattr(engine, name) for name in engine.__all__)
    assert (arenaplan.ops, arenaplan.allocator, arenaplan.zoo) == (ops, allocator, zoo)
    with pytest.raises(AttributeError, match="module 'arenaplan' has no attribute 'Grap'"):
        arenaplan.Grap  # type: ignore[attr-defined]  # noqa: B018 (that it raises is the test)


def test_completion_shows_public_names_only() -> None:
    for package in (engine, ops):
        assert dir(package) == sorted(package.__all__)


@pytest.mark.parametrize("imported", ["arenaplan", "engine", "engine.cli.main"])
@pytest.mark.parametrize("kind", ["file", "folder", "package"])
@pytest.mark.parametrize("name", ["ops", "allocator", "engine"])
def test_a_foreign_package_is_named(tmp_path: Path, name: str, kind: str, imported: str) -> None:
    if name == "engine" and imported != "arenaplan":
        pytest.skip("Python finds nothing of ours")
    place = tmp_path / (f"{name}.py" if kind == "file" else name)
    if kind == "file":
        place.write_text("x = 1\n")
    else:
        place.mkdir()
    if kind == "package":
        (place / "__init__.py").write_text("x = 1\n")
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]"
    command = [sys.executable, "-c", f"{path}; import {imported}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if kind == "folder":
        assert run.returncode == 0, "a folder that is no package stands behind all packages"
        return
    last = run.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: arenaplan has a package {name!r} in {ROOT}, and Python finds another one: ")
    assert str(place) in last


def test_links_to_the_files_of_a_package_are_no_foreign_package(tmp_path: Path) -> None:
    """uv installs so with `--link-mode symlink`."""
    for file in (ROOT / "arenaplan.py", *(f for p in ("allocator", "engine", "ops") for f in (ROOT / p).rglob("*.py"))):
        link = tmp_path / file.relative_to(ROOT)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import arenaplan; print(arenaplan.__file__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{tmp_path / 'arenaplan.py'}\n", "")
