"""Work that can be done again: random steps, and the two passes through a chain of equal layers."""

from hypothesis import strategies as st

from allocator.recompute.work import RecomputeProblem, work_of
from allocator.steps import OverwriteForward, Program, Step


@st.composite
def works(draw: st.DrawFn) -> tuple[RecomputeProblem, Program]:
    """Draws steps of one or two outputs, some with a workspace, some of which may overwrite an input.

    Some update a parameter: they must overwrite what is fed, nothing reads that after them, and the result is fetched.
    """
    count = draw(st.integers(3, 14))
    sizes = [64 * draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 4)))]
    steps, parameters = [Step(writes=tuple(range(len(sizes))))], set(range(1, len(sizes)))
    readable = list(range(len(sizes)))
    for _ in range(count):
        reads = {draw(st.sampled_from(readable)) for _ in range(draw(st.integers(1, 3)))}
        outputs = tuple(range(len(sizes), len(sizes) + draw(st.integers(1, 2))))
        sizes += [64 * draw(st.integers(0, 6)) for _ in outputs]
        overwrites = (OverwriteForward(outputs[0], max(reads)),) if draw(st.booleans()) else ()
        updated = draw(st.sampled_from([-1, *sorted(parameters)]))
        if updated >= 0:
            overwrites, sizes[outputs[0]] = (OverwriteForward(outputs[0], updated, required=True),), sizes[updated]
            reads.add(updated)
            readable.remove(updated)
            parameters ^= {updated, outputs[0]}
        readable += outputs
        steps.append(Step(tuple(sorted(reads)), outputs, overwrites=overwrites))
    fetched = {len(sizes) - 1, draw(st.sampled_from(readable)), *parameters}
    program = Program((*steps, Step(reads=tuple(sorted(fetched)))), sizes)
    cost = [0, *(draw(st.integers(1, 9)) for _ in range(count)), 0]
    once = {draw(st.integers(1, count))} if draw(st.booleans()) else set()
    return work_of(program, cost, once), program


def chain(layers: int) -> RecomputeProblem:
    """Returns the forward and backward pass of equal layers: gradient i reads the one behind it and layer i's input."""
    steps = [Step(writes=(0,)), *(Step((i,), (i + 1,)) for i in range(layers))]
    last = layers
    for i in reversed(range(layers)):
        steps.append(Step((last, i), (layers + layers - i,)))
        last = layers + layers - i
    program = Program((*steps, Step(reads=(last,))), [64] * (2 * layers + 1))
    return work_of(program, [0, *[10] * (2 * layers), 0], ())
