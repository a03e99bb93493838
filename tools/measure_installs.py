"""Measures what `make demo` and `make test` install, in a fresh clone with an empty home, and writes it into README.md.

    python -m tools.measure_installs

The clone has what is committed. pip's cache and settings are those of the caller. The seconds depend on where its
packages come from: its cache, a mirror nearby, or the package index.
"""

import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown
from engine.text.units import format_bytes
from tools.benchmark_tables import markdown, replaced
from tools.entry import run_script

ROOT = Path(__file__).resolve().parent.parent
STEPS = (("`make demo`", "demo"), ("`make test`, before its first test", ".venv/.test"))
"""What the table calls a step, and its target of make. The second one is added to what the first one installed."""


def installs_table() -> str:
    """Returns a line for each step: what `.venv` takes on disk, and the seconds of the step."""
    return markdown([["after", "`du -sh .venv`", "seconds"], *_rows()])


def _rows() -> Iterable[Sequence[str]]:
    cache = subprocess.run([sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=True)
    with TemporaryDirectory() as folder:
        clone, home = Path(folder, "clone"), Path(folder, "home")
        home.mkdir()
        environment = os.environ | {"PIP_CACHE_DIR": cache.stdout.strip(), "HOME": str(home)}
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        for name, target in each("step", STEPS, str):
            begin = time.monotonic()
            subprocess.run(["make", "--silent", target], cwd=clone, env=environment, stdout=sys.stderr, check=True)
            yield [name, format_bytes(bytes_on_disk(clone / ".venv")), f"{time.monotonic() - begin:.0f}"]


def bytes_on_disk(folder: Path) -> int:
    """Returns the bytes of the blocks that a folder's files and folders take, as `du` counts them."""
    blocks = {(s.st_dev, s.st_ino): s.st_blocks for s in (p.lstat() for p in (folder, *folder.rglob("*")))}
    return 512 * sum(blocks.values())


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the table."""
    parser = ArgumentParser("measure_installs", description=__doc__)
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet):
        table = installs_table()
    page = ROOT / "README.md"
    write_whole(page, replaced(page.read_text(), "installs", table).encode())
    return 0


if __name__ == "__main__":
    run_script(main)
