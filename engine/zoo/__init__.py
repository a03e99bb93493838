"""Well-known networks, written with the public API."""

from engine.zoo.encoder import encoder

__all__ = ["encoder"]
