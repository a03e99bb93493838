"""Plans, reports and traces in notebooks: cards that appear by themselves, and a figure to look around in."""

from engine.notebook.figures import figure
from engine.notebook.register import register_cards

__all__ = ["figure", "register_cards"]
