"""Where in a file something is wrong."""

from pathlib import Path

from attrs import define

from engine.text.errors import TraceFormatError


@define(eq=False)
class Location:
    """A line of a file, from 1 on; it goes along with who reads."""

    path: Path
    line: int = 1

    def wrong(self, what: str, field: str = "") -> TraceFormatError:
        """The error to raise, in one line: file, line and field."""
        return TraceFormatError(": ".join(filter(None, (f"{self.path}:{self.line}", field, what))))


def shown(value: object) -> str:
    """A value in a message: what is odd about it stands at its beginning."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
