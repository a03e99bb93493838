"""A chain of elementwise operators as data, and which of its values may lie in one place."""

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import field, frozen

from ops.schema.schema import Attrs, OpSchema, Overwrite, Signature, Specs
from ops.tensor.errors import ArityError, SchemaError, ShapeError
from ops.tensor.spec import TensorSpec


@frozen(eq=False)
class Step:
    """One operator of a program. Values are numbered: inputs of the program first, then the output of each step."""

    schema: OpSchema
    attrs: Attrs = field(repr=False)
    operands: tuple[int, ...]

    def __str__(self) -> str:
        attrs = "".join(f" {name}={value}" for name, value in self.attrs.items())
        return f"{self.schema.name}({','.join(f'${i}' for i in self.operands)}{attrs})"


Program = tuple[Step, ...]
"""Steps in a runnable order; the output of the last one is that of the program."""


def read_program(value: Any) -> Program:
    """Returns the steps as a tuple. Raises TypeError for a value that is no program."""
    steps = tuple(value)
    if not steps or not all(isinstance(s, Step) for s in steps):
        raise TypeError("one step or more is wanted")
    return steps


def signatures(program: Program, inputs: Specs, constants: frozenset[int] = frozenset()) -> tuple[Signature, ...]:
    """Returns the signature of each step. Raises OpError where a step does not take its operands."""
    values, signed = list(inputs), []
    for number, step in enumerate(program):
        if not all(0 <= i < len(inputs) + number for i in step.operands):
            raise ArityError(f"step {number}, {step}, reads a value that is not there yet")
        constant_inputs = frozenset(i for i, v in enumerate(step.operands) if v in constants)
        signature = step.schema.sign([values[i] for i in step.operands], step.attrs, constant_inputs)
        if len(signature.outputs) != 1:
            raise SchemaError(f"{step.schema.name} has {len(signature.outputs)} outputs; one is wanted")
        values.append(signature.y)
        signed.append(signature)
    return tuple(signed)


def check_shapes(program: Program, signed: Sequence[Signature]) -> None:
    """Raises ShapeError where a step has another shape than the last one: all run over the same blocks."""
    for step, signature in zip(program, signed, strict=True):
        if signature.y.shape != signed[-1].y.shape:
            raise ShapeError(f"{step} has shape {signature.y.shape}, and the output {signed[-1].y.shape}")


def permitted(step: Step, signature: Signature, value: int) -> bool:
    """Returns whether the output of a step may be written over a value: all positions of the value must allow it."""
    positions = [i for i, v in enumerate(step.operands) if v == value]
    declared = step.schema.forwards(signature)
    return all(Overwrite(0, i) in declared for i in positions)


def last_readers(program: Program) -> dict[int, int]:
    """Returns the number of the last step that reads each value."""
    return {value: number for number, step in enumerate(program) for value in step.operands}


def assign_buffers(program: Program, signed: Sequence[Signature], inputs: int) -> tuple[int, ...]:
    """Returns the buffer number of each step's output but the last; reuses buffers in one pass, so few are needed.

    A step takes the buffer of an operand that dies with it, if it may be written over, else one that is free.
    """
    last, of, free, count = last_readers(program), dict[int, int](), list[int](), 0
    for number, (step, signature) in enumerate(zip(program[:-1], signed, strict=False)):
        dying = [v for v in dict.fromkeys(step.operands) if v >= inputs and last[v] == number]
        taken = next((v for v in dying if _fits(signature, step, v)), None)
        if taken is not None:
            of[inputs + number] = of[taken]
        elif free:
            of[inputs + number] = free.pop()
        else:
            of[inputs + number], count = count, count + 1
        free += [of[v] for v in dying if v != taken]
    return tuple(of[inputs + number] for number in range(len(program) - 1))


def _fits(signature: Signature, step: Step, value: int) -> bool:
    spec: TensorSpec = signature.inputs[step.operands.index(value)]
    return spec == signature.y and permitted(step, signature, value)


def output_buffer(program: Program, signed: Sequence[Signature], of: Sequence[int], inputs: int) -> int:
    """Returns a buffer that may be the output itself: its values have the output's spec and may be written over.

    -1 if there is none. `of` is the result of `assign_buffers`.
    """
    y = signed[-1].y
    for buffer in range(max(of, default=-1) + 1):
        held = [inputs + number for number, used in enumerate(of) if used == buffer]
        alike = all(signed[value - inputs].y == y for value in held)
        if alike and all(permitted(program[-1], signed[-1], value) for value in held):
            return buffer
    return -1


def overwritable(program: Program, signed: Sequence[Signature], inputs: Specs, first: int) -> Iterator[int]:
    """Yields the inputs over which the output may be written, where step `first` is the first to write there.

    No later step reads them.
    """
    last = last_readers(program)
    for value, spec in enumerate(inputs):
        if spec == signed[-1].y and last.get(value, -1) <= first and permitted(program[first], signed[first], value):
            yield value
