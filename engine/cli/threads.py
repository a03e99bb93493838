"""How many threads BLAS may use. The one door onto threadpoolctl, which is optional."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from engine.errors import EngineError

AS_THEY_ARE = 0
"""Leave the threads of BLAS as the library, or its environment variables, set them."""


def limit_threads(threads: int) -> AbstractContextManager[Any]:
    """Inside, BLAS uses at most so many threads. Raises EngineError where threadpoolctl is needed and not there."""
    if threads == AS_THEY_ARE:
        return nullcontext()
    try:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise EngineError(
            "the threads of BLAS are set through threadpoolctl: pip install 'arenaplan[bench]'"
        ) from error
    limits: AbstractContextManager[Any] = threadpool_limits(limits=threads, user_api="blas")
    return limits
