"""Colours of the kinds of operators, which the pictures and the page of the viewer share.

Paul Tol made these colours for labelled areas ("light", personal.sron.nl/~pault): people who are colour-blind tell them
apart, and dark text is readable on all of them.
"""

KIND_COLOURS = ("#77AADD", "#EE8866", "#44BB99", "#EEDD88", "#FFAABB", "#99DDFF", "#BBCC33", "#AAAA00")
"""Colours of the kinds of operators that have most bytes, in that order."""
OTHER_COLOUR = "#C8CCD2"
"""The colour of all other kinds."""
