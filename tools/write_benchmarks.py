"""Measures what docs/benchmarks.md and docs/performance.md show, and writes their tables anew. Takes about an hour.

    python -m tools.write_benchmarks ../shared/instances [--only speed proofs]

Each measurement is a process of its own (`tools/bench_solvers.py`), stopped after some minutes, with one thread. What
was measured is kept in out/benchmarks.json: --only measures the sections that are named and takes the rest from there.
"""

import json
import os
import platform
import subprocess
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from allocator.io.files import write_whole
from allocator.progress import Activity, each
from allocator.solvers import BEST, STRATEGIES
from allocator.solvers.megengine import PUSHDOWN_SORTED
from engine.cli.progress import add_quiet, progress_shown, say
from tools.bench_networks import measure_networks
from tools.benchmark_tables import TABLES, Row, markdown, replaced
from tools.entry import run_script

PAGE, KEPT = Path("docs/benchmarks.md"), Path("out/benchmarks.json")
PAGES: Mapping[str, Path] = {
    **dict.fromkeys(("lengths", "decoding", "threads"), Path("docs/performance.md")),
    **dict.fromkeys(("cascades", "columns", "streams"), Path("docs/cascades.md")),
    **dict.fromkeys(("moves", "tiers"), Path("docs/memories.md")),
}
"""The pages of the sections that are not on PAGE."""
MOST_SECONDS = 150
"""The limit of a process: 120 for the solver, the rest for reading and compiling."""
RANDOM = (10_000, 100_000, 1_000_000)
TIGHT = "ABDEGHJ"
SORTED = PUSHDOWN_SORTED.name
NESTED = (
    *("densenet121:1", "inception_v3:1", "random_wired:1", "unet:1", "squeezenet:1"),
    *("densenet121:1:train", "densenet121:8:train"),
)
"""The networks of bench_nest that are planned in seconds."""
SHARED = ("squeezenet", "mobilenet_v2", "resnet50", "unet", "encoder")
"""The networks of bench_threads: each takes about ten seconds."""
WITH_AVX2 = (
    *("--networks", "resnet50", "mobilenet_v2", "squeezenet", "shufflenet", "efficientnet_b0", "unet"),
    *("--instructions", "avx2", "--threads", "1", "--backend", "numba", "onednn"),
)
"""Compiled code and oneDNN, limited to the same instructions."""
ORIGINALS: Mapping[str, str] = {
    "pushdown": "1.6230 1.5127 1.3614 1.5459 1.1377 1.1055 1.5352",
    "best_fit": "2.3691 2.3525 1.6905 2.1885 1.2490 1.2588 1.7391",
    "interval_move": "1.5684 1.5869 1.3354 1.3418 1.3369 1.2119 1.5611",
    "greedy_by_size": "1.3105 1.3467 1.3344 1.4014 1.3320 1.3555 1.3478",
    "shared_by_breadth": "2.1729 2.2041 1.8172 2.6348 1.3877 1.3789 2.1832",
}
"""Arena / most bytes alive on the instances of TIGHT, as MegEngine and TensorFlow Lite themselves give it."""
KINDS_NODES = 4_500_000
"""Steps of the searches on instances of nine kinds: some ten seconds where a gap is left."""
NODES = 1_000_000
"""For the exact search in the table of all strategies: the same plan on every machine."""


def measured(*arguments: str, seconds: float | None = None, **environment: str) -> Mapping[str, list[Row]]:
    """Runs a module of tools/ in a process of its own. Returns the JSON that it writes."""
    with TemporaryDirectory() as folder:
        output = Path(folder) / "rows.json"
        say(" ".join(arguments))
        command = [sys.executable, "-m", *arguments, "-o", str(output)]
        with Activity("running", " ".join(arguments)):
            subprocess.run(command, check=True, capture_output=True, timeout=seconds, env=os.environ | environment)
        rows: dict[str, list[Row]] = json.loads(output.read_text())
        return rows


