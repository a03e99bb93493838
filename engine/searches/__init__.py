"""Searches for addresses and orders that many workers share."""

from typing import TYPE_CHECKING

from ops.lazy import importer

if TYPE_CHECKING:  # most searches are not shared; at run time the names are imported when they are first used
    from engine.searches.orders import lowest_shared
    from engine.searches.rounds import RoundSearch, solve_shared
    from engine.searches.sharing import shared_search

__all__ = ["RoundSearch", "lowest_shared", "shared_search", "solve_shared"]

_HOMES = {
    "lowest_shared": "engine.searches.orders:lowest_shared",
    "RoundSearch": "engine.searches.rounds:RoundSearch",
    "solve_shared": "engine.searches.rounds:solve_shared",
    "shared_search": "engine.searches.sharing:shared_search",
}

if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    __getattr__ = importer(__name__, _HOMES)
