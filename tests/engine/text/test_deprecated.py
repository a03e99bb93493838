"""Old public names: each still works, warns at the user's line, and names the new one."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine import Graph
from engine.cli.main import build_parser, main
from engine.onnx.embedded import PREFIX, texts_of
from engine.saved.replay import embed
from engine.text.deprecated import EXPORTS, FLAGS, KEYWORDS, METHODS, PROPERTIES, with_new_flags
from engine.text.errors import OptionError, UnknownOptionError


def fixed() -> Graph:
    graph = Graph("fixed")
    graph.output(ops.exp(graph.input("x", (2, 3))), "y")
    return graph


def open_batch() -> Graph:
    graph = Graph("open")
    graph.output(ops.exp(graph.input("x", ("batch", 3))), "y")
    return graph


@contextmanager
def deprecated(old: str, new: str) -> Iterator[None]:
    """Yields one warning, at a line of this file, that has both names."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert [(w.category, w.filename) for w in caught] == [(DeprecationWarning, __file__)]
    assert f"{old} is now called {new}" in str(caught[0].message)


KEYWORD_USES: dict[str, tuple[Graph, Any]] = {
    "bound": (fixed(), ("x",)),
    "bounds": (open_batch(), {"batch": (1, 4)}),
    "cache": (open_batch(), 3),
    "carried": (fixed(), None),
    "pack": (fixed(), False),
}


@pytest.mark.parametrize("old", KEYWORDS)
def test_an_old_keyword_of_compile_warns_and_does_what_the_new_one_does(old: str) -> None:
    (graph, value), feeds = KEYWORD_USES[old], {"x": np.ones((2, 3), np.float32)}
    old_option: dict[str, Any] = {old: value}
    new_option: dict[str, Any] = {KEYWORDS[old]: value}
    with deprecated(f"{old}=", f"{KEYWORDS[old]}="):
        exe = engine.compile(graph, optimise=0, **old_option)
    expected = engine.compile(graph, optimise=0, **new_option)
    np.testing.assert_array_equal(exe.run(feeds)["y"], expected.run(feeds)["y"])
    assert exe.plan.options == expected.plan.options


@pytest.mark.parametrize("old", ["bound", "carried", "pack"])
def test_an_old_keyword_of_make_plan_warns(old: str) -> None:
    graph, value = KEYWORD_USES[old]
    option: dict[str, Any] = {old: value}
    with deprecated(f"{old}=", f"{KEYWORDS[old]}="):
        engine.make_plan(graph, optimise=0, **option)


def test_an_old_keyword_beside_the_new_one_is_refused() -> None:
    both: dict[str, Any] = {"pack": False, "prepack": False}
    with pytest.warns(DeprecationWarning), pytest.raises(OptionError, match="pack= is the old name of prepack="):
        engine.compile(fixed(), optimise=0, **both)


def test_a_keyword_that_never_was_one_is_refused_with_the_new_names() -> None:
    wrong: dict[str, Any] = {"caller_buffer": ("x",)}
    with pytest.raises(UnknownOptionError, match="did you mean 'caller_buffers'"):
        engine.compile(fixed(), optimise=0, **wrong)


@pytest.mark.parametrize("old", EXPORTS)
def test_an_old_name_of_the_package_warns_and_is_the_new_one(old: str) -> None:
    with deprecated(f"engine.{old}", f"engine.{EXPORTS[old]}"):
        value = getattr(engine, old)
    assert value is getattr(engine, EXPORTS[old])


def test_the_package_has_no_other_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'store_to'"):
        getattr(engine, "store_to")  # noqa: B009 - mypy knows that the name does not exist


@pytest.mark.parametrize("old", METHODS)
def test_an_old_method_warns_and_returns_what_the_new_one_does(old: str) -> None:
    exe = engine.compile(open_batch(), length_ranges={"batch": (1, 4)}, optimise=0)
    exe(x=np.ones((2, 3), np.float32))
    with deprecated(f"Executable.{old}()", f"Executable.{METHODS[old]}()"):
        value = getattr(exe, old)()
    assert str(value) == str(getattr(exe, METHODS[old])())


@pytest.mark.parametrize("old", PROPERTIES)
def test_an_old_property_warns_and_is_the_new_one(old: str) -> None:
    graph = Graph()
    graph.output(ops.matmul(graph.input("x", (64, 64)), graph.constant(np.ones((64, 64), np.float32))), "y")
    exe = engine.compile(graph, backend="numba")
    with deprecated(f"Executable.{old}", f"Executable.{PROPERTIES[old]}"):
        value = getattr(exe, old)
    assert value == getattr(exe, PROPERTIES[old]) > 0


def test_old_flags_get_their_new_names_before_a_double_dash() -> None:
    lines: list[str] = []
    words = ["plan", "--bounds=n=1:2", "--no-pack", "--", "--bounds"]
    assert with_new_flags(words, lines.append) == ["plan", "--length-ranges=n=1:2", "--no-prepack", "--", "--bounds"]
    assert [line.split()[0] for line in lines] == ["--bounds", "--no-pack"]


@pytest.mark.parametrize(("old", "values"), [("--bounds", ["batch=1:2"]), ("--no-pack", [])])
def test_an_old_flag_works_and_writes_one_line_on_stderr(
    old: str, values: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "zoo:squeezenet?image=32", "--quiet"]
    assert main([*words, FLAGS[old], *values]) == 0
    expected = capsys.readouterr()
    assert main([*words, old, *values]) == 0
    shown = capsys.readouterr()
    assert _of_plan(shown.out) == _of_plan(expected.out) and expected.err == ""
    assert shown.err == f"arenaplan: {old} is now called {FLAGS[old]}; the old name will be removed\n"


def _of_plan(text: str) -> list[str]:
    """Returns the lines of a text, but for what is measured of the process, and the sum that it is in."""
    return [line for line in text.splitlines() if "measured:" not in line and "this process" not in line]


def test_no_help_text_shows_an_old_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(["plan", "--help"])
    words = capsys.readouterr().out.replace("[", " ").replace("]", " ").split()
    assert set(FLAGS.values()) <= set(words) and not set(FLAGS) & set(words)


def test_a_saved_plan_keeps_the_keys_of_its_format() -> None:
    """Files that were written before the names changed are read, and the other way round."""

    text = texts_of(embed(engine.make_plan(fixed(), caller_buffers=("x",), optimise=0)))[PREFIX + "options"]
    assert '"pack":true,"bound":["x"]' in text
