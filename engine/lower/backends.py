"""Which back-ends compute a network: what a caller chose, as far as it is there."""

import logging
from functools import cache

from engine.text.errors import OptionError
from ops.onednn.library import objection
from ops.schema.backends import BACKENDS, EVERY, NUMBA, NUMPY, ONEDNN, PLAIN

AUTO = "auto"
"""oneDNN where it is installed, then the others."""
CHOICES = (AUTO, *BACKENDS)
DEFAULT = NUMBA
"""The same on every machine, whatever else is installed there."""
_LOG = logging.getLogger("arenaplan")


def check_backend(choice: object) -> None:
    """Raises OptionError for what is no back-end."""
    if choice not in CHOICES:
        raise OptionError(f"backend {choice!r} is unknown; one of: {', '.join(CHOICES)}")


def backends_of(choice: str) -> tuple[str, ...]:
    """In which order back-ends are asked for kernels; each operator takes the first that has one for it.

    A library that is not there, or cannot be used, is left out; where it was asked for, that is logged, once.
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
