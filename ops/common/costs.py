"""Costs that operators of several rooms have: so many operations for each element, or none for a copy."""

from collections.abc import Callable

from ops.schema.schema import Cost, Signature


def flops_per_element(flops: int) -> Callable[[Signature], Cost]:
    """Returns a cost of `flops` operations an output element; every operand is touched once."""

    def cost(signature: Signature) -> Cost:
        return Cost(flops * signature.y.size, sum(s.nbytes for s in (*signature.inputs, signature.y)))

    return cost


def flops_per_input_element(flops: int) -> Callable[[Signature], Cost]:
    """Returns a cost of `flops` operations an element of the first input; every tensor is touched once."""

    def cost(signature: Signature) -> Cost:
        return Cost(flops * signature.x.size, signature.nbytes)

    return cost


def copy_cost(signature: Signature) -> Cost:
    """Counts no operations; every byte of the outputs is read once and written once."""
    return Cost(0, 2 * sum(s.nbytes for s in signature.outputs))
