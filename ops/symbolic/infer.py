"""Operators on shapes without numbers: inferred once for each sample, so that no schema needs to know of it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import Any

from attrs import evolve, frozen

from ops.schema.schema import Attrs, OpSchema, Signature, Specs
from ops.tensor.dims import SAMPLES, Dim, Samples, as_tuples, dims_in, in_sample, leaf, replaced
from ops.tensor.errors import OpError, ShapeError
from ops.tensor.spec import TensorSpec

_LARGEST_DIVISOR = 64
_LONGEST = 1000
"""Most characters of a formula: one that is made of formulas can be twice as long with each operator."""
_MOST_DIMS, _MOST_PAIRED = 256, 32
"""Dimensions that a formula is looked for in, one by one and by pairs, at most: the last ones."""


@frozen(eq=False)
class Draft:
    """An operator as it would be in each sample, by the position of the sample."""

    schema: OpSchema
    inputs: Specs
    attrs: Attrs
    table: Samples
    signatures: Mapping[int, Signature]

    @property
    def outputs(self) -> int:
        """Returns how many outputs there are."""
        return len(self._any.outputs)

    def signed(self, key: Callable[[int, int], tuple[str, Hashable]]) -> Signature:
        """Returns the signature with dimensions in it.

        `key` gives a name and a key to axis (second) of output (first).
        """
        specs = tuple(self._output(i, key) for i in range(self.outputs))
        attrs = {n: as_tuples(self.attrs[n]) if dims_in(self.attrs.get(n)) else v for n, v in self._any.attrs.items()}
        return Signature(self.inputs, specs, MappingProxyType(attrs), self._any.constants)

    @property
    def _any(self) -> Signature:
        return self.signatures[self.table.alive[0]]

    def _output(self, output: int, key: Callable[[int, int], tuple[str, Hashable]]) -> TensorSpec:
        specs = {j: self.signatures[j].outputs[output] for j in self.table.alive}
        first = self._any.outputs[output]
        if any(s.ndim != first.ndim or s.dtype != first.dtype for s in specs.values()):
            raise ShapeError(f"{self}: how many dimensions there are depends on numbers that are not known yet")
        dims_in_use = _dims(self.inputs, self.attrs)
        dims: list[Any] = []
        for axis in range(first.ndim):
            lengths = {j: s.shape[axis] for j, s in specs.items()}
            name, key_of_length = key(output, axis)
            dims.append(_dim(lengths, dims_in_use, name, key_of_length, self.table))
        return TensorSpec(tuple(dims), first.dtype)

    def __str__(self) -> str:
        return f"{self.schema.name}({', '.join(map(str, self.inputs))})"


@frozen(eq=False)
class Attempt:
    """An operator that is to be inferred in each sample."""

    schema: OpSchema
    inputs: Specs
    attrs: Attrs
    constants: frozenset[int]
    table: Samples

    def sign(self, number: Callable[[int, Dim], int]) -> tuple[dict[int, Signature], dict[int, OpError]]:
        """Returns signatures of the samples that fit, and faults of others; `number` turns dimensions into numbers."""
        signatures: dict[int, Signature] = {}
        faults: dict[int, OpError] = {}
        for j in self.table.alive:
            number_of = partial(number, j)
            try:
                specs = [TensorSpec(replaced(s.shape, number_of), s.dtype) for s in self.inputs]
                numbers = {n: replaced(v, number_of) for n, v in self.attrs.items()}
                signatures[j] = self.schema.sign(specs, numbers, self.constants)
            except OpError as error:
                faults[j] = error
        return signatures, faults


class LengthsError(ShapeError):
    """An operator that no choice of lengths for the names fits."""

    def __init__(self, message: str, attempt: Attempt) -> None:
        super().__init__(message)
        self.attempt = attempt


def draft(
    schema: OpSchema, inputs: Sequence[TensorSpec], attrs: Attrs, constants: frozenset[int], table: Samples
) -> Draft:
    """Infers in each sample and goes on with those that fit. Raises LengthsError where fewer than two do."""
    attempt = Attempt(schema, tuple(inputs), attrs, constants, table)
    signatures, faults = attempt.sign(_sampled)
    if len(signatures) < 2 or len({len(s.outputs) for s in signatures.values()}) > 1:
        shown, dims = ", ".join(map(str, inputs)), _dims(inputs, attrs)
        message = f"{schema.name}({shown}): {no_length_fits(dims, faults)}"
        guessed = sorted({d.text for d in dims if d.leaves & table.guessed})
        if guessed:
            message += f"; what {', '.join(guessed)} might be was made up: `samples` of graph.data_dim takes what fits"
        raise LengthsError(message, attempt)
    table.keep(signatures)
    return Draft(schema, tuple(inputs), attrs, table, signatures)


def no_length_fits(dims: Sequence[Dim], faults: Mapping[int, OpError]) -> str:
    """Returns the text that no sample fits, with the fault of the first one; `faults` has them by sample."""
    if not faults:
        return "none of the lengths that were tried fits, as what it gives depends on them"
    sample, fault = next(iter(faults.items()))
    tried = ", ".join(dict.fromkeys(f"{dim} = {dim.samples[sample]}" for dim in dims))
    return f"none of the lengths that were tried fits; for instance {tried} (invented): {fault}"


def _dims(inputs: Sequence[TensorSpec], attrs: Attrs) -> list[Dim]:
    return [*dims_in([s.shape for s in inputs]), *dims_in(tuple(attrs.values()))]


def _sampled(sample: int, dim: Dim) -> int:
    return dim.samples[sample]


def is_symbolic(inputs: Sequence[TensorSpec], attrs: Attrs) -> bool:
    """Returns whether an operator has to wait for numbers."""
    return any(s.is_symbolic for s in inputs) or any(dims_in(v) for v in attrs.values())


def in_samples(signature: Signature) -> list[Signature]:
    """Returns the signature with the numbers of each sample that is left; itself alone where it has no dimensions."""
    dims = [d for s in signature.inputs + signature.outputs if s.is_symbolic for d in dims_in(s.shape)]
    dims = dims or [d for value in signature.attrs.values() for d in dims_in(value)]
    return [_in_sample(signature, j) for j in dims[0].table.alive] if dims else [signature]


def _in_sample(signature: Signature, sample: int) -> Signature:
    inputs, outputs = (
        tuple(s.with_shape(in_sample(s.shape, sample)) for s in specs)
        for specs in (signature.inputs, signature.outputs)
    )
    attrs = {name: in_sample(value, sample) for name, value in signature.attrs.items()}
    return evolve(signature, inputs=inputs, outputs=outputs, attrs=attrs)


def _dim(lengths: Mapping[int, int], dims: Sequence[Dim], name: str, key: Hashable, table: Samples) -> Dim | int:
    if len(set(lengths.values())) == 1:
        return next(iter(lengths.values()))
    samples = tuple(lengths.get(j, 0) for j in range(SAMPLES))
    return leaf(formula(lengths, [*table.named, *dims], name), samples, table, key)


def formula(lengths: Mapping[int, int], dims: Sequence[Dim], name: str) -> Dim | str:
    """Returns numbers by sample as a formula in `dims`; `name` where no simple one is right in every sample."""
    dims = [dim for dim in dims[-_MOST_DIMS:] if len(dim.text) <= _LONGEST]
    for dim in dims:
        if all(dim.samples[j] == n for j, n in lengths.items()):
            return dim
    for dim in dims:
        scaled = _linear(lengths, dim)
        if isinstance(scaled, Dim):
            return scaled
    for one, other in combinations(dims[-_MOST_PAIRED:], 2):
        for combined in (one + other, one * other):
            ratios = {Fraction(n, combined.samples[j] or 1) for j, n in lengths.items()}
            if len(ratios) == 1 and (ratio := ratios.pop()).denominator == 1:
                return combined * int(ratio)
    return name


def _linear(lengths: Mapping[int, int], dim: Dim) -> Dim | str:
    """Returns (p d + r) // q; p and q follow from the two greatest samples, multiples of 64: nothing is rounded."""
    points = sorted((dim.samples[j], n) for j, n in lengths.items())
    (low, at_low), (high, at_high) = points[-2:]
    if high == low or at_high <= at_low:
        return ""
    slope = Fraction(at_high - at_low, high - low)
    p, q = slope.numerator, slope.denominator
    least, most = max(q * n - p * d for d, n in points), min(q * n - p * d + q - 1 for d, n in points)
    if q > _LARGEST_DIVISOR or least > most:
        return ""
    r = 0 if least <= 0 <= most else min(least, most, key=abs)
    return (dim * p - -r if r < 0 else dim * p + r) // q
