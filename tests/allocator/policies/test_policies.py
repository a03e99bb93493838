"""Policies against brute force: no two steps race that may run at once, by data and by waiting, and nothing is lost."""

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator import solvers
from allocator.concurrency import Dependences, happens_before
from allocator.derive.chunks import Chunks, derive, to_problem
from allocator.derive.users import Users, users
from allocator.errors import TooManyError, UnknownPolicyError
from allocator.policies import POLICIES, check_policy, exact, policy
from allocator.policies.base import Policy, Waits
from allocator.policies.exact import conflicts
from allocator.problem import Plan, Problem
from allocator.steps import OverwriteForward, Program, Step
from tests.helpers.allocator.step_accesses import Edge, Matrix, Placed, by_levels, closure, data_edges, touching
from tests.helpers.allocator.strategies import programs

NAMES = ("exact", "colour:1", "colour:3", "levels", "edges")
solve = partial(solvers.solve, strategy="greedy_by_size")


@frozen(eq=False)
class PlannedProgram:
    """A program planned under a policy."""

    program: Program
    edges: list[Edge]
    policy: Policy
    users: Users
    chunks: Chunks
    problem: Problem
    plan: Plan
    waits: Waits

    @property
    def placed(self) -> Placed:
        return Placed(self.program, self.chunks, self.plan.offset)

    @property
    def order(self) -> Matrix:
        """Returns which step is over before which, by data and by waiting."""
        waits = list(zip(self.waits.before.tolist(), self.waits.after.tolist(), strict=True))
        level = self.waits.level.tolist()
        pairs = combinations(range(len(level)), 2)
        barriers = [pair for a, b in pairs for pair in ((a, b), (b, a)) if level[pair[0]] < level[pair[1]]]
        return closure(len(self.program.steps), self.edges + waits + barriers)


def dependences(program: Program, edges: list[Edge]) -> Dependences:
    rows = np.array(edges, np.int64).reshape(-1, 2)
    return Dependences(len(program.steps), rows[:, 0], rows[:, 1])


def run(
    name: str, program: Program, *, views: bool = True, overwrite: bool = True, layout: tuple[int, int] = (1, 0)
) -> PlannedProgram:
    """Runs a policy as the engine does. `layout`: alignment and padding."""
    program = by_levels(program) if name == "levels" else program
    edges = data_edges(program, views=views or name == "levels")
    asked, touched = policy(name, dependences(program, edges)), users(program)

    def permit(chunk: int, tick: int) -> bool:
        return asked.may_overwrite(touched.others(chunk, tick), tick)

    chunks = derive(program, overwrite=overwrite, permit=permit)
    problem = to_problem(chunks, *layout)
    plan = asked.place(problem, touched, solve)
    return PlannedProgram(program, edges, asked, touched, chunks, problem, plan, asked.waits(problem, touched, plan))


LAYOUTS = st.sampled_from([(1, 0), (4, 0), (1, 3), (4, 3)])
CHOICES: dict[str, Any] = {"views": st.booleans(), "overwrite": st.booleans()}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(program=programs(max_steps=10), layout=LAYOUTS, **CHOICES)
def test_policies_let_no_two_steps_race_and_lose_no_data(
    name: str, program: Program, layout: tuple[int, int], views: bool, overwrite: bool
) -> None:
    outcome = run(name, program, views=views, overwrite=overwrite, layout=layout)
    assert outcome.placed.races(outcome.order) == []
    assert outcome.placed.wrong_bytes() == []
    assert outcome.plan.lower_bound <= outcome.plan.arena_bytes
    tops = (outcome.plan.offset + outcome.problem.size)[outcome.problem.size > 0]
    assert outcome.plan.arena_bytes == tops.max(initial=0)
    assert outcome.order.trace() == 0


@pytest.mark.slow
@given(programs())
def test_users_of_a_chunk_are_the_steps_that_touch_its_bytes(program: Program) -> None:
    result, chunk_of = users(program), derive(program).chunk_of
    for owner, ticks in touching(program).items():
        chunk = int(chunk_of[owner])
        assert result.of(chunk).tolist() == sorted(ticks)
        assert result.writer[chunk] == min(ticks)
        assert result.others(chunk, min(ticks)).tolist() == sorted(ticks)[1:]
        assert result.last[chunk] == max(ticks)
    assert len(result) == len(touching(program))


