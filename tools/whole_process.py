"""A process that loads a model and runs it: nothing is imported but what that needs.

    python tools/whole_process.py arenaplan|onnxruntime MODEL FEEDS.npz

It writes JSON: the most bytes that were resident (VmHWM), and the time of the first output by the clock.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

RUNS = 5


def main(engine: str, model: str, feeds: str) -> None:
    """Runs a model five times with default options."""
    inputs = dict(np.load(feeds))
    if engine == "arenaplan":
        import engine as arenaplan  # noqa: PLC0415 (only one engine is loaded)

        executable = arenaplan.compile(arenaplan.load_onnx(model))
        executable.run(inputs)
        output = time.time()
        for _ in range(RUNS - 1):
            executable.run(inputs)
    else:
        import onnxruntime  # noqa: PLC0415 (only one engine is loaded)

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        session.run(None, inputs)
        output = time.time()
        for _ in range(RUNS - 1):
            session.run(None, inputs)
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    print(json.dumps({"peak_bytes": peak, "output": output}))


if __name__ == "__main__":  # argparse would count as memory
    if len(sys.argv) != len(("script", "engine", "model", "feeds")) or sys.argv[1] not in ("arenaplan", "onnxruntime"):
        print(__doc__, end="")
        sys.exit(0 if "--help" in sys.argv else 2)
    main(*sys.argv[1:])
