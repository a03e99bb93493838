"""Plans, reports and traces in notebooks: cards that appear by themselves, and an interactive figure."""

from typing import TYPE_CHECKING

from engine.notebook.register import register_cards
from ops.lazy import importer

if TYPE_CHECKING:  # the figure draws pictures, which most programs do not
    from engine.notebook.figures import figure
else:
    __getattr__ = importer(__name__, {"figure": "engine.notebook.figures:figure"})

__all__ = ["figure", "register_cards"]
