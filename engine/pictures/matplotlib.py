"""The one place where matplotlib is imported, on first use: it is heavy and optional."""

import io
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from engine.text.errors import EngineError

Box = tuple[float, float, float, float]
"""A rectangle: x, y, width, height."""


def new_figure(width: float, height: float, layout: str = "constrained") -> Any:
    """Returns a matplotlib Figure without a window, its size in inches; the layout "none" moves nothing.

    Raises EngineError where matplotlib is not installed.
    """
    return _part("figure").Figure(figsize=(width, height), layout=layout)


def new_rectangles(boxes: Iterable[Box], **style: Any) -> Any:
    """Returns any number of rectangles as one artist for axes."""
    path = _part("path").Path
    corners = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)] for x, y, w, h in boxes]
    return _part("patches").PathPatch(path.make_compound_path(*map(path, corners)), **style)


def new_rounded(box: Box, radius: float, **style: Any) -> Any:
    """Returns a rectangle with round corners as an artist for axes."""
    x, y, width, height = box
    corners = f"round,pad=0,rounding_size={radius}"
    return _part("patches").FancyBboxPatch((x, y), width, height, boxstyle=corners, **style)


def _part(name: str) -> Any:
    try:
        return import_module(f"matplotlib.{name}")
    except ImportError as error:
        raise EngineError("matplotlib is not installed: pip install -e '.[charts]'") from error


def to_png(figure: Any, dots_per_inch: int = 110, description: str = "") -> bytes:
    """Returns a figure as the bytes of a PNG file, which holds the description as text, if there is one."""
    return _saved(figure, "png", dpi=dots_per_inch, metadata={"Description": description} if description else {})


PICTURES = (".png", ".svg", ".pdf")
"""Suffixes of the files that a figure can be written to."""


def picture(figure: Any, suffix: str) -> bytes:
    """Returns a figure as the bytes of a file of one of these suffixes."""
    return to_png(figure) if suffix == ".png" else _saved(figure, suffix.removeprefix("."))


def _saved(figure: Any, form: str, **how: Any) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format=form, **how)
    return content.getvalue()
