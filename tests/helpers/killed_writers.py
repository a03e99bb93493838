"""Writers that are killed at random moments: `python -W ignore -m tests.helpers.killed_writers KIND TIMES SEED`.

A child writes one of two contents over and over until it is killed. The file must be there whole, with one of both.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx

import engine
import ops
from allocator.io.files import open_whole
from allocator.machine_code.store import write_file
from engine.cli.options.files import write_arrays
from engine.exporters import FORMATS
from tests.helpers.onnx.small_models import model, node, value

Writer = Callable[[int], object]
_BYTES = 300_000


def _code(path: Path) -> Writer:
    return lambda which: write_file(path, bytes([which]) * _BYTES)


def _traced(form: str) -> Callable[[Path], Writer]:
    def writer(path: Path) -> Writer:
        traces = []
        for layers in range(2):
            graph = engine.Graph("layers")
            x = graph.input("x", (4, 32))
            for _ in range(9 + layers):
                x = ops.tanh(x)
            graph.output(x, "y")
            traces.append(engine.make_plan(graph, optimise=0).trace())

        def write(which: int) -> None:
            with open_whole(path) as out:
                FORMATS[form].write(traces[which], out)

        return write

    return writer


def _plans(path: Path) -> Writer:
    source = path.with_name("model.onnx")
    weights = {"w": np.ones((32, 64), np.float32)}
    onnx.save(model([node("MatMul", ["x", "w"], ["y"])], [value("x", (2, 32))], initializers=weights), source)
    plans = [engine.make_plan(engine.load_onnx(source), optimise=0, alignment=alignment) for alignment in (16, 64)]
    return lambda which: engine.save_plan(plans[which], source, path)


def _arrays(path: Path) -> Writer:
    def write(which: int) -> None:
        write_arrays(path.with_suffix(".npz"), {"y": np.full(_BYTES, which, np.uint8)})

    return write


WRITERS: Mapping[str, Callable[[Path], Writer]] = {
    "code": _code,
    "trace": _traced("json"),
    "page": _traced("html"),
    "plan": _plans,
    "arrays": _arrays,
}


def main(kind: str, times: int, seed: int) -> None:
    """Kills so many writers; ends with an error where something half-written stayed."""
    chance = random.Random(seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "written.npz"
        write = WRITERS[kind](path)
        wanted = []
        for which in range(2):
            write(which)
            wanted.append(path.read_bytes())
        assert wanted[0] != wanted[1]
        for _ in range(times):
            _kill_one(write, chance.uniform(0, 0.03))
            assert path.read_bytes() in wanted


def _kill_one(write: Writer, seconds: float) -> None:
    child = os.fork()
    if not child:
        signal.alarm(60)
        while True:
            for which in range(2):
                write(which)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
