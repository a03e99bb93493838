"""A partition that runs gives the bits of one process, whatever happens to its workers."""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine import zoo
from engine.graph.graph import Graph
from engine.partitions.actor import State, forget, run_part
from engine.partitions.partition import partition
from engine.partitions.pipeline import Pipeline, pipeline
from engine.system.arrays import random_arrays
from engine.text.errors import EngineError, FeedError, OptionError
from engine.workers.place import WorkerError
from ops.tensor.spec import Array
from tests.helpers.graphs.branching import branching_graph
from tests.helpers.workers.ends import free_port

Feeds = dict[str, Array]


def _feeds(graph: Graph, number: int) -> list[Feeds]:
    return [random_arrays({name: v.spec for name, v in graph.inputs.items()}, seed) for seed in range(number)]


def _tokens(number: int) -> list[Feeds]:
    return [{"ids": np.array([[37 * i]]), "position": np.array([i])} for i in range(number)]


def _counting() -> Graph:
    """Returns a graph with a running sum in a parameter, between operators with weights."""
    graph = Graph("counting")
    rng = np.random.default_rng(0)
    first, last = (graph.constant(rng.standard_normal((16, 16)).astype(np.float32)) for _ in range(2))
    total = graph.parameter(np.zeros((4, 16), np.float32), "total", trainable=False)
    held = graph.assign(total, total + ops.tanh(graph.input("x", (4, 16)) @ first))
    graph.output(ops.sigmoid(held @ last), "y")
    return graph


def _check(graph: Graph, feeds: list[Feeds], pipe: Pipeline, results: Iterator[Feeds]) -> None:
    alone = engine.compile(graph)
    for number, result in enumerate(results):
        wanted = alone.run(feeds[number])
        assert {name: array.tobytes() for name, array in result.items()} == {n: a.tobytes() for n, a in wanted.items()}
    assert number + 1 == len(feeds)
    assert all(array.tobytes() == alone.parameters[name].tobytes() for name, array in pipe.parameters.items())


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_parts_in_this_process_give_the_bits_of_the_whole(seed: int, parts: int) -> None:
    graph = branching_graph(seed, 12)
    feeds = _feeds(graph, 4)
    with pipeline(partition(graph, ["1MiB"] * parts, "throughput"), on="here") as pipe:
        _check(graph, feeds, pipe, pipe.map(feeds, ahead=3))


def test_parameters_are_kept_from_run_to_run() -> None:
    graph = _counting()
    feeds = _feeds(graph, 4)
    with pipeline(partition(graph, ["1MiB"] * 2, "throughput"), on="here") as pipe:
        _check(graph, feeds, pipe, iter([pipe.run(fed) for fed in feeds]))


