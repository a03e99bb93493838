"""Times planning the networks of the onnx package: the solver alone, a whole plan, and the first plan of a process.

python -m tools.bench_networks NAME
"""

import json
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from allocator.progress import each
from allocator.solvers import solve
from engine import load_onnx, make_plan
from engine.cli.options.models import light_model
from engine.cli.progress import say
from tools.entry import run_script

NETWORKS = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19"),
    "zfnet512",
)
REPEAT = 5


def measure_network(name: str) -> dict[str, Any]:
    """Times one network, in seconds: the first plan once, all else as the least of some repetitions."""
    graph = load_onnx(light_model(name))
    begin = time.perf_counter()
    plan = make_plan(graph, optimise=0)
    first = time.perf_counter() - begin
    return {
        "network": name,
        "buffers": len(plan.problem),
        "arena_bytes": plan.arena_bytes,
        "strategy": plan.plan.strategy,
        "status": str(plan.plan.status),
        "first_s": first,
        "plan_s": min(_seconds(lambda: make_plan(graph, optimise=0)) for _ in range(REPEAT)),
        "solve_s": min(_seconds(lambda: solve(plan.problem)) for _ in range(REPEAT)),
    }


def measure_networks() -> list[Mapping[str, Any]]:
    """Measures each network in a process of its own."""
    rows = []
    for name in each("network", NETWORKS):
        command = [sys.executable, "-m", "tools.bench_networks", name]
        say(" ".join(command[2:]))
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    return rows


def _seconds(work: Any) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main(argv: Sequence[str] | None = None) -> int:
    """Measures one network of the onnx package, and prints JSON."""
    parser = ArgumentParser("bench_networks", description=main.__doc__)
    parser.add_argument("network", metavar="NAME", help=", ".join(NETWORKS))
    print(json.dumps(measure_network(Path(parser.parse_args(argv).network).name)))
    return 0


if __name__ == "__main__":
    run_script(main)
