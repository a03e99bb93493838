"""Networks whose operators may run at once: what each policy needs, that it is safe, and the same bits under stress."""

import random

import pytest
from threadpoolctl import threadpool_limits

import engine
from engine.executor.arenas import new_arena
from engine.executor.parallel import ParallelExecutor
from engine.report.parallelism import parallelism
from ops.convolution.packed import has_avx512
from tests.engine.planning.test_policies import at_once, is_refused
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds
from tests.helpers.onnx.light_models import QUICK, light_graph, slow
from tests.helpers.ops.delayed_kernels import delay

COLOURS = ("colour:1", "colour:4", "colour:8")
POLICIES = ("exact", *COLOURS, "levels", "edges")
RUNS = 34
"""By each policy: some 200 of each network on each number of threads."""


@pytest.mark.parametrize("name", [*QUICK, *slow("inception_v1", "inception_v2", "densenet121", "resnet50")])
def test_a_network_is_safe_by_each_policy_and_exact_is_smallest(name: str) -> None:
    """`make_plan` lets both judges look. DenseNet has nothing that could run at once: its operators are a chain."""
    graph = light_graph(name)
    sequence = engine.make_plan(graph, nest=False, optimise=0)
    plans = {policy: engine.make_plan(graph, parallel=policy, optimise=0) for policy in POLICIES}
    for policy in ("exact", *COLOURS):
        assert not is_refused(at_once(plans[policy]))
        assert plans["exact"].arena_bytes <= plans[policy].arena_bytes
    for policy in ("exact", "levels", "edges"):
        assert plans[policy].arena_bytes == plans[policy].plan.lower_bound
    assert plans["edges"].arena_bytes == sequence.arena_bytes <= plans["exact"].arena_bytes
    assert plans["levels"].arena_bytes <= plans["exact"].arena_bytes
    has_branches = parallelism(plans["exact"]).by_count > 1
    assert has_branches == (name != "densenet121")
    # Without AVX-512 its convolutions have larger workspaces, and by chance none lies where it may not.
    lucky = name == "squeezenet" and not has_avx512()
    assert is_refused(at_once(sequence)) == (has_branches and not lucky)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", QUICK)
def test_a_network_keeps_its_bits_however_late_kernels_are(name: str, policy: str) -> None:
    """With one thread for BLAS in either run: it cuts its sums by the number of its threads."""
    graph = light_graph(name)
    feeds = [random_feeds(graph, seed) for seed in range(2)]
    with threadpool_limits(1):
        wanted = [engine.compile(graph, optimise=0).run(feed) for feed in feeds]
        plan = engine.make_plan(graph, parallel=policy, optimise=0)
        for threads in (2, 3, 5, 8):
            executor = ParallelExecutor(plan, new_arena(plan), threads)
            plain, rng = tuple(executor.thunks), random.Random(threads)
            for run in range(RUNS):
                executor.thunks[:] = plain
                delay(executor, rng)
                executor.arena.fill(0xA5)
                assert_same(executor.run(feeds[run % 2], {}, copy=True), wanted[run % 2])
