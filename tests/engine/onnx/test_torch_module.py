"""PyTorch is an extra: without it, one error says how to install it."""

import sys

import pytest

import engine
from engine.text.errors import EngineError


@pytest.mark.parametrize("missing", ["torch", "onnxscript"])
def test_a_missing_package_is_one_line(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", type(sys)("onnxscript"))
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(EngineError, match=rf"^{missing} is not installed: pip install -e '\.\[torch\]'$"):
        engine.load_torch(object())
