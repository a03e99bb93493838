"""Why a call has its kernel: the kernels that were asked before it, and why they are not taken."""

from attrs import frozen

from engine.lower.calls import Call, Lowered

_CANNOT_WRITE = "it cannot write its output inside a larger tensor"
_AS_ELSEWHERE = "another plan of the network chose so"


@frozen
class PassedOver:
    """A kernel that a back-end has for an operator, and the reason why another one computes it."""

    backend: str
    kernel: str
    reason: str

    def __str__(self) -> str:
        return f"not {self.backend} ({self.kernel}): {self.reason}"


def passed_over(lowered: Lowered, call: Call) -> tuple[PassedOver, ...]:
    """Returns the kernels that were asked before that of a call, in their order."""
    schema = call.operators[0].schema if call.operators else None
    if schema is None or call.kernel not in schema.kernels or call.kernel.backend not in lowered.backends:
        return ()
    layouts = [lowered.values[v].layout for v in call.outputs]
    return tuple(
        PassedOver(
            kernel.backend,
            kernel.name,
            reason or (_AS_ELSEWHERE if all(map(kernel.writes, layouts)) else _CANNOT_WRITE),
        )
        for kernel, reason in schema.refusals(call.signature, lowered.backends, call.kernel)
    )


def why_not_text(lowered: Lowered, call: Call) -> str:
    """Returns in one line why back-ends that are preferred do not compute a call; empty where the first one does."""
    others = [p for p in passed_over(lowered, call) if p.backend != call.kernel.backend]
    return "; ".join(dict.fromkeys(f"not {p.backend}: {p.reason}" for p in others))
