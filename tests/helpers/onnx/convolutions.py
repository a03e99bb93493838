"""A stack of convolutions with an open batch: small to plan, and smaller where its tensors are stored in 16 bits."""

from pathlib import Path

import numpy as np
import onnx

from tests.helpers.onnx.small_models import model, node, value

CHANNELS = ((8, 48), (48, 48), (48, 8))


def convolutions(folder: Path, size: int = 48, batch: str | int = "batch") -> str:
    """Writes the model to a file, and returns its path."""
    random = np.random.default_rng(0)
    weights = {f"w{i}": random.standard_normal((b, a, 3, 3)) / 10 for i, (a, b) in enumerate(CHANNELS)}
    nodes, last = [], "x"
    for name in weights:
        nodes += [
            node("Conv", (last, name), (f"conv_{name}",), pads=[1, 1, 1, 1]),
            node("Relu", (f"conv_{name}",), (f"relu_{name}",)),
        ]
        last = f"relu_{name}"
    nodes.append(node("Identity", (last,)))
    arrays = {name: array.astype(np.float32) for name, array in weights.items()}
    path = folder / "convolutions.onnx"
    onnx.save(model(nodes, [value("x", (batch, 8, size, size))], initializers=arrays), path)
    return str(path)
