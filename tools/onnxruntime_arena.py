"""What onnxruntime's own arena holds of activations: its log tells each extension, in a process of its own.

    python -m tools.onnxruntime_arena MODEL

Weights stay out of the arena (session.use_device_allocator_for_initializers), which grows by what is asked for and no
more (arena_extend_strategy 1, kSameAsRequested). After the first run, in which sizes are only traced, the arena is
emptied (memory.enable_memory_arena_shrinkage), so that all the second run needs is asked for anew: first the block that
onnxruntime planned, then what kernels ask for besides. Inputs are the caller's and lie in neither. The names are those
of onnxruntime's documentation, "Memory consumption" and onnxruntime_session_options_config_keys.h.
"""

import re
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from tools.entry import run_script

CHECKOUT = Path(__file__).parent.parent
_EXTENSION = re.compile(r"Extending BFCArena for Cpu\..*\(requested\) num_bytes: (\d+)")
_SAME_AS_REQUESTED, _INFO = 1, 1
_MARK = "second run"


@frozen
class Activations:
    """Bytes: of the block that is planned, and of all other requests that did not find room in it."""

    planned: int
    besides: int


def onnxruntime_activations(model: Path) -> Activations:
    """Runs the model in onnxruntime on one thread, with seeded inputs. Raises CalledProcessError where that fails."""
    command = [sys.executable, "-m", "tools.onnxruntime_arena", str(model.absolute())]
    log = subprocess.run(command, check=True, capture_output=True, text=True, cwd=CHECKOUT).stderr
    sizes = [int(size) for size in _EXTENSION.findall(log.partition(_MARK)[2])]
    return Activations(sizes[0] if sizes else 0, sum(sizes[1:]))


def _serve(model: Path) -> None:
    import onnxruntime  # noqa: PLC0415 (heavy, optional)

    from tools.run_networks import loaded  # noqa: PLC0415 (only this process needs the model)

    feeds = loaded(model)[1]
    session = _session(onnxruntime, model)
    for entry in ("cpu:0", ""):
        options = onnxruntime.RunOptions()
        if entry:
            options.add_run_config_entry("memory.enable_memory_arena_shrinkage", entry)
        session.run(None, feeds, options)
        print(_MARK if entry else "", file=sys.stderr, flush=True)


def _session(onnxruntime: Any, model: Path) -> Any:
    kind, use = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, onnxruntime.OrtMemType.DEFAULT
    memory = onnxruntime.OrtMemoryInfo("Cpu", kind, 0, use)
    arena = onnxruntime.OrtArenaCfg({"arena_extend_strategy": _SAME_AS_REQUESTED})
    onnxruntime.create_and_register_allocator(memory, arena)
    onnxruntime.set_default_logger_severity(_INFO)  # the arena logs here, not in the session's log
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a model in onnxruntime twice; its log on stderr has the extensions of the arena."""
    parser = ArgumentParser("onnxruntime_arena", description=main.__doc__)
    parser.add_argument("model", metavar="MODEL", type=Path, help="an ONNX file")
    _serve(parser.parse_args(argv).model)
    return 0


if __name__ == "__main__":
    run_script(main)
