"""Small modules of PyTorch of many kinds, with arguments, and the dimensions of the arguments that are open."""

from collections.abc import Callable
from typing import Any

import torch
from attrs import frozen
from torch import nn
from torch.nn import functional


@frozen(eq=False)
class Case:
    """A module, a function that makes arguments of a length, the open dimensions, and layers that plans must name."""

    module: nn.Module
    arguments: Callable[[int], tuple[Any, ...]]
    dynamic_shapes: Any = None
    layers: tuple[str, ...] = ()
    tolerance: float = 1e-4


class Block(nn.Module):
    """Two convolutions around which the input is added."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> Any:
        return functional.relu(x + self.conv2(functional.relu(self.bn1(self.conv1(x)))))


class ResNet(nn.Module):
    """A residual network in small."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layer1 = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 10)

    def forward(self, image: torch.Tensor) -> Any:
        return self.head(functional.max_pool2d(self.layer1(self.stem(image)), 2).mean((2, 3)))


class Attention(nn.Module):
    """Attention of several heads over (batch, length, width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> Any:
        parts = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = functional.scaled_dot_product_attention(*parts)
        return self.out(y.transpose(1, 2).flatten(2))


class UNet(nn.Module):
    """A network that goes down and up again, with attention at the bottom."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.down = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1)
        self.norm, self.attention = nn.GroupNorm(4, 16), Attention(16, 2)
        self.up, self.leave = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> Any:
        high = functional.silu(self.enter(x))
        low = self.norm(self.down(high))
        tokens = self.attention(low.flatten(2).transpose(1, 2))
        low = low + tokens.transpose(1, 2).reshape(low.shape)
        return self.leave(torch.cat([high, self.up(low)], 1))


class Layer(nn.Module):
    """A layer of a transformer, with the norms in front."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width, 4), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """A vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, 4)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 32)), nn.Parameter(torch.randn(1, 17, 32))
        self.layers, self.head = nn.Sequential(Layer(32), Layer(32)), nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> Any:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.layers(x)[:, 0])


class Swin(nn.Module):
    """Attention within windows that are shifted by a roll, and a merge of neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(16), Layer(16)])
        self.merge = nn.Linear(64, 32, bias=False)

    def forward(self, x: torch.Tensor) -> Any:
        n, h, w, c = x.shape
        for shift, layer in zip((0, 2), self.layers, strict=True):
            x = torch.roll(x, (-shift, -shift), (1, 2))
            windows = x.reshape(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
            y = layer(windows).reshape(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
            x = torch.roll(y, (shift, shift), (1, 2))
        return self.merge(torch.cat([x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)], -1))


class Wav2Vec(nn.Module):
    """Convolutions over sound, a convolution of places, and a transformer."""

    def __init__(self) -> None:
        super().__init__()
        convolutions = nn.Conv1d(1, 16, 10, 5), nn.GroupNorm(16, 16), nn.GELU(), nn.Conv1d(16, 32, 3, 2), nn.GELU()
        self.features = nn.Sequential(*convolutions)
        self.places = nn.Conv1d(32, 32, 8, padding=4, groups=4)
        self.layers = nn.Sequential(Layer(32), Layer(32))

    def forward(self, sound: torch.Tensor) -> Any:
        x = self.features(sound[:, None])
        x = x + functional.gelu(self.places(x)[..., :-1])
        return self.layers(x.transpose(1, 2))


class Seq2Seq(nn.Module):
    """LSTMs that read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.encoder, self.decoder = nn.LSTM(16, 16, batch_first=True), nn.LSTM(16, 16, batch_first=True)
        self.out = nn.Linear(16, 20)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> Any:
        _, state = self.encoder(self.embed(source))
        return self.out(self.decoder(self.embed(target), state)[0])


class Translator(nn.Module):
    """nn.Transformer with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> Any:
        n = target.shape[1]
        mask = torch.full((n, n), -torch.inf).triu(1)
        return self.transformer(source, target, tgt_mask=mask, tgt_is_causal=True)


class SpatialTransformer(nn.Module):
    """An image that is turned by what a layer sees in it."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Linear(3 * 8 * 8, 6)

    def forward(self, image: torch.Tensor) -> Any:
        theta = self.look(image.flatten(1)).reshape(-1, 2, 3)
        grid = functional.affine_grid(theta, list(image.shape), align_corners=False)
        return functional.grid_sample(image, grid, align_corners=False)


class RmsNorm(nn.Module):
    """Rows over the root of their mean square."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Llama(nn.Module):
    """Rotary embeddings, grouped queries, gated products; the head is the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.norm, self.q, self.kv, self.o = RmsNorm(32), nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 32)
        self.gate, self.up, self.down = (nn.Linear(*s, bias=False) for s in ((32, 64), (32, 64), (64, 32)))
        self.register_buffer("frequencies", 1 / 1e4 ** (torch.arange(0, 8, 2) / 8))

    def turned(self, x: torch.Tensor) -> Any:
        """Turns pairs of elements by angles that grow with their place."""
        angles = torch.outer(torch.arange(x.shape[2], dtype=torch.float32), self.frequencies)
        angles = torch.cat([angles, angles], -1)
        a, b = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-b, a], -1) * angles.sin()

    def forward(self, tokens: torch.Tensor) -> Any:
        x = self.embed(tokens)
        y = self.norm(x)
        q = self.q(y).unflatten(-1, (4, 8)).transpose(1, 2)
        k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2).repeat_interleave(2, 1) for t in self.kv(y).chunk(2, -1))
        y = functional.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        x = x + self.down(functional.silu(self.gate(x)) * self.up(x))
        return x @ self.embed.weight.T


