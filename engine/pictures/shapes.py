"""What a picture is made of. Lengths in pixels; x grows to the right, y downwards, as on a screen."""

from attrs import frozen

Points = tuple[tuple[float, float], ...]


@frozen
class Rect:
    """A rectangle; `title` is shown where the mouse rests on it."""

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
    """One line; `anchor` is start | middle | end, `y` its baseline, `size` the height of its font.

    A `turned` one runs upwards. `clip` is the box (x, y, width, height) beyond which it is not drawn, if any.
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
    """Shapes, the first at the bottom. `name` and `summary` tell in words what there is to see."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    name: str
    summary: str
