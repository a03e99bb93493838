"""Runs in stages by example: what is alive across a cut, budgets, errors; and the judge of what is handed over."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import engine
import ops
from engine import Executable, Graph, Var
from engine.check import check_handover
from engine.lower.calls import Storage
from engine.planning.placed import PlacedPlan
from engine.stages.segments import ReservedMemory
from engine.stages.stage import next_stage
from engine.text.errors import BudgetError, EngineError, FeedError, HandoverError, KernelError
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk
from ops.tensor.layout import Layout
from ops.tensor.spec import Array
from tests.helpers.graphs.staged_executors import in_segments, staged

SEEN: list[str] = []


def rows(count: int, width: int = 4) -> Array:
    return np.arange(1, count * width + 1, dtype=np.float32).reshape(count, width)


def noting(name: str) -> OpSchema:
    """Returns a schema of -x that notes its name in SEEN when it runs."""

    def infer(specs: Specs, _: Attrs) -> Specs:
        return specs

    def bind(call: Binding) -> Thunk:
        def run() -> None:
            SEEN.append(name)
            np.negative(call.x, call.y)

        return run

    return OpSchema(name, infer, (Kernel("numpy", bind),))


def positive(x: Var) -> Var:
    """Returns the rows whose first element is above nought: a cut."""
    kept: Var = ops.compress(x, ops.less(0.0, x[:, 0]), axis=0)
    return kept


def ran(build: Callable[[Graph, Var], None], *feeds: Array, **options: Any) -> tuple[Executable, dict[str, Array]]:
    """Returns a graph of "x" [n, 4] after a run for each of the feeds; the outputs of the last."""
    graph = Graph("cut")
    build(graph, graph.input("x", ("n", 4)))
    exe = engine.compile(graph, **options)
    outputs: dict[str, Array] = {}
    for x in feeds:
        outputs = exe.run({"x": x})
    return exe, outputs


def signs(*numbers: int) -> Array:
    """Returns rows with these first elements."""
    x = rows(len(numbers))
    x[:, 0] = numbers
    return x


def test_views_and_early_outputs_stay_alive_over_several_cuts() -> None:
    def build(graph: Graph, x: Var) -> None:
        early = ops.exp(x)
        graph.output(early, "early")
        turned = ops.transpose(early)[1:, ::-1]  # a view that is wanted only in the last stage
        once = positive(x)
        twice = positive(once - 4.0)
        graph.output(ops.reduce_sum(turned, (0, 1)) + ops.reduce_sum(twice, (0, 1)), "sum")
        graph.output(once[1:], "rest")
        graph.output(ops.reshape(early, (-1,)), "flat")

    x = signs(3, -1, 9, 0, 5)
    exe, outputs = ran(build, x)
    once = x[x[:, 0] > 0]
    twice = (once - 4)[once[:, 0] > 4]
    # Powers of e in compiled code differ from numpy's by two units in the last place at most.
    np.testing.assert_allclose(outputs["early"], np.exp(x), rtol=2.4e-7)
    np.testing.assert_array_equal(outputs["flat"], outputs["early"].reshape(-1))
    np.testing.assert_array_equal(outputs["rest"], once[1:])
    np.testing.assert_allclose(outputs["sum"][0, 0], np.exp(x)[:, 1:].sum() + twice.sum(), rtol=1e-6)
    assert len(exe.stages) == 3


def test_a_data_decided_size_may_be_zero() -> None:
    def build(graph: Graph, x: Var) -> None:
        some = positive(x)
        graph.output(ops.softmax(some @ rows(4, 3)), "y")
        graph.output(ops.reduce_sum(some, (0,), keepdims=True), "sum")
        graph.output(ops.nonzero(some), "places")

    for x in (signs(-1, -2), signs(), signs(0)):
        exe, outputs = ran(build, signs(1, 2, 3), x)
        assert outputs["y"].shape == (0, 3) and outputs["places"].shape == (2, 0)
        np.testing.assert_array_equal(outputs["sum"], np.zeros((1, 4)))
        assert exe.stage_report().stages


def test_a_deciding_tensor_may_be_an_output_and_an_input() -> None:
    graph = Graph("both")
    x, k = graph.input("x", ("n", 4)), graph.input("k", (), "int64")
    number = ops.count_nonzero(x)
    graph.output(number, "number")
    graph.output(ops.arange(number, number + k), "range")
    graph.output(x[:k] * 2.0, "front")
    graph.output(k, "k")
    exe = engine.compile(graph)
    for count, first in ((3, 2), (3, 0), (1, 1), (3, 2)):
        outputs = exe.run({"x": rows(count), "k": np.asarray(first)})
        assert outputs["number"] == 4 * count and outputs["k"] == first
        assert outputs["range"].tolist() == list(range(4 * count, 4 * count + first))
        np.testing.assert_array_equal(outputs["front"], rows(count)[:first] * 2)


def test_an_input_that_is_used_only_in_the_last_stage_waits_in_the_arena() -> None:
    graph = Graph("late")
    x, late = graph.input("x", ("n", 4)), graph.input("late", ("m", 4))
    graph.output(ops.concat([positive(x), late]), "y")
    exe = engine.compile(graph)
    mine = rows(2).copy()
    y = exe.run({"x": signs(1, -1), "late": mine})["y"]
    np.testing.assert_array_equal(y, np.concatenate([signs(1, -1)[:1], rows(2)]))
    assert "late" in exe.stages[1].plan.lowered.inputs


def test_a_shape_that_is_computed_element_by_element() -> None:
    graph = Graph("computed")
    x, shape = graph.input("x", ("n",)), graph.input("shape", (2,), "int64")
    half = ops.div(shape, np.asarray(2))
    dims: Any = [half[0], half[1]]
    graph.output(ops.exp(ops.reshape(x, dims)), "y")
    exe = engine.compile(graph)
    for rows_wanted, columns in ((2, 3), (3, 2), (6, 1)):
        outputs = exe.run({"x": np.ones(6, np.float32), "shape": np.array([2 * rows_wanted, 2 * columns])})
        assert outputs["y"].shape == (rows_wanted, columns)
    with pytest.raises(KernelError, match="stage 2 cannot run with"):
        exe.run({"x": np.ones(6, np.float32), "shape": np.array([8, 8])})
    assert exe.run({"x": np.ones(4, np.float32), "shape": np.array([4, 4])})["y"].shape == (2, 2)


def large(graph: Graph, x: Var) -> None:
    """Adds two stages: the second takes as much as the data want."""
    some = positive(graph.add(noting("first"), [x])[0] * -1.0)
    wide = graph.add(noting("second"), [some @ np.ones((4, 256), np.float32)])[0]
    graph.output(ops.reduce_sum(wide, (1,)), "y")


def test_too_little_room_in_a_late_stage_is_told_before_its_operators_run() -> None:
    exe, before = ran(large, signs(1, -1, -1), budget=8192)
    few, many = signs(1, -1, -1), signs(*range(1, 10))
    for _ in range(2):
        SEEN.clear()
        with pytest.raises(BudgetError, match="stage 2 of 'cut', before 'compress_0' runs: the plan needs") as error:
            exe.run({"x": many})
        assert SEEN == ["first"]
        assert error.value.available == 8192 and error.value.required == 2 * 9 * 256 * 4
        assert error.value.excess == error.value.required - 8192 and error.value.lower_bound > 8192
        np.testing.assert_array_equal(exe.run({"x": few})["y"], before["y"])
    assert SEEN == ["first", "first", "second"]


def test_a_budget_that_is_just_enough_is_enough() -> None:
    exe, wanted = ran(large, signs(1, 2, -1))
    needed = max(stage.plan.arena_bytes for stage in exe.stages)
    fitting, outputs = ran(large, signs(1, 2, -1), budget=needed)
    np.testing.assert_array_equal(outputs["y"], wanted["y"])
    assert isinstance(staged(fitting).memory, ReservedMemory)
    with pytest.raises(BudgetError):
        ran(large, signs(1, 2, -1), budget=needed - 1)


def test_too_little_room_in_the_first_stage_is_told_before_anything_runs() -> None:
    SEEN.clear()
    with pytest.raises(BudgetError, match="stage 1 of 'cut', before 'first_0' runs"):
        ran(large, rows(1000), budget=1024)
    assert SEEN == []


def test_a_kernel_that_fails_in_a_late_stage_is_named_and_the_next_run_is_right() -> None:
    def build(graph: Graph, x: Var) -> None:
        some = positive(x)
        graph.output(ops.gather(some, ops.cast(some[:, 1], "int64") - 1), "y")

    exe, _ = ran(build)
    with pytest.raises(KernelError, match=r"operator 'gather_0' failed on \(float32\[2,4\], int64\[2\]\)"):
        exe.run({"x": signs(1, 1)})  # row numbers that are none
    x = signs(1, 1)
    x[:, 1] = 2, 1
    np.testing.assert_array_equal(exe.run({"x": x})["y"], x[::-1])


def test_an_output_array_of_another_shape_is_refused_when_that_is_known() -> None:
    exe, outputs = ran(large, signs(1, 2, -1))
    out = np.empty_like(outputs["y"])
    with pytest.raises(FeedError, match=r"out='y' has shape \(2, 1\), but \(1, 1\) is expected"):
        exe.run({"x": signs(1, -1)}, out={"y": out})
    assert exe.run({"x": signs(4, 2)}, out={"y": out})["y"] is out


def test_a_run_of_several_stages_has_no_one_plan() -> None:
    exe, _ = ran(large, signs(1, 2))
    with pytest.raises(EngineError, match="2 stages; see `stages`"):
        _ = exe.plan


def kept_beside(graph: Graph, x: Var) -> None:
    graph.output(positive(ops.exp(x)) + x[:1], "y")


def two_plans() -> tuple[PlacedPlan, PlacedPlan, str]:
    """Returns plans of neighbouring stages, and the largest tensor that is handed over."""
    exe, _ = ran(kept_beside, signs(1, 2, 3))
    one, other = (stage.plan for stage in exe.stages)
    sizes = {n: other.lowered.values[v].spec.nbytes for n, v in other.lowered.inputs.items()}
    return one, other, max(sizes, key=lambda n: sizes[n])


def with_place(plan: PlacedPlan, value: int, **changes: Any) -> PlacedPlan:
    places = list(plan.places)
    places[value] = evolve(places[value], **changes)
    return evolve(plan, places=tuple(places))


def test_check_handover_passes_a_right_handover() -> None:
    one, other, _ = two_plans()
    check_handover(one, other)


def test_check_handover_finds_a_tensor_that_was_moved() -> None:
    one, other, name = two_plans()
    value = other.lowered.inputs[name]
    layout = other.places[value].layout
    moved = evolve(layout, offset=layout.offset + 64)
    with pytest.raises(HandoverError, match=f"tensor '{name}' is alive at .* and the next stage has it at"):
        check_handover(one, with_place(other, value, layout=moved))
    with pytest.raises(HandoverError, match="is alive at"):
        check_handover(with_place(one, one.lowered.outputs[name], layout=moved), other)


def test_check_handover_finds_a_tensor_with_other_strides_or_storage() -> None:
    one, other, name = two_plans()
    value = other.lowered.inputs[name]
    layout = other.places[value].layout
    turned = Layout(layout.offset, layout.shape, tuple(reversed(layout.strides)), layout.itemsize)
    for changes in ({"layout": turned}, {"storage": Storage.CONSTANT}):
        with pytest.raises(HandoverError, match="is alive at"):
            check_handover(one, with_place(other, value, **changes))


def test_check_handover_finds_a_tensor_that_was_not_left() -> None:
    one, other, name = two_plans()
    left = {n: v for n, v in one.lowered.outputs.items() if n != name}
    with pytest.raises(HandoverError, match=f"tensor '{name}' is taken to be alive, but the stage before did not"):
        check_handover(evolve(one, lowered=evolve(one.lowered, outputs=left)), other)


@pytest.mark.parametrize("changes", [{"dtype": np.dtype("int32")}, {"shape": (4, 3)}])
def test_check_handover_finds_a_tensor_taken_for_something_else(changes: dict[str, Any]) -> None:
    one, other, name = two_plans()
    values = list(other.lowered.values)
    value = other.lowered.inputs[name]
    values[value] = evolve(values[value], spec=evolve(values[value].spec, **changes))
    with pytest.raises(HandoverError, match=f"tensor '{name}' is left as float32"):
        check_handover(one, evolve(other, lowered=evolve(other.lowered, values=tuple(values))))


def test_a_number_that_is_made_of_what_data_decide_may_be_an_output() -> None:
    graph = Graph("number")
    x = graph.input("x", ("n", 4))
    dim: Any = graph.data_dim(ops.count_nonzero(x))
    graph.output(graph.constant(dim * 2 + x.shape[0]), "both")
    graph.output(graph.constant(x.shape[0] * 3), "length")
    exe = engine.compile(graph)
    for x_fed in (signs(0, 1), signs(2, 0, 0)):
        outputs = exe.run({"x": x_fed})
        assert outputs["both"] == 2 * np.count_nonzero(x_fed) + len(x_fed) and outputs["length"] == 3 * len(x_fed)


def test_decisions_about_data_are_checked_when_the_data_are_there() -> None:
    def build(graph: Graph, x: Var) -> None:
        some = positive(x)
        graph.output((some if some.shape[0] > 2 else some * 2.0) + 1.0, "y")

    exe, outputs = ran(build, signs(1, 2, 3, -1))
    np.testing.assert_array_equal(outputs["y"], signs(1, 2, 3, -1)[:3] + 1)
    with pytest.raises(
        KernelError, match="stage 2 cannot run with count_nonzero_0=2: count_nonzero_0 must be greater than 2, but"
    ):
        exe.run({"x": signs(1, 2, -1)})
    assert exe.run({"x": signs(1, 2, 3, -1)})["y"].shape == (3, 4)


def test_threads_take_turns_in_a_staged_run() -> None:
    def build(graph: Graph, x: Var) -> None:
        some = positive(x)
        graph.output(some, "y")
        graph.output(ops.transpose(some), "turned")

    exe, _ = ran(build)
    wrong: list[int] = []

    def work(number: int) -> None:
        for turn in range(20):
            x = np.random.default_rng(20 * number + turn).standard_normal((number + 3, 4)).astype(np.float32)
            outputs, wanted = exe.run({"x": x}), x[x[:, 0] > 0]
            if not np.array_equal(outputs["y"], wanted) or not np.array_equal(outputs["turned"], wanted.T):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_judge_sees_what_every_stage_takes_over() -> None:
    exe, _ = ran(large, signs(1, 2, -1))
    first, executor = exe.stages[0], staged(exe)
    moved = {var: evolve(held, offset=held.offset + 64) for var, held in first.after.alive.items()}
    wrong = evolve(first, after=evolve(first.after, alive=moved, top=first.after.top + 64))
    with pytest.raises(HandoverError, match="is alive at"):
        next_stage(executor.template, wrong, executor.history[0], executor.terms)


def test_runs_in_segments_use_those_that_there_are() -> None:
    exe, _ = ran(large)
    executor = staged(in_segments(exe))
    for x in (signs(1, -1), signs(*range(1, 9)), signs(1, -1)):
        (lent,) = executor.run({"x": x}, {}, False).values()
        assert executor.memory.contains(lent) and len(lent) == (x[:, 0] > 0).sum()
