"""A process that is forked while another thread runs networks: the child runs them too, and waits for nobody."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

_FORKS = """
import os, signal, sys, threading
import numpy as np
import engine, ops

OPTIONS = {
    "static": {"threads": 2}, "dynamic": {"mode": "dynamic"}, "poison": {"debug": "poison"}, "staged": {},
    "exact": {"parallel": "exact", "threads": 2}, "levels": {"parallel": "levels", "threads": 2},
    "edges": {"parallel": "edges", "threads": 2}, "numpy": {"backend": "numpy", "threads": 1},
}

def network(rows):
    graph = engine.Graph("branches")
    x = graph.input("x", (rows, 256))
    w = graph.constant(np.ones((256, 256), np.float32))
    one = two = x
    for _ in range(4):
        one, two = ops.tanh(one), ops.erf(ops.matmul(two, w))
    graph.output(ops.add(one, two), "y")
    return graph

feeds = {"x": np.random.default_rng(0).standard_normal((128, 256)).astype(np.float32)}
runs = [engine.compile(network("rows" if m == "staged" else 128), **o) for m, o in OPTIONS.items()]
wanted = [exe.run(feeds)["y"].copy() for exe in runs]

def run_for_ever():
    while True:
        for exe in runs:
            exe.run(feeds)

threading.Thread(target=run_for_ever, daemon=True).start()
for turn in range(100):
    child = os.fork()
    if not child:
        signal.alarm(30)
        for exe, y in zip(runs, wanted):
            if not np.array_equal(exe.run(feeds)["y"], y):
                os._exit(3)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        sys.exit(f"fork {turn}: {code}")
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_forked_process_runs_what_another_thread_of_its_parent_was_running() -> None:
    """In a process of its own, in a session of its own: one that waits for ever ends with its children."""
    command = [sys.executable, "-W", "ignore", "-c", _FORKS]
    started = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        _, errors = started.communicate(timeout=240)
        assert started.returncode == 0, errors
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
