"""Branch and bound: the smallest arena, with its proof as far as the budget goes."""

from attrs import frozen

from allocator.bodies import bodies, parts
from allocator.problem import Problem
from allocator.solvers.base import Answer, Task, Traits
from allocator.solvers.budget import Budget
from allocator.solvers.descent import Descent
from allocator.solvers.greedy_by_size import by_size
from allocator.solvers.placement import place_in_order


@frozen(eq=False)
class Exact:
    """Parts that never meet are solved one by one, the one with the largest arena first.

    For each, capacities between the bound and the best arena known are probed, in many static orders round-robin, with
    limits of nodes that grow (Moffitt 2023, MiniMalloc, section 5); a probe that comes to an end without a plan is a
    proof that there is none. Starts from greedy by size, and stops at any time with the best plan so far.
    """

    name: str = "exact"
    traits: Traits = Traits(most_chunks=5_000)
    nodes: int = 5_000_000

    def solve(self, problem: Problem, task: Task) -> Answer:
        """Offsets, and the proved bound."""
        budget = Budget.of(task, self.nodes)
        offset = place_in_order(problem, by_size(problem)).copy()
        searches = [Descent(part, offset[part.root], task.seed) for part in parts(bodies(problem))]
        goal = max([task.goal, *(s.proved for s in searches)])
        while not budget.is_over:
            unfinished = [s for s in searches if s.arena > max(goal, s.proved)]
            if not unfinished:
                break
            for search in unfinished:
                search.improve(goal, budget)
                goal = max(goal, search.proved)
        for search in searches:
            offset[search.part.root] = search.offset
        return Answer(offset, max((s.proved for s in searches), default=0))


EXACT = Exact()