class Bags(nn.Module):
    """Means of embeddings, of three bags of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.bag, self.out = nn.EmbeddingBag(20, 16, mode="mean"), nn.Linear(16, 4)

    def forward(self, tokens: torch.Tensor, offsets: torch.Tensor) -> Any:
        return self.out(self.bag(tokens, offsets))


def _bags(n: int) -> tuple[Any, ...]:
    """Returns 3 * n tokens, and where three bags of them begin; the second one is empty."""
    return torch.randint(0, 20, (3 * n,)), torch.tensor([0, n, n])


class Branches(nn.Module):
    """One of two layers, by what is in the input."""

    def __init__(self) -> None:
        super().__init__()
        self.yes, self.no = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda v: functional.relu(self.yes(v)), lambda v: self.no(v) - 1, (x,))


class Chosen(nn.Module):
    """The rows that are above zero."""

    def forward(self, x: torch.Tensor) -> Any:
        return x[x[:, 0] > 0] * 2


class Undecided(nn.Module):
    """Python's `if` on a value, which cannot be exported."""

    def forward(self, x: torch.Tensor) -> Any:
        return x + 1 if x.sum() > 0 else x


class Video(nn.Module):
    """Convolutions in three dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv3d(2, 8, 3, padding=1), nn.BatchNorm3d(8)

    def forward(self, x: torch.Tensor) -> Any:
        return functional.avg_pool3d(functional.relu(self.norm(self.conv(x))), 2)


class Buffers(nn.Module):
    """Buffers of numbers and of places, and outputs in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.rand(5))
        self.register_buffer("places", torch.tensor([4, 0, 2]))

    def forward(self, x: torch.Tensor) -> Any:
        return {"scaled": x * self.scale, "picked": x[:, self.places]}


def _open(*axes: tuple[int, ...]) -> Any:
    """Returns the dynamic shapes of arguments: the axes of each that are open."""
    return tuple(dict.fromkeys(a, torch.export.Dim.DYNAMIC) for a in axes)


def _tokens(*shape: int) -> torch.Tensor:
    return torch.randint(20, shape)


def _images(channels: int, size: int) -> Callable[[int], tuple[Any, ...]]:
    return lambda n: (torch.randn(n, channels, size, size),)


def _halves() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).half()


CASES: dict[str, Callable[[], Case]] = {
    "cnn": lambda: Case(ResNet(), _images(3, 16), _open((0,)), ("stem", "layer1.0.conv2", "head")),
    "unet": lambda: Case(UNet(), _images(3, 8), _open((0,)), ("attention.qkv", "leave")),
    "vit": lambda: Case(ViT(), _images(3, 16), _open((0,)), ("patches", "layers.1.mlp.0")),
    "swin": lambda: Case(
        Swin(), lambda n: (torch.randn(n, 8, 8, 16),), _open((0,)), ("layers.1.attention.out", "merge")
    ),
    "wav2vec": lambda: Case(Wav2Vec(), lambda n: (torch.randn(2, 100 * n),), _open((1,)), ("features.0", "places")),
    "seq2seq": lambda: Case(
        Seq2Seq(), lambda n: (_tokens(n, 5), _tokens(n, 3)), _open((0,), (0,)), ("encoder", "decoder", "out")
    ),
    "transformer": lambda: Case(
        Translator(), lambda n: (torch.randn(2, 5, 16), torch.randn(2, n, 16)), _open((), (1,)), ("transformer",)
    ),
    "spatial transformer": lambda: Case(SpatialTransformer(), _images(3, 8), _open((0,)), ("look",)),
    "llama": lambda: Case(Llama(), lambda n: (_tokens(2, n),), _open((1,)), ("q", "down", "norm")),
    "embedding bag": lambda: Case(Bags(), _bags, _open((0,), ()), ("bag", "out")),
    "cond": lambda: Case(Branches(), lambda n: (torch.randn(n, 6),), _open((0,))),
    "boolean index": lambda: Case(Chosen(), lambda n: (torch.randn(3 * n, 4),), _open((0,))),
    "conv3d": lambda: Case(Video(), lambda n: (torch.randn(n, 2, 4, 6, 6),), _open((0,))),
    "float16": lambda: Case(_halves(), lambda n: (torch.randn(n, 8).half(),), _open((0,)), ("0", "2"), tolerance=4e-3),
    "buffers": lambda: Case(Buffers(), lambda n: (torch.randn(n, 5),), _open((0,))),
}
"""By kind."""
