"""Mutated ONNX models: read, planned, and run in two modes where what they need is small."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import engine
from engine.api import MODES
from engine.stages.bind import input_shapes
from ops.tensor.spec import Array, Shape
from tests.fuzz.base import MUTANTS, Kind, Tried
from tests.fuzz.base_models import cases, networks
from tests.fuzz.bytes_mutations import mutated
from tests.fuzz.message_mutations import mutate
from tests.fuzz.modes import same_bits

MOST_RUN = 8 << 20
"""The most bytes of a plan with which a mutant is run."""
LEVELS = (0, 1, 2, 3, "auto")


def make(rng: np.random.Generator) -> bytes:
    """Makes a model: one in five is changed as bytes, the others field by field."""
    bases = networks() if rng.random() < 0.4 else cases()
    content = bases[rng.integers(len(bases))]
    if rng.random() < 0.2:
        return mutated(content, rng)
    model = onnx.ModelProto()
    model.ParseFromString(content)
    mutate(model, rng)
    try:
        written: bytes = model.SerializeToString(deterministic=True)
    except ValueError:  # what cannot be written is no input
        return content
    return written


def attempt(path: Path) -> Tried:
    """Reads and plans the model, and runs it in two modes where it is small; the length of the file decides how."""
    (path.parent / "weights").write_bytes(bytes(400))
    rng = np.random.default_rng(path.stat().st_size)
    graph = engine.load_onnx(path)
    options: dict[str, Any] = {"optimise": LEVELS[rng.integers(len(LEVELS))], "nodes": 50, "threads": 1}
    shapes = input_shapes(graph, {name: int(1 + rng.integers(4)) for name in graph.symbols})
    needed = sum(math.prod(shapes[name]) * var.dtype.itemsize for name, var in graph.inputs.items())
    if graph.is_symbolic:
        options |= {"budget": MOST_RUN}
    else:
        plan = engine.make_plan(graph, **options)
        needed += plan.arena_bytes + plan.weights_bytes
    if needed > MOST_RUN:
        return Tried("planned", needed)
    feeds = {name: _drawn(shapes[name], var.dtype, rng) for name, var in graph.inputs.items()}
    same_bits(*(engine.compile(graph, **options, mode=mode).run(feeds) for mode in MODES))
    return Tried("run", needed)


def _drawn(shape: Shape, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Draws an input: small numbers, so that indices and lengths often make sense."""
    return np.asarray(rng.integers(-1, 4, shape) if dtype.kind in "iub" else rng.normal(size=shape)).astype(dtype)


MODELS = Kind("models", MUTANTS, "model.onnx", make, attempt)
