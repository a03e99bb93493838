"""`arenaplan solve` with workers that are killed, and on a cluster: the plan is that of one worker."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from allocator.io import formats
from allocator.io.instance import Instance
from engine.workers.processes import TRIES
from tests.helpers.workers.children import kill_some
from tests.helpers.workers.ends import PATIENCE, environment
from tools.solver_instances import draw


@pytest.fixture
def buffers(tmp_path: Path) -> str:
    """Returns a file of buffers whose smallest arena takes long to find."""
    formats.write(tmp_path / "mixed.csv", Instance(draw("mixed_alignment", 60, 0), [f"b{k}" for k in range(60)]))
    return str(tmp_path / "mixed.csv")


def started(*words: str) -> "subprocess.Popen[bytes]":
    """Starts the command in a process of its own."""
    code = "import sys; from engine.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "solve", *words, "--nodes", "600000", "--json"]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def plan(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """Returns what the command prints, but for its time."""
    printed, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, b"")
    data: dict[str, Any] = json.loads(printed)
    del data["seconds"]
    return data


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
    assert shared == plan(started(buffers, "--workers", "1"))
