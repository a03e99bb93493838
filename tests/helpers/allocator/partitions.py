"""Random problems of partitions, and all partitions of small ones, tried one by one."""

import itertools
import math
import random
from collections.abc import Callable

from allocator.cuts.judge import Need
from allocator.cuts.problem import OUTSIDE, CutProblem, Reads
from allocator.problem import column


def random_problem(seed: int, operators: int, parts: int, objective: str) -> CutProblem:
    """Returns a problem whose operators read up to three others, with shared weights and groups."""
    rng = random.Random(seed)
    uses = [(i, j) for i in range(1, operators) for j in rng.sample(range(i), min(i, rng.randint(0, 3)))]
    kept = [(i, rng.randrange(operators)) for i in range(operators) if rng.random() < 0.8]
    sizes = [rng.randint(1, 9) for _ in range(operators)]
    weights = [rng.randint(0, 20) for _ in range(operators)]
    group = sorted(rng.sample(range(operators), 2)) if operators > 4 and rng.random() < 0.3 else []
    room = sum(weights) // parts + 12
    return CutProblem(
        seconds=[float(rng.randint(1, 9)) for _ in range(operators)],
        values=Reads.of(uses, list(range(operators)), sizes),
        weights=Reads.of(kept, [OUTSIDE] * operators, weights),
        least=column([rng.randint(0, 6) for _ in range(operators)]),
        capacities=tuple(rng.randint(room // 2, room * 2) for _ in range(parts)),
        objective=objective,
        together=(tuple(group),) if group else (),
        seconds_a_byte=0.5,
    )


def measure_of(problem: CutProblem, slack: int = 0) -> Callable[[tuple[int, ...], int], Need]:
    """Returns a measure: weights, the most of `least`, and a byte for each operator; `slack` is not proved."""

    def measure(operators: tuple[int, ...], _: int) -> Need:
        rows = problem.weights.rows(len(problem))
        weights = {thing: nbytes for i in operators for thing, _, nbytes in rows[i]}
        needed = sum(weights.values()) + max((int(problem.least[i]) for i in operators), default=0) + len(operators)
        return Need(needed + slack, needed)

    return measure


def best_by_trying(problem: CutProblem) -> float:
    """Returns the least objective of all partitions that fit, written down anew; infinity where none does."""
    n, rows = len(problem), problem.values.rows(len(problem))
    measure, best = measure_of(problem), math.inf
    for part_of in itertools.product(range(problem.parts), repeat=n):
        if len(set(part_of)) < problem.parts or any(len({part_of[i] for i in g}) > 1 for g in problem.together):
            continue
        if any(part_of[maker] > part_of[i] for i in range(n) for _, maker, _ in rows[i]):
            continue
        members = [[i for i in range(n) if part_of[i] == part] for part in range(problem.parts)]
        if any(measure(tuple(m), 0).least > c for m, c in zip(members, problem.capacities, strict=True)):
            continue
        received = [sum(dict((t, b) for i in m for t, maker, b in rows[i] if maker not in m).values()) for m in members]
        times = [sum(problem.seconds[i] for i in m) + 0.5 * r for m, r in zip(members, received, strict=True)]
        best = min(best, float(sum(received)) if problem.objective == "traffic" else max(times))
    return best
