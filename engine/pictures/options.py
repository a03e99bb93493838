"""Options of a picture."""

from attrs import field, frozen
from attrs.validators import ge


@frozen
class PictureOptions:
    """The width of a picture and the height of its map of the arena, in pixels, and what else it has.

    `curves` stand below the map, a `title` above it, a `legend` and a `caption` at the bottom. `compact` leaves out all
    four and the labels of the axes, for small pictures side by side. Raises ValueError for a size that is too small.
    """

    width: int = field(default=900, validator=ge(120))
    height: int = field(default=330, validator=ge(40))
    curves: bool = True
    title: bool = True
    legend: bool = True
    caption: bool = True
    compact: bool = False


PAGE = PictureOptions()
"""Options of a picture for a page of text."""
