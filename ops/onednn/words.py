"""The words of a call of a primitive."""

(
    SET_THREADS,
    THREADS,
    EXECUTE,
    PRIMITIVE,
    STREAM,
    COUNT,
    ARGUMENTS,
    PARALLEL,
    REGION,
    SEEN,
    BARE_PRIMITIVE,
    BARE_ARGUMENTS,
    TARGET,
    ELEMENTS,
    ALGORITHM,
    LOW,
    HIGH,
) = range(17)
"""Functions and numbers of the library; then what is wanted where a NaN may have been lost (`watched`)."""
