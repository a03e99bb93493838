"""Writes down plans and outputs of networks, to prove that a refactoring changes no byte and no bit.

    python -m tools.golden -o before.json [--networks zoo:resnet50 light:vgg19] [--levels 0 3] [--backends numba onednn]
    python -m tools.golden --compare before.json after.json [--reports]

Of each network, level of optimisation and back-end: the plan at full size (addresses, bytes, kernels, the report), and
sums of all bytes that a small network gives in one arena, with reference counting and in a watched arena. Networks are
those of the zoo, a step of training of some of them, and the light models of the onnx package. Nothing that is decided
depends on time. Each network has a process of its own, in which all there is runs on one thread.

Two files that differ in anything but times, and in how many modules `import engine` loads, give exit code 1. Outputs
have the same bits on the same processor and with the same libraries only; "made_with" has them.
"""

import difflib
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import asdict

import engine
from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.options.models import light_model, random_feeds
from engine.cli.options.values import positive
from engine.cli.progress import add_quiet, progress_shown
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.lower.backends import CHOICES
from engine.models.zoo import PREFIX, zoo_graph
from engine.onnx.file import read_model
from engine.onnx.seeded import seed_weights
from engine.planning.options import LEVELS
from engine.system.threads import cpus
from engine.text.tables import in_columns
from engine.text.units import counted
from engine.zoo import NETWORKS
from ops.tensor.spec import Array
from tools.entry import run_script

ROOT = Path(__file__).resolve().parents[1]
LIGHT = "light:"
LIGHT_MODELS = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50"),
    *("shufflenet", "squeezenet", "vgg19", "zfnet512"),
)
TRAINED = tuple(
    f"{PREFIX}{name}?optimiser=momentum"
    for name in ("resnet18", "resnet50", "mobilenet_v2", "squeezenet", "unet", "minilm")
)
"""Steps of training that are quickly planned."""
NODES = 200
"""Steps of a search for addresses: it ends where they do, and not after some time."""
SMALL: Mapping[str, int] = MappingProxyType(
    {"batch": 2, "image": 32, "sequence": 9, "tokens": 2, "capacity": 8, "width": 16}
)
"""Options of a network that runs, as far as it has them."""
IMAGES: Mapping[str, int] = MappingProxyType({"alexnet": 63, "inception_v3": 75})
"""Sides of images for networks that take none as small."""
MODES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"static": {}, "dynamic": {"mode": "dynamic"}, "poison": {"debug": "poison"}}
)
WATCHED = 8_000_000_000
"""The most bytes times calls of an arena that is watched. It bounds the time, as each call looks at each byte."""
SECTIONS = ("plans", "runs")
"""The sections of a file in which nothing may differ."""
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
LIBRARIES = ("numpy", "numba", "onnx")
OWN = ("ops", "allocator", "engine")
IMPORT = f"""
import sys, time, numpy
began = time.perf_counter()
import engine
print(time.perf_counter() - began, sum(name.partition(".")[0] in {OWN!r} for name in sys.modules))
engine.compile
print(time.perf_counter() - began, sum(name.partition(".")[0] in {OWN!r} for name in sys.modules))
"""
LETTERS = 16
"""The letters of a digest that tables show."""

Entry = dict[str, Any]
Found = dict[str, Any]
"""The content of a file: entries by name in each of SECTIONS, and what is known besides."""


def main(argv: Sequence[str] | None = None) -> int:
    """Writes a file, or compares two of them."""
    arguments = _arguments(argv)
    if arguments.compare:
        old, new = (json.loads(path.read_text()) for path in arguments.compare)
        return compare(old, new, with_reports=arguments.reports)
    if arguments.here:
        print(json.dumps(golden(arguments.networks[0], arguments.levels, arguments.backends)))
        return 0
    with progress_shown(arguments.quiet):
        values = collected(arguments)
    text = json.dumps(values, indent=1, sort_keys=True) + "\n"
    if arguments.output is None:
        print(text, end="")
    else:
        write_whole(arguments.output, text.encode())
        print(f"{_size(values)}, {values['seconds']:.0f} s: {arguments.output}")
    return 0


def networks() -> tuple[str, ...]:
    """Returns the names of all networks, as they are called here."""
    return (*(PREFIX + name for name in NETWORKS), *TRAINED, *(LIGHT + name for name in LIGHT_MODELS))


