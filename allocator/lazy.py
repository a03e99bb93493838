"""Values by name whose modules are imported when one of them is asked for: a process seldom needs them all."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Mapping[str, T], Generic[T]):
    """Values by name, in the order of `homes`, which gives the home of each in a package, as "module:name in it"."""

    def __init__(self, package: str, homes: Mapping[str, str]) -> None:
        self._package, self._homes = package, dict(homes)

    def __getitem__(self, name: str) -> T:
        module, _, inside = self._homes[name].partition(":")
        value: T = getattr(import_module(f"{self._package}.{module}"), inside)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._package!r}, {self._homes})"

    def __len__(self) -> int:
        return len(self._homes)
