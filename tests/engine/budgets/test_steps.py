"""The steps towards a budget, as data."""

from engine.budgets.steps import STEPS, changes_of, combinations, steps_from
from engine.planning.options import FIELDS, Options


def test_each_step_changes_options_that_there_are() -> None:
    for step in STEPS:
        assert step.changes.keys() <= FIELDS.keys()
        Options(**step.changes)


def test_steps_that_change_nothing_are_left_out() -> None:
    options = Options(store="float16", order="memory", nest=False)
    flags = [step.how for step in steps_from(options)]
    assert "--store float16" not in flags and "--order memory" not in flags and "--backend numba" not in flags
    assert "--store bfloat16" in flags and "without --no-nest" in flags
    assert "without --no-nest" not in [step.how for step in steps_from(Options())]


def test_combinations_take_one_step_of_a_family_at_most() -> None:
    steps = tuple(step for step in STEPS if step.family in ("passes", "storage", "packing"))
    every = combinations(steps, 2)
    assert len(every) == 1 + 7 + (4 * 2 + 4 + 2) and every[0] == ()
    assert all(len({step.family for step in chosen}) == len(chosen) <= 2 for chosen in every)
    assert len(combinations(steps, 3)) == 5 * 3 * 2
    assert changes_of(every[-1]).keys() < FIELDS.keys()
