"""The first use ever of an installed wheel beside the tenth: processes that load a network and run it.

    python -m tools.bench_wheel [--wheel dist/arenaplan-0.1.0-py3-none-linux_x86_64.whl] [-o FILE.json]

The wheel is installed into a new folder, beside the packages of this interpreter, and the home is empty. A wheel
without machine code is measured, too. Times are from the start of the process to its first output
(`tools/whole_process.py`).
"""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from allocator.io.files import write_whole
from allocator.machine_code.instructions import this_kind
from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown
from tools.bench_process import measured
from tools.benchmark_tables import first_use_table, markdown
from tools.build_wheel import make_code, pack
from tools.entry import run_script
from tools.run_networks import NETWORKS, loaded, network_file

CARRIED, MADE = "carried", "made at first use"
USES = 10

Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table; writes rows as JSON where asked."""
    arguments = _arguments(argv)
    with progress_shown(arguments.quiet), TemporaryDirectory() as folder:
        code, empty, output = (Path(folder, name) for name in ("code", "empty", "wheels"))
        empty.mkdir()
        wheel = arguments.wheel
        if wheel is None:
            make_code(code, this_kind())
            wheel = pack(code, this_kind(), output / CARRIED)
        wheels = {CARRIED: wheel, MADE: pack(empty, this_kind(), output / MADE)}
        rows = [row for kind, path in each("wheel", [*wheels.items()], str) for row in _rows(kind, path, arguments)]
    print(markdown(first_use_table(rows)))
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps({"rows": rows}, indent=1) + "\n").encode())
    return 0


def _rows(kind: str, wheel: Path, arguments: Namespace) -> Iterable[Row]:
    for network in arguments.networks:
        with TemporaryDirectory() as folder:
            seconds = _uses(wheel, network, Path(folder))
        yield {
            "network": network,
            "code": kind,
            "wheel_bytes": wheel.stat().st_size,
            "first_seconds": seconds[0],
            "tenth_seconds": seconds[-1],
        }


def _uses(wheel: Path, network: str, folder: Path) -> list[float]:
    """Returns the seconds of the first uses of a wheel that is installed into a folder."""
    installed, home, feeds = folder / "installed", folder / "home", folder / "feeds.npz"
    home.mkdir()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", str(installed), str(wheel)], stdout=sys.stderr, check=True)
    model = network_file(network)
    np.savez(feeds, **loaded(model)[1])  # type: ignore[arg-type]
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    environment = kept | {"PYTHONPATH": str(installed), "HOME": str(home)}
    return [measured("arenaplan", model, feeds, environment)["seconds"] for _ in range(USES)]


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), default=("squeezenet", "resnet50"))
    parser.add_argument("--wheel", type=Path, help="with machine code (default: one is built, in some minutes)")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_script(main)
