"""Names that hold any characters, for tests of exporters and viewers."""

from tools.synthetic_trace import synthetic_trace

__all__ = ["HOSTILE", "synthetic_trace"]

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
"""Names that break a format which does not escape them."""