@settings(max_examples=60)
@given(program=programs(max_steps=10), **CHOICES)
def test_the_exact_relation_is_that_neither_is_over_before_the_other_is_written(
    program: Program, views: bool, overwrite: bool
) -> None:
    outcome = run("exact", program, views=views, overwrite=overwrite)
    touched, order = touching(program), closure(len(program.steps), outcome.edges)
    members = {chunk: chunk for chunk in range(len(outcome.chunks))}
    for src, dest in sorted(zip(outcome.chunks.src.tolist(), outcome.chunks.dest.tolist(), strict=True)):
        old = members[src]
        members = {c: members[dest] if m == old else m for c, m in members.items()}
    owner = {int(outcome.chunks.chunk_of[v]): v for v in touched}

    def is_over(a: int, b: int) -> bool:
        return all(order[tick, min(touched[owner[b]])] for tick in touched[owner[a]])

    solid = [c for c in owner if program.sizes[owner[c]]]
    wanted = {
        frozenset((a, b))
        for a, b in combinations(solid, 2)
        if members[a] != members[b] and not is_over(a, b) and not is_over(b, a)
    }
    pairs = conflicts(outcome.problem, outcome.users, happens_before(dependences(program, outcome.edges)))
    assert {frozenset(p) for p in zip(pairs.one.tolist(), pairs.other.tolist(), strict=True)} == wanted
    assert len(pairs) == len(wanted)


@given(programs(max_steps=10), st.booleans())
def test_exact_refuses_no_overwrite_that_is_safe_and_takes_no_other(program: Program, views: bool) -> None:
    edges = data_edges(program, views=views)
    order, touched, chunk_of = closure(len(program.steps), edges), touching(program), derive(program).chunk_of
    owner = {int(chunk_of[v]): v for v in touched}

    def is_safe(chunk: int, tick: int) -> bool:
        return all(order[other, tick] for other in touched[owner[chunk]] - {tick})

    wanted, result = derive(program, permit=is_safe), run("exact", program, views=views).chunks
    for name in ("src", "dest", "overwrite_offset"):
        assert getattr(wanted, name).tolist() == getattr(result, name).tolist()


@given(programs(max_steps=10), st.booleans())
def test_edges_need_no_more_bytes_than_the_sequence_and_wait_for_no_more_than_bytes_ask(
    program: Program, overwrite: bool
) -> None:
    outcome = run("edges", program, overwrite=overwrite)
    assert outcome.plan.arena_bytes == solve(to_problem(derive(program, overwrite=overwrite), 1)).arena_bytes
    waits = list(zip(outcome.waits.before.tolist(), outcome.waits.after.tolist(), strict=True))
    assert len(set(waits)) == len(waits)
    data = closure(len(program.steps), outcome.edges)
    assert not any(data[a, b] for a, b in waits)
    if not waits:
        assert outcome.placed.races(data) == []


@given(programs(max_steps=10), st.sampled_from(["colour:1", "colour:3", "levels"]))
def test_policies_without_waits_never_need_less_than_the_exact_bound(program: Program, name: str) -> None:
    exact_one, other = (run(n, program, overwrite=False) for n in ("exact", name))
    if name == "levels":
        assert other.plan.lower_bound <= run("exact", other.program, overwrite=False).plan.arena_bytes
    else:
        assert exact_one.plan.lower_bound <= other.plan.arena_bytes


def _diamond(*, overwrite: bool = False) -> Program:
    """Returns steps of four bytes: 0 feeds a; 1: b from a; 2: c from b; 3: d from a; 4: e from d; 5 reads c and e."""
    taken = (OverwriteForward(2, 1),) if overwrite else ()
    body = (
        Step(reads=(0,), writes=(1,)),
        Step(reads=(1,), writes=(2,), overwrites=taken),
        Step(reads=(0,), writes=(3,)),
        Step(reads=(3,), writes=(4,)),
    )
    return Program((Step(writes=(0,)), *body, Step(reads=(2, 4))), (4,) * 5)


