"""Files that several tests of the command line read."""

from pathlib import Path

import pytest

from tests.helpers.cli.cli_checks import BUFFERS, save
from tests.helpers.onnx.saved_models import save_perceptron


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the path of an ONNX model."""
    return str(save_perceptron(tmp_path_factory.mktemp("models") / "perceptron.onnx"))


@pytest.fixture
def buffers(tmp_path: Path) -> str:
    """Returns the path of a CSV file with three buffers."""
    return save(tmp_path, BUFFERS)
