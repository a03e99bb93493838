"""Operators by name."""

from importlib import import_module

import pytest

from ops.reduce.softmax import SOFTMAX
from ops.registry import OPERATORS, REGISTRY, find
from ops.tensor.errors import UnknownOperatorError
from tests.helpers.paths import ROOT


def test_every_operator_is_registered_under_its_own_name() -> None:
    assert REGISTRY
    assert all(name == schema.name for name, schema in REGISTRY.items())


def test_operators_are_found_by_name() -> None:
    assert find("softmax") is SOFTMAX


def test_a_name_that_no_operator_has_is_refused() -> None:
    with pytest.raises(UnknownOperatorError, match="'softmix'"):
        find("softmix")


def test_the_table_of_operators_has_each_schema_of_each_module_once() -> None:
    paths = [path.relative_to(ROOT) for path in sorted((ROOT / "ops").glob("*/*.py"))]
    modules = [
        import_module(".".join(path.with_suffix("").parts)) for path in paths if "\nOPS" in (ROOT / path).read_text()
    ]
    assert {module.__name__: [schema.name for schema in module.OPS] for module in modules} == {
        module: names.split() for module, names in OPERATORS.items()
    }
    assert len(REGISTRY) == sum(len(names.split()) for names in OPERATORS.values())


def test_the_registry_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        REGISTRY["mine"] = SOFTMAX  # type: ignore[index]


def test_every_operator_has_a_description_and_a_kernel() -> None:
    assert all(schema.summary and schema.kernels for schema in REGISTRY.values())
