"""ResNets (He et al. 2015) and MobileNetV2 (Sandler et al. 2018) as PyTorch modules, and exported to ONNX.

They are written from the papers with PyTorch's own layers, and share nothing with the zoo.
"""

import io
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import onnx
import torch
from torch import nn

DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
"""Blocks of the four stages by layers: table 1 of the paper. From 50 layers on they are bottlenecks."""
INVERTED = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks and stride: table 2 of the paper."""

_BRANCH = 0.3
"""Scale of what a block adds to what passes by: numbers stay about as large as they were."""


def _layer(
    inputs: int,
    outputs: int,
    kernel: int,
    stride: int = 1,
    *,
    groups: int = 1,
    scale: float = 1.0,
    after: Any = None,
) -> Any:
    """Returns a convolution without bias, its normalization, and what comes after it."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(conv.weight)
    norm = nn.BatchNorm2d(outputs)
    nn.init.constant_(norm.weight, scale)
    return nn.Sequential(conv, norm, *([after] if after else []))


class Residual(nn.Module):
    """A block of two 3x3 convolutions or a bottleneck of version 1.5, beside what it is given."""

    def __init__(self, inputs: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        outputs = width * 4 if bottleneck else width
        layers = (
            [_layer(inputs, width, 1, after=nn.ReLU()), _layer(width, width, 3, stride, after=nn.ReLU())]
            if bottleneck
            else [_layer(inputs, width, 3, stride, after=nn.ReLU())]
        )
        self.body = nn.Sequential(*layers, _layer(width, outputs, 1 if bottleneck else 3, scale=_BRANCH))
        same = stride == 1 and inputs == outputs
        self.beside = nn.Identity() if same else _layer(inputs, outputs, 1, stride)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.body(x) + self.beside(x))


class Inverted(nn.Module):
    """Wider, a filter a channel, narrower; plus x where shapes agree."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int, widened: bool) -> None:
        super().__init__()
        wide = inputs * expansion
        first = [_layer(inputs, wide, 1, after=nn.ReLU6())] if widened else []
        depthwise = _layer(wide, wide, 3, stride, groups=wide, after=nn.ReLU6())
        self.adds = stride == 1 and inputs == outputs
        self.body = nn.Sequential(*first, depthwise, _layer(wide, outputs, 1, scale=_BRANCH if self.adds else 1.0))

    def forward(self, x: Any) -> Any:
        return x + self.body(x) if self.adds else self.body(x)


def resnet(depth: int) -> Any:
    """Returns a ResNet from [batch, 3, height, width] to 1000 logits."""
    bottleneck = depth >= 50
    layers: list[Any] = [_layer(3, 64, 7, 2, after=nn.ReLU()), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, blocks in enumerate(DEPTHS[depth]):
        width = 64 * 2**stage
        for block in range(blocks):
            layers.append(Residual(inputs, width, 2 if stage and not block else 1, bottleneck))
            inputs = width * 4 if bottleneck else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)).eval()


def mobilenet_v2(*, all_convolutions: bool = False) -> Any:
    """Returns MobileNetV2; with `all_convolutions` as in the ONNX model zoo, which has two convolutions more."""
    layers: list[Any] = [_layer(3, 32, 3, 2, after=nn.ReLU6())]
    inputs = 32
    for expansion, channels, blocks, stride in INVERTED:
        for block in range(blocks):
            widened = expansion > 1 or all_convolutions
            layers.append(Inverted(inputs, channels, 1 if block else stride, expansion, widened))
            inputs = channels
    layers += [_layer(inputs, 1280, 1, after=nn.ReLU6()), nn.AdaptiveAvgPool2d(1)]
    last = [nn.Conv2d(1280, 1000, 1), nn.Flatten()] if all_convolutions else [nn.Flatten(), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers, *last).eval()


def weighted(module: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yields the layers that have weights, in the order of their making: what they are, and their tensors."""
    for layer in module.modules():
        tensors = [t for t in (*layer.parameters(recurse=False), *layer.buffers(recurse=False)) if t.ndim]
        if tensors:
            yield type(layer).__name__, tensors


def disturb(module: Any) -> None:
    """Sets normalizations to other numbers than ones and zeros, that still let their inputs through."""
    generator = torch.Generator().manual_seed(0)
    for norm in (layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)):
        held = norm.state_dict()
        for name in ("bias", "running_mean"):
            held[name].uniform_(-0.1, 0.1, generator=generator)
        for name in ("weight", "running_var"):
            held[name] *= torch.rand(held[name].shape, generator=generator) * 0.6 + 0.7


def exported(module: Any, shape: Sequence[int], **options: Any) -> Any:
    """Returns the `onnx.ModelProto` that the TorchScript exporter makes of a module with one input "x" of a shape."""
    file: Any = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter is going to be replaced, and says so
        torch.onnx.export(
            module,
            (torch.zeros(*shape),),
            file,
            dynamo=False,
            input_names=["x"],
            output_names=["y"],
            **options,
        )
    return onnx.load_from_string(file.getvalue())
