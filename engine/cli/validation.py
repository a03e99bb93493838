"""Plans from elsewhere, judged."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from allocator.bounds import proved_bound
from allocator.check.offsets import check
from allocator.errors import FormatError, shown
from allocator.io.instance import Instance, in_names
from allocator.problem import FREE, NO_CAPACITY, Column, Plan, Problem
from engine.text.errors import OptionError, PlanRefusedError

GIVEN = "given"
"""The strategy of a plan that is none of ours."""


def validated(instance: Instance, problem: Problem, offset: Column, source: Path, capacity: int) -> Plan:
    """Checks the plan in a file for the buffers of an instance, whose sizes are those of `problem`; returns it.

    Raises PlanRefusedError, which says in ids of buffers which rule the plan breaks, and FormatError.
    """
    if len(problem) and (offset == FREE).all():
        raise FormatError(f"{source}: holds no offsets that could be checked")
    used = problem.size > 0
    _check_complete(instance, offset, used, source)
    arena = int((offset + problem.size)[used].max(initial=0))
    fault = check(problem, offset, capacity if capacity != NO_CAPACITY else arena)
    if fault is not None:
        raise PlanRefusedError(f"{source}: {fault.kind}: {in_names(fault.message, instance.ids)}")
    return Plan(offset, arena, proved_bound(problem), GIVEN, capacity)


def check_one_memory(instance: Instance, source: Path, instead: str) -> None:
    """Raises OptionError where the buffers of a file lie in several memories: solvers place in one arena."""
    names = tuple(dict.fromkeys(instance.memory))
    if names[1:]:
        where = f"{source}: its buffers lie in the memories {', '.join(names)} (column 'memory')"
        raise OptionError(f"{where}, and strategies place all of them in one; {instead}")


def _check_complete(instance: Instance, offset: Column, used: npt.NDArray[np.bool_], source: Path) -> None:
    nowhere = np.flatnonzero((offset == FREE) & used)
    if len(nowhere):
        raise PlanRefusedError(f"{source}: missing offset: buffer {shown(instance.ids[int(nowhere[0])])} has none")
