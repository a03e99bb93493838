"""Modules of PyTorch become graphs that compute the same, with the weights and the names of the modules."""

import gc
import re
from typing import Any

import numpy as np
import pytest

import engine
from engine.text.errors import ModelError
from ops.tensor.spec import Array
from tests.helpers.paths import ROOT
from tests.helpers.torch import REASON

torch = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("onnxscript", reason=REASON)

from tests.helpers.torch.modules import CASES, Case, ResNet, Undecided

LENGTHS = (4, 2, 7)
"""The first one is that of the example inputs."""


def wanted(case: Case, arguments: tuple[Any, ...]) -> list[Array]:
    """Returns what the module computes."""
    with torch.no_grad():
        outputs = case.module(*arguments)
    return [np.asarray(y) for y in (outputs.values() if isinstance(outputs, dict) else (outputs,))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CASES)
def test_modules_compute_the_same_at_every_length(kind: str) -> None:
    torch.manual_seed(0)
    case = CASES[kind]()
    case.module.eval()
    graph = engine.load_torch(case.module, case.arguments(LENGTHS[0]), dynamic_shapes=case.dynamic_shapes)
    exe = engine.compile(graph)
    for n in LENGTHS:
        arguments = case.arguments(n)
        outputs = exe.run(dict(zip(graph.inputs, arguments, strict=True))).values()
        for got, want in zip(outputs, wanted(case, arguments), strict=True):
            np.testing.assert_allclose(got, want, rtol=case.tolerance, atol=case.tolerance)
    names = [operator.name for operator in exe.graph.operators]
    for layer in case.layers:
        assert any(name == layer or name.startswith((f"{layer}/", f"{layer}.")) for name in names), (layer, names)


@pytest.mark.filterwarnings("ignore")
def test_weights_are_those_of_the_module_and_tensors_are_shared() -> None:
    module = ResNet().eval()
    x = torch.randn(2, 3, 16, 16)
    graph = engine.load_torch(torch.export.export(module, (x,)))
    constants = {var.name: array for var, array in graph.constants.items()}
    assert constants["stem.weight"].ctypes.data == module.stem.weight.data_ptr()
    assert not constants["stem.weight"].flags.writeable
    (name,), y = graph.outputs, torch.empty(2, 10)
    exe = engine.compile(graph)
    with torch.no_grad():
        want = module(x)
    del module
    gc.collect()
    exe.run({"image": x}, out={name: y})
    torch.testing.assert_close(y, want, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_exported_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ModelError, match=r"PyTorch cannot export the module: .*torch\.cond helps") as caught:
        engine.load_torch(Undecided(), (torch.ones(3),))
    assert "\n" not in str(caught.value) and not capfd.readouterr().err
    with pytest.raises(ModelError, match=r"a torch\.nn\.Module or a torch\.export\.ExportedProgram is wanted, not str"):
        engine.load_torch("module.pt")


@pytest.mark.filterwarnings("ignore")
def test_the_page_about_modules_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "torch.md").read_text()
    exec("\n".join(re.findall(r"^```python notest\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)), {})
    assert "arena" in capsys.readouterr().out
