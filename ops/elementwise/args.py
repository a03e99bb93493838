"""What the compiled error function reads."""

from ops.native.records import record

ERF = record("x y count: int64")
"""So many elements of dense arrays, which may be the same one."""
