"""ONNX files with a plan in them: read back, run by onnxruntime, and passed by onnx's checker."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import engine
from engine import Graph
from engine.onnx.embedded import PREFIX
from engine.text.errors import ModelError, OptionError, OtherPlanError, PlanRefusedError
from tests.engine.saved.test_replay import no_solver
from tests.helpers.graphs.layered_networks import layered_graphs
from tests.helpers.graphs.random_graphs import seeded
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.onnx.onnx_writer import to_onnx
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, value

HOSTILE = "\"'</script><script>alert(1)</script>\n" + "y" * 10_000


def saved(folder: Path, proto: Any, **options: Any) -> Path:
    """Returns the path of a new file with the model and a plan of it."""
    onnx.save(proto, folder / "model.onnx")
    graph = engine.load_onnx(folder / "model.onnx")
    engine.save_plan(engine.make_plan(graph, optimise=0, **options), folder / "model.onnx", folder / "planned.onnx")
    return folder / "planned.onnx"


def small(name: str = "h", **options: Any) -> Any:
    nodes = [node("MatMul", ["x", "w"], [name], name="first"), node("Relu", [name], ["y"])]
    inputs, weights = [value("x", (2, 3))], {"w": np.ones((3, 4), np.float32)}
    return model(nodes, inputs, initializers=weights, **options)


def ours(message: Any) -> dict[str, str]:
    return {p.key.removeprefix(PREFIX): p.value for p in message.metadata_props if p.key.startswith(PREFIX)}


@pytest.mark.slow
@given(layered_graphs())
@settings(max_examples=15, deadline=None)
def test_a_model_with_a_plan_computes_the_same_and_runs_with_it(tmp_path_factory: Any, graph: Graph) -> None:
    plain = to_onnx(graph)
    path = saved(tmp_path_factory.mktemp("saved"), plain)
    planned = onnx.load(path)
    onnx.checker.check_model(planned)
    feeds = random_feeds(graph)
    for one, other in zip(run_onnxruntime(planned, feeds), run_onnxruntime(plain, feeds), strict=True):
        assert np.array_equal(one, other)
    again, before = engine.load_onnx(path), engine.compile(engine.load_onnx(plain), optimise=0)
    with no_solver():
        exe = engine.compile(again, embedded=engine.load_plan(path, required=True), optimise=0)
    assert exe.plan.is_followed
    wanted = before.run(feeds)
    assert all(np.array_equal(array, wanted[name]) for name, array in exe.run(feeds).items())


def test_the_same_plan_gives_the_same_bytes_and_can_be_saved_over_another(tmp_path: Path) -> None:
    path = saved(tmp_path, small())
    first = path.read_bytes()
    assert saved(tmp_path, small()).read_bytes() == first
    plan = engine.make_plan(engine.load_onnx(path), embedded=engine.load_plan(path), optimise=0)
    engine.save_plan(plan, path, path)
    assert path.read_bytes() == first
    engine.save_plan(engine.make_plan(engine.load_onnx(path), alignment=16, optimise=0), path, path)
    entries = ours(onnx.load(path))
    assert '"alignment":16' in entries["options"] and len(entries) == 11


def test_saving_a_plan_changes_nothing_else_of_an_onnx_model(tmp_path: Path) -> None:
    proto = small()
    proto.metadata_props.add(key="author", value="somebody")
    reread = onnx.load(saved(tmp_path, proto))
    for message in (reread, *reread.graph.node, *reread.graph.input, *reread.graph.output):
        for at in reversed(range(len(message.metadata_props))):
            if message.metadata_props[at].key.startswith(PREFIX):
                del message.metadata_props[at]
    assert reread == proto


def test_viewers_are_told_of_nodes_and_values_where_the_model_has_room_for_that(tmp_path: Path) -> None:
    proto = small()
    assert proto.ir_version == 8
    old = onnx.load(saved(tmp_path, proto))
    assert not any(ours(m) for m in (*old.graph.node, *old.graph.input, *old.graph.output))
    proto.ir_version = 10
    reread = onnx.load(saved(tmp_path, proto))
    assert ours(reread.graph.node[0])["outputs"] == '{"h":{"bytes":[0,32],"ticks":[1,3]}}'
    assert ours(reread.graph.input[0]) == {"offset": "64", "bytes": "24", "ticks": "[0, 2)"}
    plan = engine.make_plan(engine.load_onnx(reread), embedded=engine.load_plan(reread), optimise=0)
    assert plan.is_followed and plan.arena_bytes == int(ours(reread)["arena_bytes"])


def test_hostile_names_of_a_saved_onnx_plan_are_read_back(tmp_path: Path) -> None:
    proto = small(HOSTILE)
    proto.ir_version = 10
    path = saved(tmp_path, proto)
    plan = engine.make_plan(engine.load_onnx(path), embedded=engine.load_plan(path, required=True), optimise=0)
    assert plan.is_followed and any(v.name == HOSTILE for v in plan.lowered.values)


def test_weights_in_files_of_their_own_stay_there(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    proto, source = small(), tmp_path / "model.onnx"
    onnx.save(proto, source, save_as_external_data=True, location="w.bin", size_threshold=0)
    plan = engine.make_plan(engine.load_onnx(source), optimise=0)
    engine.save_plan(plan, source, tmp_path / "planned.onnx")
    assert len((tmp_path / "planned.onnx").read_bytes()) < len(source.read_bytes()) + 4_000
    exe = engine.compile(
        engine.load_onnx(tmp_path / "planned.onnx"), embedded=engine.load_plan(tmp_path / "planned.onnx"), optimise=0
    )
    assert np.array_equal(exe(x=np.ones((2, 3), np.float32))["y"], np.full((2, 4), 3, np.float32))
    target = tmp_path / "other" / "planned.onnx"
    with pytest.raises(OptionError, match=r"weights lie in 'w\.bin' beside .*: save the plan there, or copy that file"):
        engine.save_plan(plan, source, target)
    assert list(target.parent.iterdir()) == []
    (target.parent / "w.bin").write_bytes((tmp_path / "w.bin").read_bytes())
    engine.save_plan(plan, source, target)
    assert engine.load_plan(target) is not None


def test_a_file_with_weights_is_never_written_over(tmp_path: Path) -> None:
    proto, source = small(), tmp_path / "model.onnx"
    onnx.save(proto, source, save_as_external_data=True, location="w.bin", size_threshold=0)
    weights, other = tmp_path / "w.bin", tmp_path / "other"
    plan, before = engine.make_plan(engine.load_onnx(source), optimise=0), weights.read_bytes()
    other.mkdir()
    (other / "w.bin").write_bytes(before)
    (tmp_path / "link.onnx").symlink_to(weights)
    (tmp_path / "hard.onnx").hardlink_to(weights)
    for target in (weights, other / "w.bin", tmp_path / "link.onnx", tmp_path / "hard.onnx", other / ".." / "w.bin"):
        with pytest.raises(OptionError, match=r"the weights of .*model\.onnx lie in .*: save the plan under another"):
            engine.save_plan(plan, source, target)
        assert weights.read_bytes() == before == target.read_bytes()
    engine.save_plan(plan, source, source)  # onto the model itself, which is read whole before
    assert engine.load_plan(source, required=True) is not None and weights.read_bytes() == before


def test_saved_plans_go_with_their_own_onnx_models(tmp_path: Path) -> None:
    path = saved(tmp_path, small())
    other = Graph("other")
    other.output(other.input("z", (3,)), "z_out")
    with pytest.raises(OptionError, match="the plan of 'other' is none of the model in"):
        engine.save_plan(engine.make_plan(other, optimise=0), path, path)
    with pytest.raises(ModelError, match="there is no such file"):
        engine.load_plan(tmp_path / "nothing.onnx")
    assert engine.load_plan(tmp_path / "model.onnx") is None
    with pytest.raises(OtherPlanError, match=r"model\.onnx carries no plan, and one is required"):
        engine.load_plan(tmp_path / "model.onnx", required=True)


def test_models_with_sequences_carry_plans(tmp_path: Path) -> None:
    sequence = helper.make_tensor_sequence_value_info
    nodes = [
        node("SequenceEmpty", [], ["e"]),
        node("ConcatFromSequence", ["s"], ["h"], axis=0),
        node("Relu", ["h"], ["y"]),
        node("SequenceConstruct", ["y", "h"], ["t"]),
    ]
    inputs, outputs = [sequence("s", TensorProto.FLOAT, ["n", 3])], [sequence(n, TensorProto.FLOAT, None) for n in "et"]
    graph = helper.make_graph(nodes, "g", inputs, [*outputs, value("y", None)])
    path, shapes = tmp_path / "model.onnx", {"s[0]": (2, 3), "s[1]": (1, 3)}
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    plan = engine.make_plan(engine.load_onnx(path, shapes=shapes), optimise=0)
    engine.save_plan(plan, path, path)
    with no_solver():
        again = engine.make_plan(
            engine.load_onnx(path, shapes=shapes), embedded=engine.load_plan(path, required=True), optimise=0
        )
    assert again.arena_bytes == plan.arena_bytes


def test_another_model_under_the_same_plan_is_planned_anew(tmp_path: Path) -> None:
    proto = onnx.load(saved(tmp_path, small()))
    proto.graph.node[1].op_type = "Tanh"
    embedded = engine.load_plan(proto)
    plan = engine.make_plan(engine.load_onnx(proto), embedded=embedded, optimise=0)
    assert (
        plan.origin == "made anew: the plan in the model is for other operators: another model, or other passes over it"
    )


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    proto = onnx.load(saved(tmp_path, small()))
    proto.metadata_props.add(key=f"{PREFIX}offsets", value="[]")
    with pytest.raises(
        PlanRefusedError, match=r"the plan in the model: metadata 'pkg\.arenaplan\.offsets' is there twice"
    ):
        engine.load_plan(proto)


@given(st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_flipped_bytes_of_a_file_give_an_error_or_the_same_numbers(tmp_path_factory: Any, seed: int) -> None:
    folder = tmp_path_factory.mktemp("flipped")
    path, choose = saved(folder, small()), seeded(seed)
    content = bytearray(path.read_bytes())
    low = content.index(PREFIX.encode())
    content[low + choose(len(content) - low)] ^= 1 << choose(8)
    path.write_bytes(content)
    feeds = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    try:
        exe = engine.compile(engine.load_onnx(path), embedded=engine.load_plan(path), optimise=0)
    except (ModelError, PlanRefusedError) as error:
        assert "\n" not in str(error)
        return
    assert np.array_equal(exe.run(feeds)["y"], np.repeat([[3], [12]], 4, axis=1).astype(np.float32))