def collected(arguments: Namespace) -> Found:
    """Collects all that a file has. Imports are timed first, while nothing else runs."""
    began, values = time.perf_counter(), Found(import_engine=import_cost(arguments.imports), made_with=_made_with())
    values |= {section: {} for section in SECTIONS}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        parts = pool.map(lambda name: _in_a_process(name, arguments), arguments.networks)
        for _, part in zip(each("network", arguments.networks), parts, strict=True):
            for section in SECTIONS:
                values[section] |= part[section]
    if arguments.bench is not None:
        values["bench"] = bench_ratios(json.loads(arguments.bench.read_text())["rows"])
    return values | {"seconds": time.perf_counter() - began}


def import_cost(times: int) -> Entry:
    """Returns least seconds and our own modules of `import engine` behind `import numpy`, in new processes.

    Public names are imported when they are first used, so what it takes up to `engine.compile` is measured, too.
    """
    runs = [_output(["-c", IMPORT]).split() for _ in range(times)]
    return {
        "seconds": min(float(run[0]) for run in runs),
        "modules": int(runs[0][1]),
        "seconds_to_compile": min(float(run[2]) for run in runs),
        "modules_to_compile": int(runs[0][3]),
    }


def bench_ratios(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Returns ratios from rows of tools/bench_run.py: the median time here over that in onnxruntime."""
    return {f"{row['network']} {row['backend']} {row['threads']}": row["ratio_median"] for row in rows}


def golden(network: str, levels: Iterable[int], backends: Sequence[str]) -> dict[str, dict[str, Entry]]:
    """Returns the entries of one network, by section and name: its plans and its runs."""
    full, small = graph_of(network), graph_of(network, small=True)
    feeds, values = random_feeds(small, 0, {}), {section: dict[str, Entry]() for section in SECTIONS}
    for level in levels:
        planned, run = (engine.optimise(graph, level) for graph in (full, small))
        for backend in backends:
            name = f"{network} level {level} {backend}"
            values["plans"][name] = plan_entry(
                engine.make_plan(planned, optimise=0, backend=backend, threads=1, nodes=NODES)
            )
            values["runs"][name] = run_entry(run, backend, feeds)
    return values


def graph_of(network: str, small: bool = False) -> Graph:
    """Builds a network with seeded weights. The light models have one size only."""
    if network.startswith(LIGHT):
        return engine.load_onnx(seed_weights(read_model(light_model(network.removeprefix(LIGHT))).proto))
    name, _, asked = network.removeprefix(PREFIX).partition("?")
    sizes = {**SMALL, "image": IMAGES.get(name, SMALL["image"])} if small else {}
    query = [f"{option}={size}" for option, size in sizes.items() if option in NETWORKS[name].options]
    options = "&".join(filter(None, [asked, *query]))
    return zoo_graph(Path(f"{PREFIX}{name}" + f"?{options}" * bool(options)), {}, (), 0)


def plan_entry(plan: ExecutionPlan) -> Entry:
    """Describes a plan: numbers as they are, kernels counted; columns, calls and data as digests."""
    report, problem = plan.report(), plan.problem
    return {
        "arena": plan.arena_bytes,
        "lower bound": plan.plan.lower_bound,
        "status": str(plan.plan.status),
        "strategy": plan.plan.strategy,
        "chunks": len(problem),
        "problem": _sum_of(problem.begin, problem.end, problem.size, problem.alignment, problem.src, problem.dest),
        "offsets": _sum_of(plan.plan.offset),
        "kernels": Counter(f"{call.backend}/{call.kernel}" for call in report.kernels),
        "calls": _sum_of_text(json.dumps([asdict(call) for call in report.kernels])),
        "data": _sum_of_text(json.dumps(report.to_json(), sort_keys=True)),
        "report": str(report),
    }


def run_entry(graph: Graph, backend: str, feeds: Mapping[str, Array]) -> Entry:
    """Returns digests of outputs, and of parameters after the run, in each mode; a large arena is not watched."""
    entry, plan = Entry(), engine.make_plan(graph, optimise=0, backend=backend, threads=1, nodes=NODES)
    is_small = plan.arena_bytes * len(plan.lowered.calls) <= WATCHED
    for mode, options in MODES.items():
        if mode == "poison" and not is_small:
            continue
        asked = {"optimise": 0, "backend": backend, "threads": 1, "nodes": NODES, **options}
        executable = engine.compile(graph, **asked)  # type: ignore[arg-type]
        entry |= {f"{mode} {name}": _sum_of(array) for name, array in executable.run(feeds).items()}
        if held := executable.parameters:
            entry[f"{mode} parameters"] = _sum_of(*(held[name] for name in sorted(held)))
    return entry


def compare(old: Found, new: Found, with_reports: bool) -> int:
    """Prints what differs, and times. Returns 1 if anything but times does, else 0."""
    rows = list(differences(old, new))
    if rows:
        print("\n".join(in_columns([("what", "of", "old", "new"), *rows])))
    if with_reports:
        print("".join(_report_differences(old["plans"], new["plans"])), end="")
    if old["made_with"] != new["made_with"]:
        print(f"made with {old['made_with']}\nand with  {new['made_with']}")
    print(_told_times(old, new))
    print(counted(len(rows), "difference") if rows else f"equal: {_size(new)}")
    return int(bool(rows))


def _size(values: Found) -> str:
    return f"{counted(len(values['plans']), 'plan')}, {counted(len(values['runs']), 'run')}"


def differences(old: Found, new: Found) -> Iterator[tuple[str, str, str, str]]:
    """Yields a row for each field that differs; an entry that one file lacks is one row."""
    for section in SECTIONS:
        before, after = old[section], new[section]
        for name in sorted(before.keys() | after.keys()):
            if name not in before or name not in after:
                yield section, name, *("is there" if name in side else "is missing" for side in (before, after))
                continue
            one, other = before[name], after[name]
            for what in sorted(one.keys() | other.keys()):
                if one.get(what) != other.get(what):
                    yield what, name, *_shown(what, one.get(what), other.get(what))


def _shown(what: str, one: Any, other: Any) -> tuple[str, str]:
    """Returns both values as text; of two tables, only the entries that differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return _only(one, other), _only(other, one)
    if what == "report" and isinstance(one, str) and isinstance(other, str):
        marks = Counter(line[0] for line in difflib.ndiff(one.splitlines(), other.splitlines()))
        return f"{marks['-']} lines", f"{marks['+']} lines"
    return str(one)[:LETTERS], str(other)[:LETTERS]


def _only(one: Mapping[str, int], other: Mapping[str, int]) -> str:
    """Lists the counts that differ from those in `other`; "-" if none does."""
    return ", ".join(f"{count} {name}" for name, count in one.items() if other.get(name) != count) or "-"


def _report_differences(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> Iterator[str]:
    for name in sorted(old.keys() & new.keys()):
        one, other = (side[name]["report"].splitlines(keepends=True) for side in (old, new))
        yield from difflib.unified_diff(one, other, f"{name} (old)", f"{name} (new)")


def _told_times(old: Found, new: Found) -> str:
    """Returns a table of what may differ: times of imports, and of bench_run where both files have them."""
    texts = ("{seconds:.3f} s, {modules} modules".format(**side["import_engine"]) for side in (old, new))
    rows = [("import engine", *texts)]
    one, other = old.get("bench", {}), new.get("bench", {})
    rows += [(name, f"{one[name]:.3f}", f"{other[name]:.3f}") for name in sorted(one.keys() & other.keys())]
    return "\n".join(in_columns([("time", "old", "new"), *rows]))


def _in_a_process(network: str, arguments: Namespace) -> Found:
    levels = map(str, arguments.levels)
    asked = ["--networks", network, "--levels", *levels, "--backends", *arguments.backends]
    values: Found = json.loads(_output(["-m", "tools.golden", "--here", "-q", *asked]))
    return values


def _output(arguments: Sequence[str]) -> str:
    """Runs Python with the modules of this very tree. Returns what it prints. Raises CalledProcessError."""
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def _sum_of(*arrays: Array) -> str:
    """Returns the SHA-256 of types, shapes and bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.name}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _sum_of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _made_with() -> dict[str, str]:
    """Returns what the bits depend on besides the code: processor and versions."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    versions = {"python": platform.python_version(), "processor": [*named, platform.machine()][0], "nodes": str(NODES)}
    return versions | {name: metadata.version(name) for name in LIBRARIES}


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    names = networks()
    add: Callable[..., object] = parser.add_argument
    add("--networks", nargs="+", choices=names, default=names, metavar="NAME", help=f"such as {names[0]}, {names[-1]}")
    add("--levels", nargs="+", type=int, choices=LEVELS, default=LEVELS, help="of optimisation (default: all)")
    add("--backends", nargs="+", choices=CHOICES, default=("numba", "numpy"), help="default: numba numpy")
    add("--jobs", type=positive, default=cpus(), help="processes at once (default: as many as processors)")
    add("--imports", type=positive, default=7, help="processes that time `import engine` (default 7)")
    add("--bench", type=Path, metavar="FILE.json", help="of tools.bench_run; its ratios are copied")
    add("--compare", nargs=2, type=Path, metavar=("OLD.json", "NEW.json"), help="say what differs; measure nothing")
    add("--reports", action="store_true", help="with --compare: show how the texts of reports differ")
    add("--here", action="store_true", help=SUPPRESS)
    add("-o", "--output", type=Path, help="JSON file to write (default: print it)")
    add_quiet(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_script(main)
