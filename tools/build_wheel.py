"""Builds a wheel that carries the machine code of all functions, so that its first use compiles nothing.

    python -m tools.build_wheel [--processor aarch64] [-o dist]

The wheel is for Linux on one kind of processor, and chooses among its instruction sets when it runs. Making the code
takes some minutes. It is packed in a copy of the packages, so the checkout stays as it is. `pip wheel .` makes a wheel
without machine code, which serves any system and compiles at its first use.
"""

import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copyfile, copytree, ignore_patterns
from tempfile import TemporaryDirectory

from allocator.machine_code.instructions import PROCESSORS, sets_of, this_kind
from allocator.machine_code.store import PACKAGED
from allocator.progress import Activity
from engine.cli.progress import add_quiet, progress_shown
from engine.system.threads import cpus
from tools.entry import run_script

ROOT = Path(__file__).resolve().parent.parent
FOLDERS, FILES = ("engine", "allocator", "ops"), ("arenaplan.py", "pyproject.toml", "README.md", "LICENSE")
"""What a wheel is made from."""
MADE = PACKAGED.relative_to(ROOT)
"""Where it has the code."""


def make_code(folder: Path, processor: str) -> None:
    """Makes all code for all instruction sets of a kind of processor. Raises CalledProcessError where some fails."""

    def make(instructions: str) -> None:
        more = ["--instructions", instructions, "--processor", processor]
        command = [sys.executable, "-m", "tools.make_machine_code", str(folder), *more]
        subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=True)

    with ThreadPoolExecutor(cpus()) as threads, Activity("making code for", processor):
        list(threads.map(make, (each.name for each in sets_of(processor))))


def pack(code: Path, processor: str, output: Path, *options: str) -> Path:
    """Returns a wheel of this checkout with a folder of machine code, in the folder `output`; `options` are pip's.

    Raises CalledProcessError where pip fails.
    """
    with TemporaryDirectory() as name:
        copy, built = Path(name, "copy"), Path(name, "built")
        for folder in FOLDERS:
            copytree(ROOT / folder, copy / folder, ignore=ignore_patterns("__pycache__"))
        for file in FILES:
            copyfile(ROOT / file, copy / file)
        copytree(code, copy / MADE)
        platform = f"--config-settings=--build-option=--plat-name=linux_{processor}"
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", platform, *options]
        subprocess.run([*command, "-w", str(built), str(copy)], stdout=sys.stderr, check=True)
        (wheel,) = built.glob("*.whl")
        output.mkdir(parents=True, exist_ok=True)
        return Path(copyfile(wheel, output / wheel.name))


def main(argv: Sequence[str] | None = None) -> int:
    """Builds the wheel, and prints its path."""
    parser = ArgumentParser("build_wheel", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processor", choices=PROCESSORS, default=this_kind(), help="its kind (default: this one's)")
    parser.add_argument("-o", "--output", type=Path, default=Path("dist"), metavar="FOLDER", help="where it is written")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    try:
        with progress_shown(arguments.quiet), TemporaryDirectory() as code:
            make_code(Path(code), arguments.processor)
            print(pack(Path(code), arguments.processor, arguments.output))
    except subprocess.CalledProcessError as error:
        print(f"build_wheel: error: {' '.join(error.cmd[1:4])} failed, as it says above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run_script(main)
