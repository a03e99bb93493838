"""Modules of PyTorch that memory is measured on. Imports torch: only processes that run them import this."""

from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def _unit(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


class Residual(nn.Module):  # type: ignore[misc] # torch has no types here
    """Two convolutions and what goes past them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = _unit(inputs, outputs, stride), _unit(outputs, outputs)
        self.past = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x: Any) -> Any:
        """Returns the sum of both ways."""
        return functional.relu(self.second(self.first(x)) + self.past(x))


class UNet(nn.Module):  # type: ignore[misc]
    """A U-Net of four levels."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 32, 64, 128, 256)
        pairs = list(pairwise(widths))
        self.down = nn.ModuleList(nn.Sequential(_unit(a, b), _unit(b, b)) for a, b in pairs)
        self.up = nn.ModuleList(_unit(a + b, a) for a, b in reversed(pairs[1:]))
        self.head = nn.Conv2d(32, 2, 1)

    def forward(self, x: Any) -> Any:
        """Returns two scores for each pixel."""
        levels = []
        for i, level in enumerate(self.down):
            x = level(functional.max_pool2d(x, 2) if i else x)
            levels.append(x)
        for level, beside in zip(self.up, levels[-2::-1], strict=True):
            x = level(torch.cat([functional.interpolate(x, scale_factor=2.0), beside], 1))
        return self.head(x)


def _residual_network() -> nn.Module:
    widths = (64, 64, 128, 256, 512)
    stages = []
    for i, (a, b) in enumerate(pairwise(widths)):
        stages += [Residual(a, b, 2 if i else 1), Residual(b, b, 1)]
    stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    return nn.Sequential(stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class Encoder(nn.Module):  # type: ignore[misc]
    """Eight layers of attention and a network of two products, as nn.TransformerEncoderLayer has them."""

    def __init__(self, width: int = 384) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(16))
        self.joint = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(8))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(8))
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(8))
        self.narrow = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(8))

    def forward(self, x: Any) -> Any:
        """Returns tokens of the same width."""
        for i in range(8):
            parts = self.joint[i](self.norms[2 * i](x)).chunk(3, -1)
            heads = (part.unflatten(-1, (6, -1)).transpose(1, 2) for part in parts)
            seen = functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
            x = x + self.out[i](seen)
            x = x + self.narrow[i](functional.gelu(self.wide[i](self.norms[2 * i + 1](x))))
        return x


MODULES = {
    "residual network": (_residual_network, (1, 3, 224, 224)),
    "U-Net": (UNet, (1, 3, 256, 256)),
    "encoder": (Encoder, (1, 512, 384)),
}
"""What makes a module, and the shape of its input."""