def test_in_sequence_the_second_branch_takes_what_the_first_is_done_with() -> None:
    """d lies where b was: 3 waits for 2, which reads b. e lies where a was: 4 waits for 1, which reads a, too."""
    outcome = run("edges", _diamond())
    assert outcome.plan.arena_bytes == 12
    assert outcome.plan.offset[3] == outcome.plan.offset[1] and outcome.plan.offset[4] == outcome.plan.offset[0]
    waits = set(zip(outcome.waits.before.tolist(), outcome.waits.after.tolist(), strict=True))
    assert waits == {(1, 3), (2, 3), (1, 4)}


def test_exact_shares_only_where_all_users_of_the_old_value_are_done() -> None:
    """Nothing says that 1 is done when 4 writes e, nor that 3 is when 2 writes c: no chunk takes the bytes of a."""
    outcome = run("exact", _diamond())
    assert outcome.plan.arena_bytes == 20
    alone = Program((*_diamond().steps[:3], Step(reads=(2,))), (4,) * 3)
    assert run("exact", alone).plan.offset.tolist() in ([0, 4, 0], [4, 0, 4])


def test_an_overwrite_needs_no_other_chunk() -> None:
    outcome = run("exact", _diamond(overwrite=True))
    assert outcome.plan.offset[2] == outcome.plan.offset[1] and outcome.plan.arena_bytes == 16


def test_levels_share_after_the_barrier() -> None:
    """1 and 3 run at once, then 2 and 4: c or e takes the bytes of a."""
    outcome = run("levels", _diamond())
    assert outcome.waits.level.tolist() == [0, 1, 1, 2, 2, 3]
    assert outcome.plan.arena_bytes == 16
    assert outcome.plan.offset[0] in outcome.plan.offset[[2, 4]].tolist()


def test_a_colour_shares_along_its_path() -> None:
    """0, 1, 2 and the fetch are the path. c takes the bytes of a only if 3, which reads a too, is on it."""
    assert run("colour:1", _diamond()).plan.arena_bytes == 20
    chain = Program((*_diamond().steps[:3], Step(reads=(2,))), (4,) * 3)
    assert run("colour:1", chain).plan.arena_bytes == 8


@pytest.mark.parametrize("name", NAMES)
def test_policies_place_no_chunks_in_no_bytes(name: str) -> None:
    assert run(name, Program((Step(), Step()), ())).plan.arena_bytes == 0
    assert run(name, Program((Step(writes=(0,)), Step()), (0,))).plan.arena_bytes == 0


@pytest.mark.parametrize("name", NAMES)
def test_steps_that_wait_for_nothing_share_nothing_without_waiting(name: str) -> None:
    program = Program((Step(writes=(0,)), Step(writes=(1,))), (4, 4))
    asked, touched = policy(name, Dependences(2, [], [])), users(program)
    problem = to_problem(derive(program), 1)
    plan = asked.place(problem, touched, solve)
    assert plan.arena_bytes == (4 if name == "edges" else 8)
    waits = asked.waits(problem, touched, plan)
    assert (waits.before.tolist(), waits.after.tolist()) == (([0], [1]) if name == "edges" else ([], []))


def test_policies_are_found_by_name() -> None:
    assert [check_policy(name)[0] for name in POLICIES] == ["exact", "colour", "levels", "edges"]
    assert check_policy("colour:12") == ("colour", 12)
    nothing = Dependences(2, [0], [1])
    assert [policy(name, nothing).name for name in NAMES] == list(NAMES)
    for name in ("", "Exact", "exact:1", "exact:", "colour", "colour:", "colour:0", "colour:-1", "colour:1.5"):
        with pytest.raises(UnknownPolicyError, match="is no policy for operators that run at once; there are exact, c"):
            policy(name, nothing)
    with pytest.raises(UnknownPolicyError):
        policy("colour:99999", nothing)


def test_a_list_of_conflicts_that_would_be_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_CONFLICTS", 9)
    with pytest.raises(TooManyError, match=r"more than 9 pairs of chunks may be alive at once.*'colour:8' needs no"):
        run("exact", _diamond())
