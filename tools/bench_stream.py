"""The memory and time of an image in stripes of rows: its anonymous memory beyond that of the interpreter.

    python -m tools.bench_stream [--size 20000] [--budget "40 MiB"] [--folder DIR] [-o FILE.json]

The image of size x size pixels of 3 bytes is a file, and so is the mask that the network gives, size x size numbers of
float32. A process of its own maps both, and streams the one into the other. Its anonymous memory (RssAnon, man 5
proc_pid_status) is read every 20 ms: once all packages are imported, and at most until the end. Pages of the two files
are not anonymous: the system takes them back as it likes.
"""

import json
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from attrs import asdict, frozen

import engine
import ops
from allocator.io.files import write_whole
from allocator.progress import Activity, each
from engine import Graph
from engine.cli.options.values import positive
from engine.cli.progress import add_quiet, progress_shown
from engine.graph.var import Var
from engine.system.process_memory import anonymous_bytes
from engine.text.units import format_bytes
from tools.entry import run_script

_PAUSE = 0.02
_IMAGE, _MASK, _STORY = "image.u8", "mask.f32", "story.json"
_WRITTEN_ROWS = 256


@frozen
class Row:
    """One stream. `imported_bytes` is the anonymous memory after all imports, `most_bytes` the most that was seen.

    `whole_bytes` is the arena of the whole image; `again` the part of all operations that is done again.
    """

    size: int
    height: int
    stripes: int
    kinds: int
    arena_bytes: int
    whole_bytes: int
    again: float
    imported_bytes: int
    most_bytes: int
    seconds: float

    @property
    def beyond_bytes(self) -> int:
        """The anonymous memory beyond that after all imports."""
        return self.most_bytes - self.imported_bytes


def mask_network(size: int) -> Graph:
    """Returns a fully convolutional network: three convolutions 3 x 3 from pixels of 3 bytes to a mask."""
    rng = np.random.default_rng(0)
    graph = Graph("mask")
    pixels = graph.input("image", (1, 3, size, size), "uint8")
    x: Var = ops.cast(pixels, "float32") * (1 / 255)
    for channels in (16, 16, 1):
        w = rng.standard_normal((channels, x.shape[1], 3, 3), np.float32) / np.sqrt(9 * x.shape[1])
        x = ops.conv2d(x, graph.constant(w.astype(np.float32)), pads=(1, 1, 1, 1))
        x = ops.relu(x) if channels > 1 else ops.sigmoid(x)
    graph.output(x, "mask")
    return graph


def measure(size: int, budget: str, folder: Path) -> Row:
    """Returns what a process of its own takes. Raises SystemExit where it fails."""
    _write_image(folder / _IMAGE, size)
    script = [sys.executable, "-m", "tools.bench_stream", "--size", str(size), "--budget", budget]
    process = subprocess.Popen([*script, "--folder", str(folder), "--streaming"], stdout=subprocess.PIPE, text=True)
    most = 0
    with process, Activity("streaming", f"{size} x {size}"):
        while process.poll() is None:
            most = max(most, anonymous_bytes(process.pid) or 0)
            time.sleep(_PAUSE)
    if process.returncode:
        raise SystemExit(process.returncode)
    return Row(**json.loads((folder / _STORY).read_text()), most_bytes=most)


def _write_image(path: Path, size: int) -> None:
    rng = np.random.default_rng(1)
    with path.open("wb") as file:
        for rows in each("writing", range(0, 3 * size, _WRITTEN_ROWS)):
            file.write(rng.bytes(min(_WRITTEN_ROWS, 3 * size - rows) * size))


def stream_files(size: int, budget: str, folder: Path) -> None:
    """Streams the image in the folder into the mask there, and writes what it took as JSON."""
    imported = anonymous_bytes() or 0
    begin = time.perf_counter()
    stream = engine.stream(mask_network(size), budget=budget)
    image = np.memmap(folder / _IMAGE, np.uint8, "r", shape=(1, 3, size, size))
    mask = np.memmap(folder / _MASK, np.float32, "w+", shape=(1, 1, size, size))
    stream.run({"image": image}, out={"mask": mask})
    seconds = time.perf_counter() - begin
    costs = {
        "size": size,
        "height": stream.height,
        "stripes": len(stream.stripes),
        "kinds": len(stream.plans),
        "arena_bytes": stream.arena_bytes,
        "whole_bytes": stream.whole_bytes,
        "again": stream.share,
        "imported_bytes": imported,
        "seconds": round(seconds, 1),
    }
    write_whole(folder / _STORY, json.dumps(costs).encode())


def text(row: Row) -> str:
    """Returns the row as lines."""
    return (
        f"{row.size} x {row.size} in {row.stripes} stripes of {row.height} rows ({row.kinds} plans), {row.again:.1%} "
        f"more operations\n"
        f"arena {format_bytes(row.arena_bytes)} (whole images: {format_bytes(row.whole_bytes)})\n"
        f"anonymous memory beyond the interpreter: {format_bytes(row.beyond_bytes)} "
        f"({format_bytes(row.most_bytes)} - {format_bytes(row.imported_bytes)})\n"
        f"{row.seconds:.0f} s"
    )


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=positive, default=20_000, help="rows and columns of the image")
    parser.add_argument("--budget", default="40 MiB", help="the most bytes of the arena")
    parser.add_argument("--folder", type=Path, help="a folder for the files, in place of a temporary one")
    parser.add_argument("--streaming", action="store_true", help="stream the files in the folder, and print nothing")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the row; writes it as JSON where asked."""
    arguments = _arguments(argv)
    if arguments.streaming:
        stream_files(arguments.size, arguments.budget, arguments.folder)
        return
    with progress_shown(arguments.quiet), TemporaryDirectory(dir=arguments.folder) as folder:
        row = measure(arguments.size, arguments.budget, Path(folder))
    print(text(row))
    if arguments.output:
        write_whole(arguments.output, (json.dumps({"rows": [asdict(row)]}, indent=1) + "\n").encode())


if __name__ == "__main__":
    run_script(main)
