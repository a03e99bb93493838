"""What viewers and pictures have to bear: many tensors, and names that hold anything."""

from tools.crowd import crowd

__all__ = ["HOSTILE", "crowd"]

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror="document.title=1">',
    "a\nb\tc\r\0\x1b[31m",
    "\ud800lonely\udfff",
    "]]>&amp;<!--",
    "right\u202eto left",
    "x" * 10_000,
    "=1+1",
    "${1}$x^2$",
    "日本語🙂",
    "",
)
"""Names that break what is not careful."""
