"""Shapes of pictures. Lengths in pixels; x grows to the right, y downwards, as on a screen."""

from attrs import frozen

Points = tuple[tuple[float, float], ...]


@frozen
class Rect:
    """A rectangle; `title` is shown while the mouse is over it."""

    x: float
    y: float
    width: float
    height: float
    paint: str
    title: str = ""
    radius: float = 0.0


@frozen
class RectGroup:
    """Many small rectangles (x, y, width, height) of one paint."""

    boxes: tuple[tuple[float, float, float, float], ...]
    paint: str


@frozen
class Polygon:
    """A filled outline."""

    points: Points
    paint: str


@frozen
class Polyline:
    """A stroke through points; `dash` is the length of strokes and gaps, 0 for none."""

    points: Points
    paint: str
    width: float = 1.0
    dash: float = 0.0


@frozen
class TextLabel:
    """One line of text; `anchor` is start | middle | end, `y` its baseline, `size` its font size.

    A `turned` text runs upwards. It is drawn only inside of `clip`, a box (x, y, width, height), if there is one.
    """

    x: float
    y: float
    text: str
    size: float
    paint: str
    anchor: str = "start"
    bold: bool = False
    turned: bool = False
    clip: tuple[float, float, float, float] | tuple[()] = ()


@frozen
class Circle:
    """A filled circle."""

    x: float
    y: float
    radius: float
    paint: str


Shape = Rect | RectGroup | Polygon | Polyline | TextLabel | Circle


@frozen(eq=False)
class Drawing:
    """Shapes, the first at the bottom. `name` and `summary` describe the picture in words."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    name: str
    summary: str
