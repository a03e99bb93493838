"""How a picture shall look."""

from attrs import field, frozen
from attrs.validators import ge


@frozen
class PictureOptions:
    """Width in pixels, and the height of the map of the arena; what else there is to see.

    `curves` below the map, a `title` above it, a `legend` and a `caption` at the bottom. `compact` leaves out all four
    and what is written beside axes, for a small picture beside others. Raises ValueError for a size too small to see.
    """

    width: int = field(default=900, validator=ge(120))
    height: int = field(default=330, validator=ge(40))
    curves: bool = True
    title: bool = True
    legend: bool = True
    caption: bool = True
    compact: bool = False


PAGE = PictureOptions()
"""For a page of text."""
