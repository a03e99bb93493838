"""All machine code of an instruction set is made beforehand, whatever processor makes it."""

import subprocess
import sys
from pathlib import Path

import pytest

from allocator.machine_code import instructions
from allocator.machine_code.image import read_image
from allocator.machine_code.instructions import PROCESSORS, this_kind
from tests.helpers.paths import ROOT
from tools import make_machine_code
from tools.make_machine_code import make_all, modules

SMALL = "tests.helpers.machine_code.small_code"
pytestmark = pytest.mark.skipif(this_kind() not in PROCESSORS, reason="unknown processor")


def test_all_modules_of_compiled_code_are_found() -> None:
    names = set(modules())
    assert {"ops.convolution.tiled_code", "ops.native.program_code", "allocator.kernels.gaps"} <= names
    declaring = {path for path in (ROOT / "ops").rglob("*.py") if "\n@entry(" in path.read_text()}
    assert len(declaring) <= len(names)


@pytest.mark.parametrize("kind", PROCESSORS)
def test_functions_are_written_and_what_cannot_be_made_is_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instructions, "_CHOICE", instructions._Choice())
    monkeypatch.setattr(make_machine_code, "modules", lambda: iter([SMALL]))
    (fault,) = make_all(tmp_path, "portable", kind)
    assert "small_code.allocate" in fault and {"x86_64": "no function of the C", "aarch64": "only x86"}[kind] in fault
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.code"))
    assert files == [f"{SMALL}/{name}-portable.code" for name in ("pick", "power", "thrice", "twice")]
    assert all(read_image((tmp_path / file).read_bytes(), file).sources for file in files)


@pytest.mark.slow
def test_all_functions_of_a_set_can_be_made(tmp_path: Path) -> None:
    """Of another processor: those of this one are made where other tests call them."""
    more = ["--instructions", "portable", "--processor", "aarch64"]
    command = [sys.executable, "-m", "tools.make_machine_code", str(tmp_path), *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
