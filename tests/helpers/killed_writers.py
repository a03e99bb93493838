"""Writers that are killed at some moment: a child writes one of two contents over and over; the file stays whole."""

import atexit
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NoReturn

import numpy as np
import onnx
from attrs import frozen

import engine
import ops
from allocator.io.files import open_whole
from allocator.machine_code.store import write_file
from engine.cli.options.files import write_arrays
from engine.exporters import FORMATS
from tests.helpers.onnx.small_models import model, node, value

Writer = Callable[[int], object]
IS_THERE = hasattr(os, "fork")
"""Whether processes are forked here."""
MOST_SECONDS = 0.03
"""A child writes a file several times in this time."""
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


@frozen(eq=False)
class Written:
    """A file in a folder of its own, what writes one of two contents to it, and both contents."""

    path: Path
    write: Writer
    contents: tuple[bytes, bytes]

    def kill_a_writer(self, seconds: float) -> None:
        """Starts a child that writes, and kills it after so many seconds. Removes what it left beside the file."""
        child = os.fork()
        if not child:
            self._write_for_ever()
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        for left in self.path.parent.glob(".*"):
            shutil.rmtree(left)

    def _write_for_ever(self) -> NoReturn:
        signal.alarm(60)
        try:
            while True:
                for which in range(2):
                    self.write(which)
        finally:
            os._exit(1)

    def is_whole(self) -> bool:
        """Returns whether the file has one of the contents, and can still be written."""
        is_one = self.path.read_bytes() in self.contents
        self.write(0)
        return is_one and self.path.read_bytes() == self.contents[0]


@cache
def written(kind: str) -> Written:
    """Returns a file of one of WRITERS, in a folder that goes when the process ends as it should."""
    folder = tempfile.mkdtemp(prefix="written-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "written.npz"
    write, contents = WRITERS[kind](path), list[bytes]()
    for which in range(2):
        write(which)
        contents.append(path.read_bytes())
    assert contents[0] != contents[1]
    return Written(path, write, (contents[0], contents[1]))
