"""A process that runs a module of PyTorch in one way, and measures the memory of a run.

    python -m tools.torch_process "eager"|"compile"|"arenaplan" MODULE

It writes JSON: the most bytes that a run has resident above what the process had before it, the bytes of the arena, and
the largest difference from what the module itself gives. Code is loaded and compiled by a run before.
"""

import gc
import json
import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import torch
except ImportError:
    sys.exit("torch_process compares with PyTorch, which is not installed: pip install -e '.[test-torch]'")

import engine
from engine.api import Executable
from engine.executor.arenas import new_arena
from engine.executor.static import StaticExecutor
from engine.system import process_memory
from engine.system.threads import limit_threads
from tools.networks.torch_modules import MODULES


def main(way: str, name: str) -> None:
    """Measures one run on one thread."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    make, shape = MODULES[name]
    module, x = make().eval(), torch.randn(shape)
    with torch.inference_mode(), limit_threads(1):
        wanted = np.array(module(x))
        run, arena = _prepared(way, module, x)
        difference = float(np.abs(np.asarray(run()) - wanted).max())
        if way == "arenaplan":
            run, _ = _planned(module, x)
        gc.collect()
        process_memory.give_back()
        process_memory.reset_peak()
        before = process_memory.resident_bytes() or 0
        kept = run()
        peak = (process_memory.peak_bytes() or 0) - before
    print(json.dumps({"run_bytes": peak, "arena_bytes": arena, "difference": difference, "shape": list(kept.shape)}))


def _prepared(way: str, module: Any, x: Any) -> tuple[Callable[[], Any], int]:
    if way == "arenaplan":
        return _planned(module, x)
    call = torch.compile(module) if way == "compile" else module
    return lambda: call(x), 0


def _planned(module: Any, x: Any) -> tuple[Callable[[], Any], int]:
    """Returns a run out of an arena of which no byte was touched, and the bytes of the arena."""
    graph = engine.load_torch(module, (x,))
    plan = engine.make_plan(engine.optimise(graph))
    executable = Executable(graph, StaticExecutor(plan, new_arena(plan)))
    feeds = {next(iter(graph.inputs)): x}
    return lambda: next(iter(executable.run(feeds).values())), plan.arena_bytes


def _arguments() -> Namespace:
    parser = ArgumentParser("torch_process", description=main.__doc__)
    parser.add_argument("way", choices=("eager", "compile", "arenaplan"))
    parser.add_argument("module", choices=tuple(MODULES))
    return parser.parse_args()


if __name__ == "__main__":
    asked = _arguments()
    main(asked.way, asked.module)
