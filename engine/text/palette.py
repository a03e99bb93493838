"""Colours of pictures, cards and the page of the viewer, by name; light and dark."""

from collections.abc import Mapping
from types import MappingProxyType

from attrs import frozen

KIND_COLOURS = ("#77AADD", "#EE8866", "#44BB99", "#EEDD88", "#FFAABB", "#99DDFF", "#BBCC33", "#AAAA00")
"""Colours of the kinds of operators that have most bytes, in that order.

Paul Tol made these colours for labelled areas ("light", personal.sron.nl/~pault): people who are colour-blind tell them
apart, and dark text is readable on all of them.
"""
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442")
"""Colours of lines and bars in charts, by Okabe and Ito: people who are colour-blind tell them apart."""
OTHER_COLOUR = "#C8CCD2"
"""The colour of all other kinds."""


@frozen
class Paint:
    """A colour on light and on dark pages, as #rrggbb."""

    light: str
    dark: str


LINES = tuple(f"line{i}" for i in range(6))
"""Names of the paints of the first colours of OKABE_ITO, for lines; the last is too bright for one."""
KINDS = tuple(f"kind{i}" for i in range(len(KIND_COLOURS)))
"""Names of the paints of KIND_COLOURS."""
OTHER = "other"
"""Name of the paint of all other kinds."""

PAINTS: Mapping[str, Paint] = MappingProxyType(
    {
        **{name: Paint(colour, colour) for name, colour in zip(KINDS, KIND_COLOURS, strict=True)},
        OTHER: Paint(OTHER_COLOUR, OTHER_COLOUR),
        **{name: Paint(colour, colour) for name, colour in zip(LINES, OKABE_ITO, strict=False)},
        "card": Paint("#FFFFFF", "#16191D"),
        "plot": Paint("#F7F8FA", "#1C2025"),
        "gap": Paint("#E6E9ED", "#2A3037"),
        "grid": Paint("#E9ECEF", "#262B31"),
        "ink": Paint("#1B2026", "#E8EBEE"),
        "quiet": Paint("#5D6670", "#A3ABB5"),
        "inside": Paint("#1B2026", "#14171A"),
        "live": Paint("#C9D8EA", "#2F4A68"),
        "live_line": Paint("#1F6FB5", "#6FB1EA"),
        "footprint": Paint("#8A5A00", "#E0A84A"),
        "bound": Paint("#A1246B", "#EE84BD"),
        "budget": Paint("#1B7A45", "#63CF93"),
        "peak": Paint("#C22F2B", "#FF7A6E"),
    }
)
"""The paints of pictures by name."""
