"""The one place where bokeh is imported, on first use: it is heavy and optional."""

from importlib import import_module
from typing import Any

from engine.text.errors import EngineError


def bokeh(module: str) -> Any:
    """Returns a module of bokeh, such as "plotting". Raises EngineError where it is not installed."""
    try:
        return import_module(f"bokeh.{module}")
    except ImportError as error:
        raise EngineError("bokeh is not installed: pip install -e '.[bokeh]'") from error
