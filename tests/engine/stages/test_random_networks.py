"""Random networks whose data decide sizes, in stages: numpy's bits in every mode, and nothing alive ever moves."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import Executable
from engine.stages.stage_runner import StageRunner
from ops.tensor.layout import address_of
from ops.tensor.spec import Array
from tests.helpers.graphs.random_graphs import seeded
from tests.helpers.graphs.staged_executors import in_segments, staged
from tests.helpers.graphs.staged_networks import Net, build_net, feeds_for, nets

SEEDS = st.integers(0, 10**6)
MODES: tuple[dict[str, Any], ...] = ({}, {"mode": "dynamic"}, {"debug": "poison"}, {"budget": "1 MiB"})


def check(exe: Executable, net: Net, seed: int) -> None:
    feeds = feeds_for(seed)
    outputs = exe.run(feeds)
    for name, wanted in net.wanted(feeds).items():
        assert outputs[name].shape == wanted.shape
        np.testing.assert_array_equal(outputs[name], wanted, name)


def check_addresses(exe: Executable) -> None:
    """Checks that what a stage takes over lies where the stage before left it, as the judge was told."""
    left: dict[str, Array] = {}
    runners = {entry.stage: runner for entry, runner in staged(exe)._runners.items()}
    for stage in exe.stages:
        runner = runners[stage]
        if not isinstance(runner, StageRunner):  # the only stage, made from another one: nothing is taken over
            assert exe.stages == (stage,)
            break
        for name in left.keys() & stage.plan.lowered.inputs.keys():
            here = runner.array(stage.plan.lowered.inputs[name])
            assert address_of(here) == address_of(left[name]) or not here.size
            assert here.shape == left[name].shape and here.dtype == left[name].dtype
        assert stage.number == 1 or set(stage.plan.lowered.inputs) <= left.keys()
        left = {name: runner.array(value) for name, value in stage.plan.lowered.outputs.items()}


@pytest.mark.parametrize("seed", [0, 4, 10, 13, 14, 18, 31, 37])
def test_a_watched_run_needs_no_less_than_one_plan_that_knew_all_sizes(seed: int) -> None:
    """Both have guards behind all tensors, also behind those that stay alive from stage to stage."""
    exe = engine.compile(build_net(seeded(seed)).graph, debug="poison")
    exe.run(feeds_for(1))
    report = exe.stage_report()
    assert len(report.stages) > 1 and report.loss >= 0


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(nets(), st.lists(SEEDS, min_size=1, max_size=3))
def test_staged_networks_equal_numpy_and_move_no_live_tensor(net: Net, seeds: list[int]) -> None:
    for exe in (engine.compile(net.graph), in_segments(engine.compile(net.graph))):
        for seed in seeds:
            check(exe, net, seed)
            check_addresses(exe)


@pytest.mark.slow
@pytest.mark.parametrize("alignment", [1, 4, 16, 256])
def test_live_tensors_keep_any_alignment_and_that_of_their_elements(alignment: int) -> None:
    for seed in range(8):
        net = build_net(seeded(seed), 12)
        check(engine.compile(net.graph, alignment=alignment), net, seed)


@settings(max_examples=15, deadline=None)
@given(nets(5), SEEDS, st.sampled_from(MODES[1:]))
def test_staged_networks_equal_numpy_in_every_mode(net: Net, seed: int, mode: dict[str, Any]) -> None:
    exe = engine.compile(net.graph, **mode)
    for number in (seed, seed + 1):
        check(exe, net, number)


@settings(max_examples=15, deadline=None)
@given(nets(), SEEDS)
def test_staged_runs_of_the_same_data_need_no_plan_again(net: Net, seed: int) -> None:
    exe = engine.compile(net.graph)
    check(exe, net, seed)
    before, stages = exe.stage_report().cache, exe.stages
    check(exe, net, seed)
    again = exe.stage_report().cache
    assert exe.stages == stages and again.misses == before.misses
    assert again.hits == before.hits + len(stages)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(nets(), st.lists(SEEDS, min_size=2, max_size=4))
def test_few_plans_are_kept_and_outputs_stay_right(net: Net, seeds: list[int]) -> None:
    """Stages are thrown out of the cache while others of the same run stay there."""
    exe = engine.compile(net.graph, plan_cache_size=2)
    for seed in (*seeds, *seeds):
        check(exe, net, seed)
        assert exe.stage_report().cache.plans <= 2


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(nets(), SEEDS)
def test_outputs_may_stay_in_the_arena_until_the_next_run(net: Net, seed: int) -> None:
    exe, feeds = engine.compile(net.graph), feeds_for(seed)
    wanted = net.wanted(feeds)
    for name, array in exe.run(feeds, copy=False).items():
        np.testing.assert_array_equal(array, wanted[name])
    feeds = feeds_for(seed + 1)
    given_out = {n: np.empty_like(a) for n, a in net.wanted(feeds).items()}
    outputs = exe.run(feeds, out=given_out)
    for name, wanted_array in net.wanted(feeds).items():
        assert outputs[name] is given_out[name]
        np.testing.assert_array_equal(outputs[name], wanted_array)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["reserved", "segments", "dynamic", "poison", "budget"])
def test_many_staged_networks_equal_numpy(kind: str) -> None:
    mode = {"dynamic": MODES[1], "poison": MODES[2], "budget": MODES[3]}.get(kind, {})
    for seed in range(20 if kind == "poison" else 120):
        net = build_net(seeded(seed), 12)
        exe = engine.compile(net.graph, **mode)
        exe = in_segments(exe) if kind == "segments" else exe
        for number in range(3):
            check(exe, net, 3 * seed + number)
            if kind in ("reserved", "segments"):
                check_addresses(exe)
