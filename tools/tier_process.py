"""A process that trains or runs a network in memories of its own, and measures itself: bytes in RAM, seconds, results.

    python -m tools.tier_process < task.json

`tools/bench_tiers.py` starts it. Bytes in RAM are those that are no pages of files (RssAnon); they count from when the
plan is made and nothing of it is allocated. A small network of the same kind has run before, so that code and
threads are there. Another process has made the machine code of the network, as making it takes memory, too.
"""

import hashlib
import json
import resource
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import engine
from allocator.memories.memory import Memory
from engine import Graph
from engine.api import Executable, make_plan
from engine.cli.measure.readings import AnonymousPeak
from engine.cli.options.models import random_feeds
from engine.execution_plan import ExecutionPlan
from engine.onnx.load import load_onnx
from engine.system import process_memory
from engine.system.process_memory import whole_pages
from engine.text.errors import NoMemoryError
from ops.tensor.spec import Array
from tools.bench_remat import NODES, trained

Report = dict[str, Any]
RAM, DISK = "ram", "disk"
RAM_SPEED, DISK_SPEED = 10e9, 1e9
"""Bytes per second of both memories, as the plan is told."""
DISK_BYTES = 2**40
SMALL_IMAGE = 32


def _growth() -> AnonymousPeak:
    """Returns the bytes in RAM above those of this moment, in which nothing that is free is held."""
    process_memory.give_back()
    return AnonymousPeak()


def train(task: Mapping[str, Any]) -> Report:
    """Trains a network of the zoo for some steps, the first of which is measured for bytes, the others for seconds."""
    small = trained(task["network"], 2, image=SMALL_IMAGE)
    engine.compile(small, nodes=NODES, optimise=0).run(_feeds(small))
    graph = trained(task["network"], task["batch"], image=task["image"])
    feeds, begin = _feeds(graph), time.perf_counter()
    options: Report = {"nodes": NODES, "optimise": 0}
    if task["way"] == "recompute":
        options["budget"] = task["ram"]
    elif task["way"] == "disk":
        options["memories"] = _memories(task["ram"], task["folder"], writable=True)
    plan = make_plan(graph, **options)
    planned, growth = time.perf_counter() - begin, _growth()
    exe: Executable = plan.executable()
    outputs = [exe.executor.run_timed(feeds, {}, True, growth)]
    seconds, processor = list[float](), list[float]()
    for _ in range(task["steps"]):
        begin, used = time.perf_counter(), time.process_time()
        outputs.append(exe.run(feeds))
        seconds.append(time.perf_counter() - begin)
        processor.append(time.process_time() - used)
        growth.look()
    return _bytes(plan, growth, 0) | {
        "plan_s": planned,
        "step_s": min(seconds),
        "processor_s": min(processor),
        "losses": [float(step["loss"]).hex() for step in outputs],
        "again": sum(len(r.operators) for r in plan.recomputed),
        "share": sum(r.share for r in plan.recomputed),
    }


def prepare(task: Mapping[str, Any]) -> Report:
    """Makes the machine code of a network that is trained: other processes find it on the disk then."""
    graph = trained(task["network"], task["batch"], image=task["image"])
    exe: Executable = make_plan(graph, nodes=NODES, optimise=0).executable()
    return {"calls": len(exe.plan.lowered.calls)}


def infer(task: Mapping[str, Any]) -> Report:
    """Runs a model whose weights may lie in files, where anonymous memory may grow by `room` bytes beyond its tensors.

    The limit is RLIMIT_DATA. "failed" says why it did not run; "" where it did.
    """
    small = Graph("small")
    small.output(small.input("x", (64, 64)) @ small.constant(np.ones((64, 64), np.float32)), "y")
    engine.compile(small).run(_feeds(small))
    graph = load_onnx(Path(task["model"]))
    feeds = _feeds(graph)
    options: Report = {}
    if task["way"] == DISK:
        options["memories"] = _memories(DISK_BYTES, task["folder"], writable=False)
        options["place"] = {"constants": DISK}
    plan = make_plan(graph, **options)
    growth = _growth()
    limit = _data_bytes() + whole_pages(plan.arena_bytes) + task["room"]
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    try:
        exe = plan.executable()
        outputs = exe.run(feeds)
    except NoMemoryError as error:
        return {"weights_bytes": plan.prepacked_bytes, "room": task["room"], "failed": str(error)}
    growth.look()
    begin, used = time.perf_counter(), time.process_time()
    exe.run(feeds)
    return _bytes(plan, growth, plan.prepacked_bytes) | {
        "weights_bytes": plan.prepacked_bytes,
        "room": task["room"],
        "failed": "",
        "digest": _digest(outputs),
        "step_s": time.perf_counter() - begin,
        "processor_s": time.process_time() - used,
    }


def _memories(ram: int, folder: str, *, writable: bool) -> list[Memory]:
    disk = Memory(DISK, DISK_BYTES, DISK_SPEED, DISK_SPEED, writable=writable, folder=folder)
    return [Memory(RAM, ram, RAM_SPEED, RAM_SPEED), disk]


def _bytes(plan: ExecutionPlan, growth: AnonymousPeak, packed: int) -> Report:
    """Returns the bytes of the plan in RAM and on the disk, and those by which RAM has grown.

    `packed` bytes of weights lie on the disk where there is one, else in RAM.
    """
    on_disk = [share.arena_bytes for t in plan.report().transfers for share in t.memories if share.name == DISK]
    in_ram = plan.arena_bytes - sum(on_disk) + (0 if on_disk else packed)
    on_disk += [packed] if on_disk else []
    return {"ram_bytes": whole_pages(in_ram), "disk_bytes": sum(on_disk), "grown_bytes": growth.peak or 0}


def _feeds(graph: Graph) -> dict[str, Array]:
    return random_feeds(graph, 0, {})


def _digest(outputs: Mapping[str, Array]) -> str:
    return hashlib.sha256(b"".join(outputs[name].tobytes() for name in sorted(outputs))).hexdigest()


def _data_bytes() -> int:
    """Returns the bytes that RLIMIT_DATA counts (VmData)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))


def main() -> None:
    """Reads a task, and prints what was measured as JSON."""
    ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter).parse_args()
    process_memory.refuse_huge_pages()
    task = json.load(sys.stdin)
    print(json.dumps({"prepare": prepare, "train": train, "infer": infer}[task["what"]](task)))


if __name__ == "__main__":
    main()
