"""Batches through one network: order, bits, back-pressure, deaths, and what is refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arenaplan as ap
from engine.batch_runs.map import map_batches
from engine.text.errors import FeedError, OptionError
from ops.tensor.spec import Array
from tests.helpers.onnx.saved_models import save_perceptron


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save_perceptron(tmp_path / "perceptron.onnx", 4)


def batches(count: int) -> list[Array]:
    return [np.random.default_rng(i).normal(size=(4, 8)).astype(np.float32) for i in range(count)]


def outputs_of(model: Path, arrays: list[Array]) -> list[Array]:
    exe = ap.compile(ap.load_onnx(model), threads=1)
    return [exe.run({"x": array})["y"] for array in arrays]


def test_outputs_come_in_order_and_have_the_bits_of_one_process(model: Path) -> None:
    arrays = batches(9)
    wanted = outputs_of(model, arrays)
    for network in (model, ap.load_onnx(model), ap.compile(ap.load_onnx(model), threads=1)):
        results = [outputs["y"] for outputs in ap.map(network, arrays, on="here")]
        assert all(map(np.array_equal, results, wanted)) and len(results) == len(wanted)


@pytest.mark.slow
def test_two_processes_give_the_same(model: Path) -> None:
    arrays = batches(9)
    results = [outputs["y"] for outputs in ap.map(model, ({"x": a} for a in arrays), workers=2)]
    assert all(map(np.array_equal, results, outputs_of(model, arrays))) and len(results) == 9


def test_an_executor_of_the_caller_stays_open(model: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        arrays = batches(4)
        results = [outputs["y"] for outputs in ap.map(model, arrays, on=pool)]
        assert all(map(np.array_equal, results, outputs_of(model, arrays)))
        assert pool.submit(abs, -1).result() == 1


@pytest.mark.parametrize("ahead", [1, 3])
def test_no_more_batches_are_read_than_are_taken_and_ahead(model: Path, ahead: int) -> None:
    read = 0

    def source() -> Iterator[Array]:
        nonlocal read
        for array in batches(12):
            read += 1
            yield array

    with ThreadPoolExecutor(2) as pool:
        for taken, _ in enumerate(ap.map(model, source(), on=pool, ahead=ahead)):
            assert read <= taken + ahead + 1
    assert read == 12


def test_files_are_removed_when_the_caller_stops_early(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    outputs = ap.map(model, batches(5), on="here", folder=folder)
    next(outputs)
    assert len(list(folder.iterdir())) == 1
    outputs.close()  # type: ignore[attr-defined]
    assert not list(folder.iterdir())


def test_an_error_of_a_batch_is_raised_in_its_turn(model: Path) -> None:
    first, *_ = arrays = [*batches(1), np.zeros((4, 9), np.float32), *batches(1)]
    outputs = ap.map(model, arrays, on="here")
    assert np.array_equal(next(outputs)["y"], outputs_of(model, [first])[0])
    with pytest.raises(FeedError, match="9"):
        next(outputs)


def test_blocks_of_a_dask_array_are_batches(model: Path) -> None:
    dask = pytest.importorskip("dask.array")
    rows = np.concatenate(batches(3))
    results = [outputs["y"] for outputs in ap.map(model, dask.from_array(rows, chunks=(4, 8)), on="here")]
    assert all(map(np.array_equal, results, outputs_of(model, list(rows.reshape(3, 4, 8)))))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on": "moon"}, "no place to run tasks"),
        ({"ahead": -1}, "from 0"),
        ({"threads": 0}, "from 1"),
        ({"stratgy": "best"}, "did you mean 'strategy'"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(model: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        map_batches(model, [], **options)


def test_options_of_an_executable_are_those_that_it_was_compiled_with(model: Path) -> None:
    with pytest.raises(OptionError, match="leave out strategy"):
        ap.map(ap.compile(ap.load_onnx(model)), [], strategy="best")


def test_a_batch_without_names_needs_a_network_with_one_input() -> None:
    graph = ap.Graph("two")
    graph.output(graph.input("a", (2,)) + graph.input("b", (2,)), "y")
    with pytest.raises(FeedError, match="2 inputs: a, b"):
        next(iter(ap.map(graph, [np.zeros(2, np.float32)], on="here")))
