"""Public names that are imported when they are first used (PEP 562), so that importing a package costs little."""

from collections.abc import Callable, Mapping
from importlib import import_module


def homes_of(names: Mapping[str, str]) -> dict[str, str]:
    """Returns the home of each name, as "module:name in it"; `names` has those of each module, with spaces between."""
    return {name: f"{module}:{name}" for module, listed in names.items() for name in listed.split()}


def importer(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Returns the `__getattr__` of a package. `homes` gives the home of each public name, as "module:name in it".

    The function that it returns raises AttributeError for any other name.
    """

    def getattribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, inside = homes[name].partition(":")
        return getattr(import_module(module), inside)

    return getattribute
