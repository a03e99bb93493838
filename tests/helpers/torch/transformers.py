"""A text encoder as BERT, an image encoder as ViT and a decoder as GPT-2, in the form that libraries of models have."""

import math
import warnings
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn.functional import gelu

WIDTH, HEADS, WORDS, POSITIONS = 32, 2, 50, 64


class Attention(nn.Module):
    """Attention whose queries, keys and values have a projection each."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def heads(self, x: Any) -> Any:
        """Returns x with heads in front."""
        return x.view(x.size(0), x.size(1), HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

    def forward(self, x: Any, mask: Any = None) -> Any:
        """Returns the weighted values."""
        query, key, value = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(WIDTH // HEADS)
        weights = torch.softmax(scores if mask is None else scores + mask, -1)
        mixed = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous()
        return self.out(mixed.view(mixed.size(0), mixed.size(1), WIDTH))


class Layer(nn.Module):
    """A layer that normalises sums (`is_first` False), or what goes into attention and into the wide layer."""

    def __init__(self, is_first: bool) -> None:
        super().__init__()
        self.is_first = is_first
        self.attention, self.wide, self.narrow = Attention(), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.one, self.other = nn.LayerNorm(WIDTH, eps=1e-12), nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, x: Any, mask: Any = None) -> Any:
        """Returns the next x."""
        if self.is_first:
            x = self.attention(self.one(x), mask) + x
            return self.narrow(gelu(self.wide(self.other(x)))) + x
        x = self.one(self.attention(x, mask) + x)
        return self.other(self.narrow(gelu(self.wide(x))) + x)


class TextEncoder(nn.Module):
    """An encoder of words, with a mask and with two types of sentences."""

    inputs: ClassVar[dict[str, tuple[Any, ...]]] = {"ids": ("b", "s"), "mask": ("b", "s"), "types": ("b", "s")}

    def __init__(self) -> None:
        super().__init__()
        self.words, self.types = nn.Embedding(WORDS, WIDTH), nn.Embedding(2, WIDTH)
        self.positions, self.norm = nn.Embedding(POSITIONS, WIDTH), nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer(is_first=False) for _ in range(2))
        self.register_buffer("numbers", torch.arange(POSITIONS).expand(1, -1))

    def forward(self, ids: Any, mask: Any, types: Any) -> Any:
        """Returns a vector for each word."""
        added = (1.0 - mask.unsqueeze(1).unsqueeze(2).to(torch.float32)) * -10000.0
        x = self.words(ids) + self.types(types)
        x = self.norm(x + self.positions(self.numbers[:, : ids.size(1)]))
        for layer in self.layers:
            x = layer(x, added)
        return x


class ImageEncoder(nn.Module):
    """An encoder of square parts of an image."""

    inputs: ClassVar[dict[str, tuple[Any, ...]]] = {"x": ("b", 3, 16, 16)}

    def __init__(self) -> None:
        super().__init__()
        self.parts, self.norm = nn.Conv2d(3, WIDTH, 4, 4), nn.LayerNorm(WIDTH)
        self.first, self.places = nn.Parameter(torch.zeros(1, 1, WIDTH)), nn.Parameter(torch.randn(1, 17, WIDTH))
        self.layers = nn.ModuleList(Layer(is_first=True) for _ in range(2))

    def forward(self, x: Any) -> Any:
        """Returns a vector for each part, and one for the image."""
        x = self.parts(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.size(0), -1, -1), x], 1) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Columns(nn.Module):
    """A linear layer whose weight has a row for each input."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs) / 10), nn.Parameter(torch.randn(outputs))

    def forward(self, x: Any) -> Any:
        """Returns the product of the rows of x, plus the bias."""
        shape = (*x.size()[:-1], self.bias.size(0))
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(shape)


class CausalLayer(nn.Module):
    """A layer in which a word sees those before it; queries, keys and values have one projection."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.out = Columns(WIDTH, 3 * WIDTH), Columns(WIDTH, WIDTH)
        self.wide, self.narrow = Columns(WIDTH, 4 * WIDTH), Columns(4 * WIDTH, WIDTH)
        self.one, self.other = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.register_buffer("seen", torch.ones(1, 1, POSITIONS, POSITIONS, dtype=torch.bool).tril())

    def heads(self, x: Any) -> Any:
        """Returns x with heads in front."""
        return x.view(x.size(0), x.size(1), HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

    def attend(self, x: Any) -> Any:
        """Returns the weighted values."""
        query, key, value = (self.heads(part) for part in self.attention(x).split(WIDTH, dim=2))
        scores = torch.matmul(query, key.transpose(-1, -2)) / (WIDTH // HEADS) ** 0.5
        rows, columns = scores.size(-2), scores.size(-1)
        seen = self.seen[:, :, columns - rows : columns, :columns]
        weights = torch.softmax(torch.where(seen, scores, torch.tensor(-10000.0)), -1)
        mixed = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous()
        return self.out(mixed.view(mixed.size(0), mixed.size(1), WIDTH))

    def forward(self, x: Any) -> Any:
        """Returns the next x; the wide layer has gelu by tanh."""
        x = self.attend(self.one(x)) + x
        wide = self.wide(self.other(x))
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * torch.pow(wide, 3.0))
        return x + self.narrow(0.5 * wide * (1.0 + torch.tanh(inner)))


class TextDecoder(nn.Module):
    """A decoder that scores the next word; scores share the matrix of the words."""

    inputs: ClassVar[dict[str, tuple[Any, ...]]] = {"ids": ("b", "s")}

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.layers, self.norm = nn.ModuleList(CausalLayer() for _ in range(2)), nn.LayerNorm(WIDTH)
        self.register_buffer("numbers", torch.arange(POSITIONS).expand(1, -1))

    def forward(self, ids: Any) -> Any:
        """Returns a score of each word at each place."""
        x = self.words(ids) + self.positions(self.numbers[:, : ids.size(1)])
        for layer in self.layers:
            x = layer(x)
        return torch.matmul(self.norm(x), self.words.weight.t())


def save_module(path: Path, module: Any, arguments: tuple[Any, ...]) -> None:
    """Saves a module as an ONNX model; inputs and their open dimensions are those of `module.inputs`."""
    names = {name: {i: d for i, d in enumerate(dims) if isinstance(d, str)} for name, dims in module.inputs.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter is going to be replaced, and says so
        torch.onnx.export(
            module.eval(),
            arguments,
            path,
            dynamo=False,
            input_names=list(names),
            output_names=["y"],
            dynamic_axes=names,
            opset_version=14,
        )
