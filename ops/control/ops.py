"""Operators that have operators inside them."""

from ops.control.branch import IF
from ops.control.loop import LOOP
from ops.control.scan import SCAN

OPS = (IF, LOOP, SCAN)
