"""A table of converters whose modules are imported when one of their operators is asked for: few models have them."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType

from attrs import field, frozen

from engine.onnx.node import Converter

Versions = tuple[tuple[int, Converter | None], ...]
"""The converters of an operator, each with the version of the operator set it is for from, oldest first.

None stands for a version that has the operator no longer.
"""


def _homes(names: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({name: module for module, listed in names.items() for name in listed.split()})


@frozen(eq=False)
class LateTable(Mapping[str, Versions]):
    """The operators in `CONVERTERS` of modules, by name. It is made of their names, with spaces between, by module."""

    modules: Mapping[str, str] = field(converter=_homes)

    def __getitem__(self, name: str) -> Versions:
        versions: Versions = import_module(self.modules[name]).CONVERTERS[name]
        return versions

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)