def bench(*arguments: str) -> Sequence[Row]:
    """Returns the rows that bench_solvers finds, or one with a note where it takes too long."""
    try:
        rows = measured("tools.bench_solvers", *arguments, seconds=MOST_SECONDS, OPENBLAS_NUM_THREADS="1")
    except subprocess.TimeoutExpired:
        return [{"note": f"none in {MOST_SECONDS - 30} s"}]
    except subprocess.CalledProcessError as error:
        return [{"note": "failed: " + error.stderr.decode().strip().rpartition("\n")[2]}]
    return rows.get("rows") or rows["startup"]


def instances(folder: Path) -> Mapping[str, tuple[str, ...]]:
    """Returns for each column the arguments that select its instance in bench_solvers."""
    tight = {name: (str(folder / "minimalloc" / f"{name}.1048576.csv"),) for name in TIGHT}
    large = {name: (str(folder / "large" / f"{name}.csv"),) for name in ("somas_resnet50", "G_1", "Y_1")}
    return tight | large | {f"rand_{n // 1000}k": ("--random", str(n)) for n in RANDOM}


def measure_strategies(folder: Path) -> Sequence[Row]:
    """Measures every strategy on every instance, except where "best" would skip it as too slow."""
    rows: list[Row] = []
    for name, chosen in instances(folder).items():
        buffers = 0
        for strategy in (BEST, *STRATEGIES):
            if strategy != BEST and buffers > STRATEGIES[strategy].traits.most_chunks:
                continue
            options = ["--nodes", str(NODES)] if strategy == "exact" else []
            row = bench(*chosen, "--strategy", strategy, *options)[0]
            buffers = max(buffers, row.get("buffers", 0))
            rows.append({**row, "instance": name, "strategy": strategy})
    return rows


def measure_originals(folder: Path) -> Sequence[Row]:
    """Places the tight instances by the strategies whose originals were run on them, too."""
    of = instances(folder)
    rows = bench(*(of[name][0] for name in TIGHT), "--strategy", *ORIGINALS, "--repeat", "1")
    originals = {
        (name, s): float(r) for s, ratios in ORIGINALS.items() for name, r in zip(TIGHT, ratios.split(), strict=True)
    }
    named = ({**row, "instance": row["instance"].partition(".")[0]} for row in rows)
    return [{**row, "original": originals[row["instance"], row["strategy"]]} for row in named]


def measure_speed(folder: Path) -> Sequence[Row]:
    """Measures the cases that have a target in seconds."""
    of, rows = instances(folder), []
    works = [
        ("pushdown_sorted, 1,000,000 random buffers", (*of["rand_1000k"], "--strategy", SORTED, "--repeat", "3"), "3"),
        ("greedy_by_size, the same", (*of["rand_1000k"], "--strategy", "greedy_by_size", "--repeat", "3"), "10"),
        ("pushdown_sorted, Y_1", (*of["Y_1"], "--strategy", SORTED, "--repeat", "5"), "0.07"),
        *((f"best, {n}", (*of[n], "--strategy", BEST, "--repeat", "3"), "1") for n in ("G_1", "somas_resnet50")),
        ("best, Y_1", (*of["Y_1"], "--strategy", BEST), "10"),
        *(
            (
                f"exact, {n} within 1,048,576 bytes",
                (*of[n], "--strategy", "exact", "--capacity-from-name", "--timeout", "60s", "--repeat", "3"),
                "1",
            )
            for n in TIGHT
        ),
    ]
    for work, arguments, target in works:
        rows.append({**bench(*arguments)[0], "work": work, "target": target})
    return rows


def measure_proofs(folder: Path) -> Sequence[Row]:
    """Measures the smallest arenas of the tight instances, as far as they are found and proved in a minute."""
    of = instances(folder)
    return [{**bench(*of[n], "--strategy", BEST, "--timeout", "60s")[0], "instance": n} for n in TIGHT]


def measure_startup(folder: Path) -> Sequence[Row]:
    """Times whole processes: reading, planning with a short search, printing."""
    of = instances(folder)
    works = (("A", SORTED), ("A", BEST), ("D", BEST), ("G_1", SORTED), ("G_1", BEST), ("Y_1", SORTED))
    return [
        {
            **bench(*of[n], "--strategy", s, "--startup", "--repeat", "9", "--nodes", "20000")[0],
            "instance": n,
            "strategy": s,
        }
        for n, s in works
    ]


