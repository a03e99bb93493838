"""Cascades: runs of operators on images that are computed stripe after stripe of rows.

`rows` says which rows of each inner tensor a stripe needs, `search` which operators are cut and how high stripes are,
`rewrite` writes the graph, and `choose` takes the graph with the least bytes.
"""

from typing import TYPE_CHECKING

from ops.lazy import importer

if TYPE_CHECKING:  # few plans have cascades; at run time it is imported when it is first used
    from engine.passes.cascade.choose import CascadeSearch
    from engine.passes.cascade.rewrite import with_cascades, write_cascades

__all__ = ["CascadeSearch", "with_cascades", "write_cascades"]

_HOMES = {
    "CascadeSearch": "engine.passes.cascade.choose:CascadeSearch",
    "with_cascades": "engine.passes.cascade.rewrite:with_cascades",
    "write_cascades": "engine.passes.cascade.rewrite:write_cascades",
}

if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    __getattr__ = importer(__name__, _HOMES)
