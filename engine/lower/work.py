"""The work of lowered calls, for searches that let some run again, and for runs that evict what they compute."""

from allocator.recompute.work import RecomputeProblem, work_of
from allocator.steps import only_required
from engine.lower.calls import Call, Instruction, Lowered, arena_ids
from engine.lower.costs import call_cost
from engine.lower.steps import to_program
from ops.schema.body import bodies
from ops.schema.opaque import is_opaque


def work_in(lowered: Lowered, *, overwrite: bool = True, alignment: int = 1) -> RecomputeProblem:
    """Returns the work of calls in their order, before anything is nested: step i is what runs in tick i.

    What has a body inside, what nobody implements, and a copy that no view asked for, is done once.
    """
    program = to_program(lowered, arena_ids(lowered))
    cost = [0, *(call_cost(s) if isinstance(s, Call) else 0 for s in lowered.instructions), 0]
    once = [s.tick for s in lowered.instructions if runs_once(lowered, s)]
    return work_of(program if overwrite else only_required(program), cost, once, alignment)


def runs_once(lowered: Lowered, instruction: Instruction) -> bool:
    """Returns whether an instruction may not run again."""
    if not instruction.operators:
        return not lowered.values[instruction.inputs[0]].is_view
    return any(bodies(op.schema, op.attrs) or is_opaque(op.schema) for op in instruction.operators)
