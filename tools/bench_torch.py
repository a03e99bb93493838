"""Memory of one run of modules of PyTorch: eager, compiled by torch.compile, and through engine.load_torch.

    python -m tools.bench_torch [--modules encoder] [-o FILE.json]

Each measurement is a process of its own with one thread (`tools/torch_process.py`). It needs what `engine.load_torch`
needs, and a compiler of C++ for torch.compile. The table in docs/torch.md is written anew where all modules are
measured.
"""

import json
import subprocess
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown
from tools.benchmark_tables import markdown, replaced
from tools.entry import run_script

PAGE = Path("docs/torch.md")
WAYS = ("eager", "compile", "arenaplan")
MODULES: Mapping[str, str] = {
    "residual network": "ResNet-18's layers, an image of 224x224",
    "U-Net": "four levels, an image of 256x256",
    "encoder": "eight layers of attention, 512 tokens",
}
"""The names in `tools/networks/torch_modules.py`, which only processes with torch import, and what they are."""

Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table, and writes it into the page where all modules were measured; writes JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--modules", nargs="+", choices=MODULES, default=list(MODULES))
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet):
        rows = [{"module": name, **measured(name)} for name in each("module", arguments.modules)]
    table = markdown(torch_table(rows))
    print(table)
    if set(arguments.modules) == set(MODULES):
        text = f"{table}\n\nMeasured with PyTorch {version('torch').partition('+')[0]}."
        write_whole(PAGE, replaced(PAGE.read_text(encoding="utf-8"), "torch", text).encode())
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps({"rows": rows}, indent=1) + "\n").encode())
    return 0


def measured(name: str) -> Row:
    """Measures a module in a process for each way."""
    row: Row = {}
    for way in WAYS:
        command = [sys.executable, "-m", "tools.torch_process", way, name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        result = json.loads(done.stdout.splitlines()[-1])
        row[f"{way}_bytes"] = result["run_bytes"]
        row["arena_bytes"], row["difference"] = result["arena_bytes"], result["difference"]
    return row


def torch_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each module: megabytes of a run, and the arena."""
    yield ["module", "eager, MB", "torch.compile, MB", "arenaplan, MB", "of it the arena, MB"]
    for row in rows:
        numbers = (f"{row[key] / 1e6:.1f}" for key in (*(f"{way}_bytes" for way in WAYS), "arena_bytes"))
        yield [f"{row['module']} ({MODULES[row['module']]})", *numbers]


if __name__ == "__main__":
    run_script(main)
