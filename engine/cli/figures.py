"""The one place where matplotlib is imported, on first use: it is heavy and optional."""

import io
from typing import Any

from engine.errors import EngineError


def new_figure(width: float, height: float) -> Any:
    """A matplotlib Figure, in inches, that no window knows of. Raises EngineError where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - heavy and optional, see above
    except ImportError as error:
        raise EngineError("matplotlib is not installed: pip install 'arenaplan[charts]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def to_png(figure: Any, dots_per_inch: int = 110) -> bytes:
    """The bytes of a PNG file."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=dots_per_inch)
    return content.getvalue()
