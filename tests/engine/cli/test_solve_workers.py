"""`arenaplan solve` with workers that are killed, and on a cluster: the plan is that of one worker."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from allocator.io import formats
from allocator.io.instance import Instance
from engine.workers.processes import TRIES
from tests.helpers.workers.children import children, kill_some
from tests.helpers.workers.ends import PATIENCE, environment
from tools.solver_instances import draw

INTERRUPTED = b"the search was interrupted; this is its best plan so far"


@pytest.fixture
def buffers(tmp_path: Path) -> str:
    """Returns a file of buffers whose smallest arena takes long to find."""
    formats.write(tmp_path / "mixed.csv", Instance(draw("mixed_alignment", 340, 1), [f"b{k}" for k in range(340)]))
    return str(tmp_path / "mixed.csv")


def started(*words: str, limit: Sequence[str] = ("--nodes", "600000")) -> "subprocess.Popen[bytes]":
    """Starts the command in a process of its own."""
    code = "import sys; from engine.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "solve", *words, *limit, "--json"]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def plan(process: "subprocess.Popen[bytes]", said: bytes = b"") -> dict[str, Any]:
    """Returns what the command prints, but for its time; `said` is what it says on stderr."""
    printed, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and said in errors and bool(errors) == bool(said)
    data: dict[str, Any] = json.loads(printed)
    del data["seconds"]
    return data


def quick_arena(buffers: str) -> int:
    """Returns the arena of a plan without a search."""
    return int(plan(started(buffers, limit=("--nodes", "1")))["arena_bytes"])


@pytest.mark.slow
def test_workers_that_are_killed_at_random_change_no_plan(buffers: str) -> None:
    process = started(buffers, "--workers", "2")
    killed = kill_some(process.pid, TRIES - 1, 1.5, seed=4)
    assert plan(process) == plan(started(buffers, "--workers", "1")) and killed


@pytest.mark.slow
def test_a_cluster_with_a_killed_worker_gives_the_same_plan(buffers: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from tests.helpers.workers.cluster import cluster  # noqa: PLC0415 (needs the package)

    with cluster(tmp_path, 2) as dask:
        process = started(buffers, "--on", dask.on)
        time.sleep(3)
        os.kill(dask.workers[0].pid, signal.SIGKILL)
        shared = plan(process)
        interrupted = started(buffers, "--on", dask.on, limit=("--timeout", "1h"))
        time.sleep(20)  # a first plan is there, also on a busy machine
        interrupted.send_signal(signal.SIGINT)
        assert plan(interrupted, INTERRUPTED)["arena_bytes"] <= quick_arena(buffers)
    assert shared == plan(started(buffers, "--workers", "1"))


@pytest.mark.slow
def test_who_interrupts_a_round_gets_the_best_plan_so_far(buffers: str) -> None:
    process, end = started(buffers, "--workers", "2", limit=("--nodes", "900000000")), time.monotonic() + PATIENCE
    while len(children(process.pid)) < 2 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    assert plan(process, INTERRUPTED)["arena_bytes"] <= quick_arena(buffers)
