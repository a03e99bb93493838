"""The back-ends that compute a network: the choice of the caller, as far as it is installed."""

import logging
from functools import cache

from engine.text.errors import OptionError
from ops.onednn.library import objection
from ops.schema.backends import BACKENDS, EVERY, NUMBA, NUMPY, ONEDNN, PLAIN

AUTO = "auto"
"""oneDNN where it is installed, then the others."""
CHOICES = (AUTO, *BACKENDS)
DEFAULT = NUMBA
"""The default back-end. It is the same on every machine, whatever else is installed there."""
_LOG = logging.getLogger("arenaplan")


def check_backend(choice: object) -> None:
    """Raises OptionError for an unknown back-end."""
    if choice not in CHOICES:
        raise OptionError(f"backend {choice!r} is unknown; one of: {', '.join(CHOICES)}")


def backends_of(choice: str) -> tuple[str, ...]:
    """Returns the back-ends in the order in which they are asked for kernels; each operator takes the first that has
    one.

    A library that is missing or unusable is left out; where the caller chose it, that is logged once.
    """
    if choice == NUMPY:
        return (NUMPY,)
    if choice == NUMBA:
        return PLAIN
    missing = objection()
    if missing and choice == ONEDNN:
        _warn(missing)
    return PLAIN if missing else EVERY


@cache
def _warn(missing: str) -> None:
    _LOG.warning("backend 'onednn' is not used, 'numba' is: %s", missing)
