"""Registers the cards of plans, reports and traces with IPython, which shows them in notebooks."""

import sys
from importlib import import_module

SHOWN = (
    ("engine.execution_plan", "ExecutionPlan"),
    ("engine.report.report", "Report"),
    ("engine.trace.trace", "Trace"),
)
"""Module and name of each class that has a card."""


def register_cards() -> None:
    """Registers the cards of plans, reports and traces with a running IPython; does nothing where none runs."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        html = shell.display_formatter.formatters["text/html"]
        for module, name in SHOWN:
            html.for_type_by_name(module, name, _card)


def _card(shown: object) -> str:
    """Returns the card as HTML. It imports the module of the cards when the first card is shown."""
    card: str = import_module("engine.notebook.cards").card_of(shown)
    return card
