"""Well-known networks, written with the public API."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from engine.graph import Graph
from engine.zoo.encoder import encoder
from engine.zoo.mobilenet import mobilenet_v2
from engine.zoo.resnet import resnet50
from engine.zoo.vgg import vgg16

__all__ = ["NETWORKS", "Builder", "encoder", "mobilenet_v2", "resnet50", "vgg16"]


class Builder(Protocol):
    """Builds a network of images: "x" [batch, 3, image, image] to "y" [batch, 1000]."""

    def __call__(self, batch: int | str = 1, image: int = 224, seed: int = 0) -> Graph:
        """Graphs of one seed share their weights for as long as one of them lives. `batch` may be a name."""


NETWORKS: Mapping[str, Builder] = MappingProxyType({"vgg16": vgg16, "resnet50": resnet50, "mobilenet_v2": mobilenet_v2})
"""By name, in the order in which they are listed."""
