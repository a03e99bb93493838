"""Plans that a file carries, and how they are followed."""

from typing import TYPE_CHECKING

from ops.lazy import importer

if TYPE_CHECKING:  # most plans are made anew; at run time each name is imported when it is first used
    from engine.saved.embedded import EmbeddedPlan
    from engine.saved.replay import embed, followed_or

__all__ = ["EmbeddedPlan", "embed", "followed_or"]

_HOMES = {
    "EmbeddedPlan": "engine.saved.embedded:EmbeddedPlan",
    "embed": "engine.saved.replay:embed",
    "followed_or": "engine.saved.replay:followed_or",
}

if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    __getattr__ = importer(__name__, _HOMES)
