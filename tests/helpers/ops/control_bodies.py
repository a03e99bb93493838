"""Bodies of control flow made of a plain function, which overwrite all that the contract allows."""

from collections.abc import Callable, Sequence

import numpy as np
from attrs import field, frozen

from ops.schema.schema import Cost, Specs, Thunk
from ops.schema.weight_memory import WeightMemory
from ops.tensor.spec import Array


@frozen(eq=False)
class FunctionBody:
    """A body that fills its workspace and outputs with garbage before it reads, and its workspace afterwards."""

    inputs: Specs
    outputs: Specs
    function: Callable[..., Sequence[Array]]
    workspace: int = 100
    weight_memory: WeightMemory = field(factory=WeightMemory)
    prepacked_bytes: int = 0
    cost: Cost = field(factory=lambda: Cost(3, 5))
    names: frozenset[str] = frozenset()

    def bind(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...], workspace: Array) -> Thunk:
        assert [(a.shape, a.dtype) for a in inputs] == [(s.shape, s.dtype) for s in self.inputs]
        assert [(a.shape, a.dtype) for a in outputs] == [(s.shape, s.dtype) for s in self.outputs]
        assert all(a.flags.c_contiguous for a in (*inputs, *outputs)) and len(workspace) >= self.workspace

        def run() -> None:
            for array in (workspace, *outputs):
                array.reshape(-1).view(np.uint8)[:] = 0xA5
            for array, result in zip(outputs, self.function(*inputs), strict=True):
                array[...] = result
            workspace[:] = 0x5A

        return run
