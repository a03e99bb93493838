"""Plans, reports and traces in notebooks: cards that appear by themselves, and a figure to look around in."""

from engine.notebook.figures import figure

__all__ = ["figure"]
