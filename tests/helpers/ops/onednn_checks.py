"""Checks of oneDNN's kernels that stand beside compiled ones, on any threads and at any address."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ops.schema.backends import NUMPY, ONEDNN
from ops.schema.schema import Kernel, OpSchema, Signature
from ops.tensor.spec import Array
from tests.helpers.ops.compiled_kernel_checks import placed
from tests.helpers.ops.kernel_checks import bind, garbage, run, run_over, same, sign


def library_kernel(schema: OpSchema) -> Kernel:
    """Returns the kernel of the library."""
    (kernel,) = (k for k in schema.kernels if k.backend == ONEDNN)
    return kernel


def reference(schema: OpSchema, signature: Signature, arrays: Sequence[Array]) -> Array:
    """Computes with plain numpy."""
    return run(schema.kernel(signature, (NUMPY,)), signature, arrays)[0]


def check(  # noqa: PLR0917 - what is varied
    schema: OpSchema, arrays: Sequence[Array], attrs: dict[str, Any], place: int = 0, threads: int = 1, rtol: float = 0
) -> bool:
    """Checks the kernel against numpy, twice, then with special numbers; returns whether the library took the case."""
    kernel = library_kernel(schema)
    signature = sign(schema, arrays, attrs, threads=threads)
    if not kernel.supports(signature):
        return False
    arguments = [placed(a, first=place) for a in arrays]
    y = placed(garbage(signature.y), first=place)
    thunk = bind(kernel, signature, arguments, [y])
    _compare(schema, signature, arguments, y, thunk, rtol)
    first = y.tobytes()
    kept, flat = arguments[0].copy(), arguments[0].reshape(-1)
    for number in (np.nan, np.inf, -np.inf, 3e38, -3e38, -0.0):
        flat[:: max(1, flat.size // 3)] = number
        _compare(schema, signature, arguments, y, thunk, rtol)
    arguments[0].fill(-np.inf)
    _compare(schema, signature, arguments, y, thunk, rtol)
    arguments[0][...] = kept
    y.fill(np.nan)
    thunk()
    assert y.tobytes() == first
    return True


def _compare(  # noqa: PLR0917 - one call and its answer
    schema: OpSchema, signature: Signature, arguments: Sequence[Array], y: Array, thunk: Any, rtol: float
) -> None:
    wanted = reference(schema, signature, arguments)
    finite = np.abs(wanted[np.isfinite(wanted)])
    with np.errstate(all="ignore"):
        thunk()
    same(y, wanted, rtol=rtol, atol=rtol * float(finite.max(initial=0)))


def check_overwrites(schema: OpSchema, arrays: Sequence[Array], attrs: dict[str, Any]) -> None:
    """Checks that the kernel gives the same bits over the first input, for any numbers."""
    signature, kernel = sign(schema, arrays, attrs), library_kernel(schema)
    wanted = run(kernel, signature, arrays)[0]
    assert run_over(kernel, signature, arrays, 0)[0].tobytes() == wanted.tobytes()


def numbers(seed: int, *shape: int) -> Array:
    """Returns normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
