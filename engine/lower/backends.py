"""The back-ends that compute a network: the choice of the caller, as far as it is installed."""

from engine.text.errors import OptionError
from ops.onednn.library import objection
from ops.schema.backends import BACKENDS, EVERY, NUMBA, NUMPY, ONEDNN, PLAIN

AUTO = "auto"
"""oneDNN where it is installed, then the others."""
CHOICES = (AUTO, *BACKENDS)
DEFAULT = NUMBA
"""The default back-end. It is the same on every machine, whatever else is installed there."""


def check_backend(choice: object) -> None:
    """Raises OptionError for an unknown back-end."""
    if choice not in CHOICES:
        raise OptionError(f"backend {choice!r} is unknown; one of: {', '.join(CHOICES)}")


def backends_of(choice: str) -> tuple[str, ...]:
    """Returns the back-ends in the order in which they are asked for kernels; each operator takes the first that has
    one.

    Raises OptionError for a library that is chosen by name, and is missing or cannot be used; "auto" leaves it out.
    """
    if choice == NUMPY:
        return (NUMPY,)
    if choice == NUMBA:
        return PLAIN
    missing = objection()
    if missing and choice == ONEDNN:
        raise OptionError(f"backend 'onednn' cannot be used: {missing}; 'auto' takes it only where it can be used")
    return PLAIN if missing else EVERY
