"""The features that numba compiles for: this processor's, or those of NUMBA_CPU_FEATURES and the like."""

from functools import cache
from importlib import import_module


@cache
def has(*names: str) -> bool:
    """Returns whether compiled code has all of these features of LLVM, such as "avx2"."""
    return set(names) <= _features()


def _features() -> set[str]:
    config = import_module("numba").config
    if config.CPU_FEATURES is not None:
        return {word[1:] for word in config.CPU_FEATURES.split(",") if word.startswith("+")}
    try:
        features: dict[str, bool] = import_module("llvmlite.binding").get_host_cpu_features()
    except RuntimeError:  # LLVM does not know
        return set()
    return {name for name, there in features.items() if there and (config.ENABLE_AVX or not name.startswith("avx"))}
