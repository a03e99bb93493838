"""arenaplan under one name: the public names of `engine`, its networks `zoo`, and the packages `ops` and `allocator`.

import arenaplan as ap

graph = ap.Graph()
x = graph.input("x", (1, 4))
graph.output(ap.ops.relu(x), "y")
ap.compile(graph).run({"x": ...})
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import allocator
import engine
import ops

_HOME = Path(__file__).resolve().parent
_FOUND = Path(engine.__file__ or "").resolve()
if _FOUND.parent != _HOME / "engine":
    raise ImportError(
        f"arenaplan has a package 'engine' in {_HOME}, and Python finds another one: {_FOUND}. Rename that, or start "
        "Python in another folder"
    )

if TYPE_CHECKING:  # the names for checkers of types and editors; at run time each is imported when it is first used
    from engine import *  # noqa: F403 (the list of names stands in engine)
    from engine import zoo

__all__ = ["allocator", "ops", "zoo", *engine.__all__]  # noqa: PLE0604 (the same)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Returns a public name of `engine`, or its package `zoo`. Raises AttributeError for any other name."""
        if name == "zoo":
            return import_module("engine.zoo")
        if name not in engine.__all__:
            raise AttributeError(f"module 'arenaplan' has no attribute {name!r}")
        return getattr(engine, name)

    def __dir__() -> list[str]:
        return sorted(__all__)
