import re
from importlib import import_module

import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

from engine.onnx.converters.late import LateTable
from engine.onnx.converters.onnxruntime import norms
from engine.onnx.library import newest_opset, onnx
from engine.onnx.table import CONVERTERS, FAMILIES, ML, ONNXRUNTIME, ONNXRUNTIME_FAMILIES, RARE, converter
from tools.list_operators import PATH, text_of_operators


@pytest.mark.parametrize("name", (*CONVERTERS, *RARE))
def test_an_operator_in_the_table_is_one_of_onnx_in_each_of_its_versions(name: str) -> None:
    versions = RARE[name] if name in RARE else CONVERTERS[name]
    assert [since for since, _ in versions] == sorted({since for since, _ in versions})
    for since, convert in versions:
        schema = onnx().defs.get_schema(name, since)
        assert schema.since_version == since
        assert convert is not None or schema.deprecated


def test_no_operator_stands_in_two_families() -> None:
    assert sum(len(family.CONVERTERS) for family in FAMILIES) == len(CONVERTERS)
    assert sum(len(family.CONVERTERS) for family in ONNXRUNTIME_FAMILIES) == len(ONNXRUNTIME)


@pytest.mark.parametrize("table", [ML, RARE], ids=["ML", "RARE"])
def test_a_late_table_lists_what_its_modules_have(table: LateTable) -> None:
    modules = [import_module(name) for name in set(table.modules.values())]
    assert sorted(name for module in modules for name in module.CONVERTERS) == sorted(table)
    assert not set(table) & set(CONVERTERS)


@pytest.mark.parametrize("name", ML)
def test_an_operator_of_the_domain_of_scikit_learn_is_one_of_onnx(name: str) -> None:
    ((since, convert),) = ML[name]
    assert onnx().defs.get_schema(name, since, "ai.onnx.ml").since_version == since
    assert converter("ai.onnx.ml", name, since) is convert


def test_an_operator_of_onnxruntime_is_one_that_it_declares() -> None:
    declared = {(s.domain, s.name, s.since_version) for s in get_all_operator_schema()}
    for domain, table in (("com.microsoft", ONNXRUNTIME), ("", norms.DEFAULT_DOMAIN)):
        names = {(domain, name, since) for name, versions in table.items() for since, _ in versions}
        assert names <= declared


def test_what_onnxruntime_writes_without_a_domain_stands_behind_what_onnx_defines() -> None:
    assert converter("", "LayerNormalization", 13) is not None
    assert converter("", "LayerNormalization", 13) is not converter("", "LayerNormalization", 17)
    assert converter("", "SimplifiedLayerNormalization", 9) is not None
    assert converter("com.microsoft", "FusedConv", 1) is not None
    assert converter("com.microsoft", "FusedConv", 0) is None


def test_an_operator_is_read_from_its_first_version_to_its_last() -> None:
    assert converter("", "Gelu", 19) is None
    assert converter("", "Gelu", 20) is converter("", "Gelu", newest_opset()) is not None
    assert converter("", "Softmax", 12) is not converter("", "Softmax", 13)
    assert converter("", "Upsample", 9) is not None
    assert converter("", "Upsample", 10) is None
    assert converter("com.example", "Relu", 13) is None


def test_the_page_of_operators_is_up_to_date() -> None:
    page, wanted = (_any_newest(text) for text in (PATH.read_text(encoding="utf-8"), text_of_operators()))
    assert page.startswith(wanted), "run python tools/list_operators.py"


def _any_newest(text: str) -> str:
    """Sets the newest operator set to the installed package's, not ours."""
    return re.sub(r"Operator sets 7 to \d+", "Operator sets 7 to N", text)
