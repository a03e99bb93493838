"""The door to `engine.notebook`: plans, reports and traces show themselves there, and it is loaded when one does.

Cards are made of all of them, so none of them can import what makes cards.
"""

from importlib import import_module


def as_card(shown: object) -> str:
    """The HTML of a plan, a report or a trace."""
    made: str = import_module("engine.notebook.cards").card_of(shown)
    return made
