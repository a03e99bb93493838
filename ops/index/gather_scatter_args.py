"""What compiled picking by indices and who calls it agree on."""

from ops.tensor.layout import CACHE_LINE

GATHER, SCATTER, ADD_FLOATS, ADD_DOUBLES, ADD_INTS = range(5)
"""Rows that indices name are read; written; or added to."""
HEAD, CHECK_HEAD = 13, 7
"""Words before those of the outer loops."""
LINE = CACHE_LINE
"""Bytes of a row that threads do not share when they write where indices say."""