def measure_parallel(section: str) -> Sequence[Row]:
    """Measures one section of bench_parallel."""
    return measured("tools.bench_parallel", "--only", section)[section]


@cache
def measure_lengths() -> Mapping[str, Sequence[Row]]:
    """Measures bench_stages, once for all its tables."""
    return measured("tools.bench_stages")


MEASURES: Mapping[str, Callable[[Path], Sequence[Row]]] = {
    "speed": measure_speed,
    "proofs": measure_proofs,
    "kinds": lambda _: measured("tools.bench_kinds", "--nodes", str(KINDS_NODES))["rows"],
    "capacity": lambda _: measured("tools.bench_capacity")["rows"],
    "memories": lambda _: measured("tools.bench_memories", OPENBLAS_NUM_THREADS="1")["rows"],
    "boards": lambda _: measured("tools.bench_boards", OPENBLAS_NUM_THREADS="1")["rows"],
    "moves": lambda _: measured("tools.bench_moves", OPENBLAS_NUM_THREADS="1")["rows"],
    "tiers": lambda _: measured("tools.bench_tiers")["rows"],
    "zoo": lambda _: measured("tools.bench_zoo", OPENBLAS_NUM_THREADS="1")["rows"],
    "networks": lambda _: measure_networks(),
    "startup": measure_startup,
    "strategies": measure_strategies,
    "originals": measure_originals,
    "costs": lambda _: measure_parallel("costs"),
    "planning": lambda _: measure_parallel("planning"),
    "running": lambda _: measure_parallel("running"),
    "order": lambda _: measured("tools.bench_order")["rows"],
    "nest": lambda _: measured("tools.bench_nest", *NESTED, "--runs", "0")["rows"],
    "cascades": lambda _: measured("tools.bench_cascades")["rows"],
    "columns": lambda _: measured("tools.bench_columns")["rows"],
    "streams": lambda _: measured("tools.bench_stream")["rows"],
    "processes": lambda _: measured("tools.bench_process")["rows"],
    "loading": lambda _: measured("tools.bench_load")["rows"],
    "first_use": lambda _: measured("tools.bench_wheel")["rows"],
    "runs": lambda _: measured("tools.bench_run")["rows"],
    "runs_avx2": lambda _: measured("tools.bench_run", *WITH_AVX2)["rows"],
    "lengths": lambda _: measure_lengths()["lengths"],
    "decoding": lambda _: measure_lengths()["decoding"],
    "threads": lambda _: measured("tools.bench_threads", "--networks", *SHARED)["rows"],
}


def machine() -> str:
    """Returns the date, the processor and the versions of the measurement."""
    cpu = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = next((line.partition(": ")[2] for line in cpu.splitlines() if line.startswith("model name")), "")
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    what = f"{platform.machine()} {model}".strip()
    return f"{date.today()}, {what}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}."


def main(argv: Sequence[str] | None = None) -> int:
    """Measures the sections, keeps the results as JSON, and writes the tables into the page."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with minimalloc/ and large/")
    parser.add_argument("--only", choices=tuple(MEASURES), nargs="*", default=tuple(MEASURES))
    parser.add_argument(
        "-o", "--output", type=Path, help="a page that has all these sections, in place of those of docs/"
    )
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    with progress_shown(arguments.quiet):
        for section in each("section", arguments.only):
            kept[section] = {"machine": machine(), "rows": MEASURES[section](arguments.folder)}
            KEPT.parent.mkdir(exist_ok=True)
            write_whole(KEPT, (json.dumps(kept, indent=1) + "\n").encode())
    for section, results in kept.items():
        page = arguments.output or PAGES.get(section, PAGE)
        text = f"{results['machine']}\n\n{markdown(TABLES[section](results['rows']))}"
        write_whole(page, replaced(page.read_text(), section, text).encode())
    return 0


if __name__ == "__main__":
    run_script(main)
