"""A small network of convolutions learns scikit-learn's digits (1,797 images of 8 x 8) out of one arena.

    python tools/train_digits.py [--epochs 12] [--batch 64] [--mode static|dynamic] [--parallel POLICY]

Each run of the arena is one step: forward, backward and the update of all parameters. Needs scikit-learn.
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen
from sklearn.datasets import load_digits

import engine
import ops
from allocator.progress import each
from engine import Executable, Graph, Var
from engine.cli.main import guarded
from engine.cli.options.values import positive
from engine.cli.progress import add_quiet, progress_shown, say
from engine.text.units import format_bytes
from ops.tensor.spec import Array

TESTED = 360
"""Images, the last ones, that no step sees."""
CLASSES = 10


@frozen(eq=False)
class Digits:
    """Images float32 [count, 1, 8, 8] from 0 to 1, and what they show, int64 [count]."""

    images: Array
    labels: Array

    def batches(self, size: int, seed: int) -> Iterator[dict[str, Array]]:
        """Yields all images in a new order, `size` at a time. Images that do not fill a batch are left out."""
        order = np.random.default_rng(seed).permutation(len(self.labels))
        for start in range(0, len(order) - size + 1, size):
            rows = order[start : start + size]
            yield {"x": self.images[rows], "label": self.labels[rows]}


def digits() -> tuple[Digits, Digits]:
    """Returns the images to learn from and those to test with; the latter are the last in a seeded order."""
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, shown = (pixels[order] / 16).reshape(-1, 1, 8, 8).astype(np.float32), labels[order].astype(np.int64)
    learned, tested = slice(None, -TESTED), slice(-TESTED, None)
    return Digits(images[learned], shown[learned]), Digits(images[tested], shown[tested])


class Layers:
    """The layers of the network; their weights are parameters of the graph."""

    def __init__(self, graph: Graph, *, training: bool, seed: int = 0) -> None:
        self.graph, self.training = graph, training
        self.rng = np.random.default_rng(seed)

    def weight(self, name: str, *shape: int, scale: float) -> Var:
        """Adds a parameter that is normally distributed around 0."""
        return self.graph.parameter(self.rng.normal(0.0, scale, shape).astype(np.float32), name)

    def convolution(self, x: Var, outputs: int, name: str) -> Var:
        """Adds a 3 x 3 convolution, batch normalization and ReLU."""
        inputs = x.shape[1]
        x = ops.conv2d(x, self.weight(f"{name}/weight", outputs, inputs, 3, 3, scale=(2 / (9 * inputs)) ** 0.5), pads=1)
        ones, zeros = np.ones(outputs, np.float32), np.zeros(outputs, np.float32)
        scale, bias = self.graph.parameter(ones, f"{name}/scale"), self.graph.parameter(zeros, f"{name}/bias")
        mean = self.graph.parameter(zeros, f"{name}/mean", trainable=False)
        variance = self.graph.parameter(ones, f"{name}/variance", trainable=False)
        normalize = ops.batch_norm_running if self.training else ops.batch_norm
        return ops.relu(normalize(x, scale, bias, mean, variance))

    def linear(self, x: Var, outputs: int, name: str) -> Var:
        """Adds x @ w + b."""
        weight = self.weight(f"{name}/weight", x.shape[1], outputs, scale=x.shape[1] ** -0.5)
        return x @ weight + self.graph.parameter(np.zeros(outputs, np.float32), f"{name}/bias")


def network(batch: int, *, training: bool) -> Graph:
    """Builds the network: "x" [batch, 1, 8, 8] to "logits"; in training, also from "label", to "loss" instead."""
    graph = Graph("digits")
    layers = Layers(graph, training=training)
    x = graph.input("x", (batch, 1, 8, 8))
    x = layers.convolution(x, 16, "first")
    x = layers.convolution(x, 32, "second")
    x = layers.convolution(ops.max_pool(x, 2, strides=2), 32, "third")
    logits = layers.linear(ops.flatten(ops.max_pool(x, 2, strides=2)), CLASSES, "last")
    if training:
        graph.output(ops.softmax_cross_entropy(logits, graph.input("label", (batch,), "int64")), "loss")
    else:
        graph.output(logits, "logits")
    return graph


def trainer(batch: int) -> Graph:
    """Builds a graph of one training step."""
    graph = network(batch, training=True)
    engine.train_step(graph, graph.outputs["loss"], engine.SGD(0.05, momentum=0.9, weight_decay=1e-4))
    return graph


def accuracy(trained: Executable, tested: Digits) -> float:
    """Returns the share of images that are recognised with the parameters as they are now."""
    exe = engine.compile(network(len(tested.labels), training=False))
    held = trained.parameters
    exe.load({name: held[name] for name in exe.parameters})
    return float(np.mean(exe(x=tested.images)["logits"].argmax(axis=1) == tested.labels))


def train(exe: Executable, learned: Digits, batch: int, epoch: int) -> float:
    """Trains for one epoch. Returns the mean loss."""
    return float(np.mean([exe.run(feeds)["loss"] for feeds in learned.batches(batch, epoch)]))


def main(argv: Sequence[str] | None = None) -> int:
    """Trains the network and prints the loss of each epoch. Returns an exit code as that of `arenaplan`."""
    return guarded(lambda: _run(_parser().parse_args(argv)), "train_digits")


def _run(arguments: Namespace) -> int:
    with progress_shown(arguments.quiet):
        return _train(arguments)


def _train(arguments: Namespace) -> int:
    learned, tested = digits()
    exe = engine.compile(trainer(arguments.batch), mode=arguments.mode, parallel=arguments.parallel)
    print(f"{len(exe.graph.operators)} operators; one arena of {format_bytes(exe.arena_bytes)} for a whole step")
    for epoch in each("epoch", range(arguments.epochs), lambda _: ""):
        start = time.perf_counter()
        loss = train(exe, learned, arguments.batch, epoch)
        seconds, right = time.perf_counter() - start, accuracy(exe, tested)
        say(f"epoch {epoch + 1:3}: loss {loss:.4f}, {right:.1%} of {TESTED} test images right, {seconds:.2f} s")
    return 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser("train_digits", description=__doc__)
    parser.add_argument("--epochs", type=positive, default=12)
    parser.add_argument("--batch", type=positive, default=64)
    parser.add_argument("--mode", choices=("static", "dynamic"), default="static")
    parser.add_argument("--parallel", default="", help="a policy for operators that run at once, such as exact")
    add_quiet(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
