"""Searches for addresses that many workers share."""

from typing import TYPE_CHECKING

from ops.lazy import importer

if TYPE_CHECKING:  # most searches are not shared; at run time the name is imported when it is first used
    from engine.searches.rounds import solve_shared

__all__ = ["solve_shared"]

_HOMES = {"solve_shared": "engine.searches.rounds:solve_shared"}

if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    __getattr__ = importer(__name__, _HOMES)
