"""All policies for operators that run at once, and the one door to them: `policy`."""

from allocator.concurrency import Dependences
from allocator.errors import UnknownPolicyError
from allocator.policies.base import Policy
from allocator.policies.colours import Colours
from allocator.policies.edges import Edges
from allocator.policies.exact import ExactPolicy
from allocator.policies.levels import Levels

EXACT, COLOUR, LEVELS, EDGES = "exact", "colour", "levels", "edges"
POLICIES = (EXACT, f"{COLOUR}:8", LEVELS, EDGES)
"""Names under which policies are listed; a colour policy takes any number of colours from 1 on."""
_DIGITS = 4


def policy(name: str, dependences: Dependences) -> Policy:
    """Returns the policy of a name. Raises UnknownPolicyError; TooManyError where it cannot take so many steps."""
    kind, colours = check_policy(name)
    if kind == COLOUR:
        return Colours.of(dependences, colours)
    if kind == EXACT:
        return ExactPolicy.of(dependences)
    return Levels.of(dependences) if kind == LEVELS else Edges(dependences)


def check_policy(name: str) -> tuple[str, int]:
    """Returns (kind, number of colours) of a name, 0 colours where they do not matter. Raises UnknownPolicyError."""
    kind, colon, number = name.partition(":")
    if kind == COLOUR and number.isascii() and number.isdecimal() and len(number) <= _DIGITS and int(number) > 0:
        return kind, int(number)
    if kind in (EXACT, LEVELS, EDGES) and not colon:
        return kind, 0
    names = ", ".join(POLICIES)
    raise UnknownPolicyError(
        f"{name!r} is no policy for operators that run at once; there are {names} (or another number)"
    )
