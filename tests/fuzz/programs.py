"""Random networks as programs of steps: each is a node of an ONNX model and a function of bounded numbers.

Nothing of the project is used here: neither its operators nor its generators of graphs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen
from onnx import helper, numpy_helper

from tests.fuzz.bounded import Bounded, Numbers

OPSET = 22
Compute = Callable[..., Any]
"""Of the inputs: a result, or a list of several."""


@frozen(eq=False)
class Step:
    """A node, and how its outputs are computed."""

    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    compute: Compute


@define(eq=False)
class Program:
    """A network that grows step by step. `constants` are ONNX's initializers; integers among them are parameters."""

    rng: np.random.Generator
    dtype: str
    inputs: dict[str, Numbers] = field(factory=dict)
    constants: dict[str, Any] = field(factory=dict)
    steps: list[Step] = field(factory=list)
    shapes: dict[str, tuple[int, ...]] = field(factory=dict)
    """Of all tensors of floats so far."""

    @property
    def unit(self) -> float:
        """Returns the rounding unit of the program's type, twice for float64, in which the reference rounds, too."""
        return float(np.finfo(self.dtype).eps) / (1 if self.dtype == "float64" else 2)

    def input(self, shape: Sequence[int]) -> str:
        """Adds an input, with numbers that its type holds exactly."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self._numbers(shape)
        self.shapes[name] = tuple(shape)
        return name

    def weights(self, shape: Sequence[int], low: float = -1.0) -> str:
        """Adds a constant of random numbers from `low` to 1."""
        name = f"w{len(self.constants)}"
        self.constants[name] = self._numbers(shape, low)
        return name

    def integers(self, values: Sequence[int]) -> str:
        """Adds a constant that says where, such as axes."""
        name = f"i{len(self.constants)}"
        self.constants[name] = np.asarray(values, np.int64)
        return name

    def _numbers(self, shape: Sequence[int], low: float = -1.0) -> Numbers:
        return np.asarray(self.rng.uniform(low, 1, tuple(shape)), np.float32).astype(np.float64)

    def add(self, op_type: str, inputs: Sequence[str], compute: Compute, outputs: int = 1, **attributes: Any) -> None:
        """Adds a step. Its outputs can be read by later ones."""
        names = tuple(f"t{len(self.steps)}_{i}" for i in range(outputs))
        self.steps.append(Step(op_type, tuple(inputs), names, attributes, compute))
        results = self.run_step(self.steps[-1], {n: self._zeros(n) for n in inputs})
        self.shapes |= {name: result.value.shape for name, result in results.items()}

    def _zeros(self, name: str) -> Any:
        if name in self.shapes:
            return Bounded(np.zeros(self.shapes[name]), np.zeros(self.shapes[name]), self.unit)
        return self._held(name)

    def _held(self, name: str) -> Any:
        array = self.constants[name]
        return array if array.dtype == np.int64 else Bounded(array, np.zeros_like(array), self.unit)

    def run_step(self, step: Step, values: Mapping[str, Any]) -> dict[str, Bounded]:
        """Returns the outputs of a step by name."""
        results = step.compute(*(values[name] for name in step.inputs))
        return dict(zip(step.outputs, results if isinstance(results, list) else [results], strict=True))

    def run(self, feeds: Mapping[str, Numbers]) -> dict[str, Bounded]:
        """Returns all tensors by name."""
        values: dict[str, Any] = {name: self._held(name) for name in self.constants}
        values |= {name: Bounded(array, np.zeros_like(array), self.unit) for name, array in feeds.items()}
        with np.errstate(all="ignore"):
            for step in self.steps:
                values |= self.run_step(step, values)
        return {name: value for name, value in values.items() if isinstance(value, Bounded)}

    def model(self, outputs: Sequence[str]) -> Any:
        """Returns an onnx.ModelProto."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        nodes = [helper.make_node(s.op_type, list(s.inputs), list(s.outputs), **s.attributes) for s in self.steps]
        held = {n: a if a.dtype == np.int64 else a.astype(self.dtype) for n, a in self.constants.items()}
        graph = helper.make_graph(
            nodes,
            "own",
            [helper.make_tensor_value_info(n, kind, a.shape) for n, a in self.inputs.items()],
            [helper.make_tensor_value_info(n, kind, self.shapes[n]) for n in outputs],
            [numpy_helper.from_array(array, name) for name, array in held.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
