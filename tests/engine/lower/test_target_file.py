"""Files of targets: what they mean, and one clear error for each mistake."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.lower.target import HOST, NONE, Target, Workspace
from engine.lower.target_file import as_target, read_target
from engine.text.errors import OptionError

GOOD = """name = "cortex-m7"
[[workspace]]
operator = "softmax"
bytes = 100
[[workspace]]
operator = "conv"
bytes = 4096
inputs = [[1, 16, 8, 8], [32, 16, 3, 3]]
output = [1, 32, 6, 6]
"""


def written(folder: Path, text: str, name: str = "board.toml") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_a_file_has_the_name_and_the_workspaces_by_operator_and_shapes(tmp_path: Path) -> None:
    target = read_target(written(tmp_path, GOOD))
    shapes = ((1, 16, 8, 8), (32, 16, 3, 3))
    assert target == Target("cortex-m7", (Workspace("softmax", 100), Workspace("conv", 4096, shapes, (1, 32, 6, 6))))
    assert target.text == "cortex-m7; softmax(): 100 B; conv(1x16x8x8, 32x16x3x3) -> 1x32x6x6: 4096 B"


def test_a_file_without_a_name_is_called_as_the_file_is(tmp_path: Path) -> None:
    assert read_target(written(tmp_path, "")) == Target("board")


def test_words_paths_and_targets_are_taken(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    assert as_target("") is HOST and as_target("none") is NONE
    assert as_target(path) == as_target(str(path)) == as_target(as_target(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = 3", "name 3 is no name of a target"),
        ('name = "none"', "name 'none' is no name of a target"),
        ("[memory]\nname = 'ram'", "memory is no list of tables"),
        ("[[memory]]\nbytes = 3", "memory 1: 'bytes' is unknown; there are name, capacity"),
        ("[workspace]\nbytes = 3", "workspace is no list of tables"),
        ("[[workspace]]\nbytes = 3", "workspace 1: 'operator' is missing"),
        ('[[workspace]]\noperator = "conv"', "workspace 1: 'bytes' is missing"),
        ('[[workspace]]\noperator = "conv"\nbyte = 3', r"workspace 1: 'byte' is unknown; did you mean 'bytes'\?"),
        ("[[workspace]]\noperator = 5\nbytes = 3", "workspace 1: operator 5 is no name of an operator"),
        ('[[workspace]]\noperator = "conv"\nbytes = -1', "workspace 1: bytes -1 is no integer"),
        ('[[workspace]]\noperator = "conv"\nbytes = true', "workspace 1: bytes True is no integer"),
        ('[[workspace]]\noperator = "conv"\nbytes = 1\ninputs = [1, 2]', "workspace 1: inputs: 1 is no shape"),
        ('[[workspace]]\noperator = "conv"\nbytes = 1\ninputs = 1', "workspace 1: inputs 1 is no list of shapes"),
        ('[[workspace]]\noperator = "conv"\nbytes = 1\noutput = [-1]', r"workspace 1: output: \[-1\] is no shape"),
        ('[[workspace]]\noperator = "a"\nbytes = 1\n' * 2, "operator 'a' is there 2 times with the same shapes"),
        ("name = ", "is no TOML"),
        ("a = " + "[" * 5000, "is no TOML"),
    ],
)
def test_a_wrong_file_is_refused_by_its_name(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(OptionError, match=f"^{path}: {message}"):
        read_target(path)


@settings(max_examples=40, deadline=None)
@given(content=st.binary(max_size=60) | st.text("[]=\"'{}.,#\n -1aworkspcebytsni", max_size=60).map(str.encode))
def test_any_bytes_are_a_target_or_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("target") / "t.toml"
    path.write_bytes(content)
    try:
        assert isinstance(read_target(path), Target)
    except OptionError as error:
        assert str(path) in str(error)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(OptionError, match="target 3 is neither 'none' nor the name of a TOML file"):
        as_target(3)