def _kill(pipe: Pipeline, part: int) -> None:
    seat: Any = pipe._actors[part].seat
    for worker in seat._all:
        for pid in [*worker.pool._processes] if worker is not None else []:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_part_whose_worker_is_killed_goes_on_from_its_state() -> None:
    graph = _counting()
    feeds = _feeds(graph, 8)
    with pipeline(partition(graph, ["1MiB"] * 2, "throughput")) as pipe:
        results = pipe.map(feeds)

        def killing() -> Iterator[Feeds]:
            for number, result in enumerate(results):
                if number in (2, 4):
                    _kill(pipe, number // 4)
                yield result

        _check(graph, feeds, pipe, killing())


@pytest.mark.slow
@pytest.mark.parametrize("parts", [2, 3, 4])
def test_gpt2_in_parts_gives_the_bits_of_one_process(parts: int) -> None:
    graph, feeds = zoo.gpt2(), _tokens(6)
    with pipeline(partition(graph, ["700MiB"] * parts, "throughput")) as pipe:
        _check(graph, feeds, pipe, pipe.map(feeds))


@pytest.mark.slow
def test_workers_that_are_killed_at_random_lose_nothing() -> None:
    graph, rng = branching_graph(5, 14), random.Random(5)
    feeds = _feeds(graph, 60)
    with pipeline(partition(graph, ["1MiB"] * 3, "throughput")) as pipe:

        def killing() -> Iterator[Feeds]:
            for number, result in enumerate(pipe.map(feeds)):
                if number % 10 == 5:
                    _kill(pipe, rng.randrange(3))
                yield result

        _check(graph, feeds, pipe, killing())


@pytest.mark.slow
def test_a_pipeline_on_a_cluster_survives_the_death_of_a_worker(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from tests.helpers.workers.cluster import cluster  # noqa: PLC0415 - it needs the package

    graph = _counting()
    feeds = _feeds(graph, 10)
    with cluster(tmp_path, 3) as started:
        started.wait_for_workers()
        with pipeline(partition(graph, ["1MiB"] * 2, "throughput"), on=started.on) as pipe:

            def killing() -> Iterator[Feeds]:
                for number, result in enumerate(pipe.map(feeds)):
                    if number == 4:
                        os.kill(started.workers[0].pid, signal.SIGKILL)
                    yield result

            _check(graph, feeds, pipe, killing())


def test_a_scheduler_that_cannot_be_reached_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("engine.workers.dask.connect.__defaults__", (0.5,))
    result = partition(_counting(), ["1MiB"] * 2)
    with (
        pytest.raises(WorkerError, match="no Dask scheduler answers") as raised,
        pipeline(result, on=f"dask://127.0.0.1:{free_port()}"),
    ):
        pass
    assert "\n" not in str(raised.value)


def test_a_run_behind_the_block_starts_no_workers() -> None:
    graph = _counting()
    with pipeline(partition(graph, ["1MiB"] * 2, "throughput"), on="here") as pipe:
        pass
    with pytest.raises(EngineError, match="has ended"):
        pipe.run(_feeds(graph, 1)[0])


def test_a_folder_that_is_none_is_one_line(tmp_path: Path) -> None:
    result = partition(_counting(), ["1MiB"] * 2)
    with pytest.raises(OptionError, match="no file can be written there"), pipeline(result, folder=tmp_path / "none"):
        pass


def test_a_process_that_does_not_have_a_part_says_so() -> None:
    assert run_part("nobody", {}, State(0, {}), None, ()) is None


def test_a_machine_that_does_not_have_the_files_is_sent_the_part(tmp_path: Path) -> None:
    graph = _counting()
    feeds = _feeds(graph, 3)
    with pipeline(partition(graph, ["1MiB"] * 2, "throughput"), on="here") as pipe:
        for actor in pipe._actors:
            actor.spool = tmp_path / "elsewhere"
        _check(graph, feeds, pipe, pipe.map(feeds))


@pytest.mark.slow
def test_parts_are_in_a_folder_while_the_pipeline_is_open(tmp_path: Path) -> None:
    graph = _counting()
    with pipeline(partition(graph, ["1MiB"] * 2, "throughput"), folder=tmp_path) as pipe:
        (root,) = tmp_path.iterdir()
        assert sorted(path.name for path in root.iterdir()) == ["0", "1", "weights"]
        feeds = _feeds(graph, 2)
        _check(graph, feeds, pipe, pipe.map(feeds))
    assert not list(tmp_path.iterdir())


def test_a_part_that_its_process_lost_is_sent_again_with_its_state() -> None:
    graph = _counting()
    feeds = _feeds(graph, 6)
    with pipeline(partition(graph, ["1MiB"] * 2, "throughput"), on="here") as pipe:

        def losing() -> Iterator[Feeds]:
            for result in pipe.map(feeds):
                for actor in pipe._actors:
                    forget(actor.key)
                yield result

        _check(graph, feeds, pipe, losing())


def test_what_does_not_fit_is_told_as_in_one_process() -> None:
    with pipeline(partition(_counting(), ["1MiB"] * 2), on="here") as pipe:
        with pytest.raises(FeedError, match="input 'x' is missing"):
            pipe.run({})
        with pytest.raises(EngineError, match="open it again"):
            pipe.run(_feeds(_counting(), 1)[0])


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"on": "nowhere"}, "no place to run tasks"),
        ({"threads": -1}, "threads -1"),
        ({"threads": True}, "threads True"),
    ],
)
def test_options_that_make_no_sense_are_told(asked: dict[str, Any], says: str) -> None:
    result = partition(_counting(), ["1MiB"] * 2)
    with pytest.raises(OptionError, match=says), pipeline(result, **asked):
        pass


def test_an_ahead_that_is_no_number_is_told() -> None:
    with pipeline(partition(_counting(), ["1MiB"]), on="here") as pipe, pytest.raises(OptionError, match="ahead -1"):
        pipe.map([], ahead=-1)
