"""What is computed again so that a plan keeps within its budget."""

from attrs import frozen


@frozen
class Recomputed:
    """`operators` are those that run once more, by name. `flops` are the operations that this costs in one run, as the
    schemas estimate them, and `share` what that is of the operations without. `plain_bytes`: the arena without.
    """

    operators: tuple[str, ...]
    flops: int
    share: float
    plain_bytes: int
