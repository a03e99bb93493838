"""Random networks that share no code with the project, against their values in float64, and their slopes."""

from pathlib import Path

import numpy as np

import engine
import ops
from engine import Graph
from ops.tensor.spec import Array
from tests.fuzz.base import GRAPHS, Kind, Tried, WrongError, seed_text
from tests.fuzz.bounded import Numbers
from tests.fuzz.graphs import BACKENDS
from tests.fuzz.modes import WAYS, same_bits
from tests.fuzz.program_steps import random_program
from tests.fuzz.programs import Program

PROMISE = 1e-4
"""What passes of level 2 and 3 may move a value, as a share of the largest one (docs/determinism.md)."""
_STEPS = 1e-4, 5e-5
"""Steps of differences, one half of the other. Where they disagree, or see a bend in the middle, there is a kink, and
no slope to compare with."""


def attempt_values(path: Path) -> Tried:
    """Compares all tensors of a network in float32 or float64 with their reference, and two ways to run it."""
    rng = np.random.default_rng(int(path.read_text()))
    program = random_program(rng, ("float32", "float32", "float64")[rng.integers(3)])
    names = _outputs(program, rng)
    graph, wanted = _loaded(program, names, path), program.run(program.inputs)
    level = int(rng.integers(4))
    options = {"optimise": level, "backend": BACKENDS[rng.integers(len(BACKENDS))], "nodes": 50}
    feeds = {name: array.astype(program.dtype) for name, array in program.inputs.items()}
    results = engine.compile(graph, threads=1, **options).run(feeds)
    for name in names:
        tolerance = wanted[name].error + (PROMISE * np.abs(wanted[name].value).max(initial=0) if level > 1 else 0)
        _check(name, results[name], wanted[name].value, tolerance, options)
    if options["backend"] != "onednn":
        same_bits(results, engine.compile(graph, **options, **WAYS[rng.integers(len(WAYS))]).run(feeds))
    return Tried("run")


def _outputs(program: Program, rng: np.random.Generator) -> list[str]:
    names = [name for step in program.steps for name in step.outputs]
    return sorted({names[-1], *(names[rng.integers(len(names))] for _ in range(rng.integers(3)))})


def _loaded(program: Program, names: list[str], path: Path) -> Graph:
    path.write_bytes(program.model(names).SerializeToString())
    return engine.load_onnx(path)


def _check(name: str, got: Array, wanted: Numbers, tolerance: Numbers, what: object) -> None:
    with np.errstate(all="ignore"):
        off = np.abs(got - wanted) - tolerance
    if got.shape != wanted.shape or not (off <= 0).all():
        at = np.unravel_index(int(np.argmax(np.where(np.isnan(off), np.inf, off))), off.shape) if off.size else ()
        raise WrongError(
            f"{name!r} at {list(map(int, at))} is {got[at]}, not {wanted[at]} ± {np.asarray(tolerance)[at]}, {what}"
        )


def attempt_slopes(path: Path) -> Tried:
    """Compares gradients in float64 with differences of the reference, along a random direction."""
    rng = np.random.default_rng(int(path.read_text()))
    program = random_program(rng, "float64")
    (name,) = program.steps[-1].outputs[:1]
    graph = _loaded(program, [name], path)
    shares = rng.uniform(0.5, 1.5, program.shapes[name])
    read = {n for step in program.steps for n in step.inputs} & program.inputs.keys()
    ways = {n: rng.normal(size=program.shapes[n]) for n in program.inputs}
    loss = ops.reduce_sum(graph.outputs[name] * shares, axes=None, keepdims=False)
    wrt = [n for n in graph.inputs if n in read and _depends(program, name, n)]
    if not wrt:
        return Tried("without inputs")
    for n, gradient in zip(wrt, engine.gradients(loss, [graph.inputs[n] for n in wrt]), strict=True):
        graph.output(gradient, f"d{n}")
    results = engine.compile(graph, optimise=int(rng.integers(2)), nodes=50, threads=1).run(program.inputs)
    slope = sum(float((results[f"d{n}"] * ways[n]).sum()) for n in wrt)
    scale = sum(float(np.abs(results[f"d{n}"] * ways[n]).sum()) for n in wrt)
    sides = (_differences(program, name, shares, {n: ways[n] for n in wrt}, step) for step in _STEPS)
    (coarse, coarse_bend), (fine, fine_bend) = (((ahead + behind) / 2, ahead - behind) for ahead, behind in sides)
    doubt = abs(coarse - fine) + abs(2 * fine_bend - coarse_bend)  # of a smooth function, bends are as long as steps
    if doubt > 1e-6 * (scale + abs(fine) + 1):
        return Tried("kinks")
    if abs(slope - fine) > 4 * doubt + 1e-8 * (scale + abs(fine) + 1):
        raise WrongError(f"the slope is {slope}, not {fine} ± {doubt}")
    return Tried("run")


def _depends(program: Program, output: str, name: str) -> bool:
    reached = {name}
    for step in program.steps:
        if reached.intersection(step.inputs):
            reached.update(step.outputs)
    return output in reached


def _differences(
    program: Program, name: str, shares: Numbers, ways: dict[str, Numbers], step: float
) -> tuple[float, float]:
    """Returns the slopes ahead and behind."""
    behind, here, ahead = (
        float((program.run(_moved(program, ways, step * sign))[name].value * shares).sum()) for sign in (-1, 0, 1)
    )
    return (ahead - here) / step, (here - behind) / step


def _moved(program: Program, ways: dict[str, Numbers], step: float) -> dict[str, Numbers]:
    return {n: a + step * ways[n] if n in ways else a for n, a in program.inputs.items()}


VALUES = Kind("values", GRAPHS, "seed", seed_text, attempt_values)
SLOPES = Kind("slopes", GRAPHS, "seed", seed_text, attempt_slopes)
