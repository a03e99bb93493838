"""--vary: values and ranges of dimensions and options, and the command line with one of them."""

import itertools
from argparse import ArgumentTypeError, Namespace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.main import build_parser
from engine.cli.options.common import plan_options
from engine.cli.options.models import load_graph
from engine.cli.options.vary import Vary, check_names, vary, with_value
from engine.text.errors import OptionError
from tests.helpers.onnx.saved_models import save_perceptron


def asked(*words: str) -> Namespace:
    return build_parser().parse_args(["plan", *words])


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1))
def test_a_range_is_walked_by_doubling_from_one_end_to_the_other(one: int, other: int) -> None:
    low, high = sorted((one, other))
    varied = vary(f"batch={low}:{high}")
    assert varied == Vary("batch", low=low, high=high) and varied.is_range
    steps = list(map(int, varied.each))
    assert steps[0] == low and steps[-1] == high and steps == sorted(set(steps))
    assert all(after <= max(2 * before, 1) for before, after in itertools.pairwise(steps))


def test_values_keep_their_order_and_their_texts() -> None:
    assert vary(" batch = 8, 1,4") == Vary("batch", ("8", "1", "4"))
    assert vary("order=memory,given").each == ("memory", "given")
    assert vary("optimise=auto,0,3").each == ("auto", "0", "3")
    assert vary("parallel=none,colour:8").each == ("none", "colour:8")
    assert vary("budget=4 MiB,8MiB").each == ("4 MiB", "8MiB")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("batch", "write for example batch=1,8"),
        ("=1,2", "write for example batch=1,8"),
        ("batch=", "write for example batch=1,8"),
        ("batch=1,,2", "write for example batch=1,8"),
        ("batch=8:1", "no least and greatest length"),
        ("batch=1:x", "no least and greatest length"),
        ("batch=-1:4", "no least and greatest length"),
        ("batch=1:4,8", "no least and greatest length"),
        ("batch=1:9999999999", "no least and greatest length"),
        ("batch=1,2,1", "a value twice"),
        ("order=random", "invalid choice"),
        ("prepack=yes", "prepack is true or false"),
        ("alignment=x", "no integer from 1 on"),
        ("budget=much", "no size in bytes"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(text: str, words: str) -> None:
    with pytest.raises(ArgumentTypeError, match=words):
        vary(text)


def test_an_option_takes_the_value_as_its_flag_would() -> None:
    for name, value, words in (
        ("order", "memory", ("--order", "memory")),
        ("optimise", "2", ("--optimise", "2")),
        ("prepack", "false", ("--no-prepack",)),
        ("alignment", "128", ("--alignment", "128")),
        ("timeout", "2s", ("--timeout", "2s")),
    ):
        changed = with_value(asked("m.onnx"), name, value)
        assert plan_options(changed) == plan_options(asked("m.onnx", *words))
    assert with_value(asked("m.onnx"), "budget", "1 KiB").budget == 1024
    before = asked("m.onnx", "--store", "float16", "--no-views")
    assert plan_options(with_value(with_value(before, "store", "none"), "views", "true"))["store"] == ""
    assert plan_options(with_value(before, "views", "true"))["views"] is True


def test_a_length_takes_the_place_of_that_of_dim(tmp_path: Path) -> None:
    path = save_perceptron(tmp_path / "p.onnx", "batch")
    arguments = with_value(asked(str(path), "--dim", "batch=2"), "batch", "5")
    assert load_graph(arguments).inputs["x"].shape == (5, 8)
    with pytest.raises(OptionError, match="no length of a dimension"):
        with_value(arguments, "batch", "five")


def test_options_of_the_zoo_stand_behind_the_name() -> None:
    arguments = with_value(asked("zoo:squeezenet?image=64", "--dim", "batch=2"), "image", "32")
    assert str(arguments.file) == "zoo:squeezenet?image=32"
    arguments = with_value(arguments, "batch", "3")
    assert str(arguments.file) == "zoo:squeezenet?image=32&batch=3" and arguments.dim == []
    assert load_graph(arguments).inputs["x"].shape == (3, 3, 32, 32)


def test_a_name_is_varied_once() -> None:
    check_names([vary("batch=1,2"), vary("seq=1:8")])
    with pytest.raises(OptionError, match="'batch' twice"):
        check_names([vary("batch=1,2"), vary("batch=1:8")])
