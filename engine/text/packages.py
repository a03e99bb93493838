"""The packages of this project have short names; another module of that name may stand before ours on the path."""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
"""The folder that has all packages."""


def check_packages(*names: str) -> None:
    """Raises ImportError, with the path of the other one, where Python finds another package than ours of a name."""
    for name in names:
        place = _place(find_spec(name) if name not in sys.modules else sys.modules[name].__spec__)
        if place != HOME / name:
            raise ImportError(
                f"arenaplan has a package {name!r} in {HOME}, and Python finds another one: {place}. Rename that, or "
                "start Python in another folder"
            )


def _place(spec: ModuleSpec | None) -> Path | None:
    """Returns the folder of a package, the file of a module."""
    if spec is None:
        return None
    where = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
    place = Path(where).resolve()  # of the file: an installer may make a folder of links to files
    return place.parent if place.stem == "__init__" else place
