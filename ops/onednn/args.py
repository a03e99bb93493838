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
    STRANGE,
    OTHERWISE,
) = range(19)
"""Functions and numbers of the library; then what is wanted where a NaN may have been lost (`watched`); marks that
another kernel shall compute (`guarded`)."""
