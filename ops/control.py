"""Operators that have operators inside them."""

from ops.branch import IF
from ops.loop import LOOP
from ops.scan import SCAN

OPS = (IF, LOOP, SCAN)
