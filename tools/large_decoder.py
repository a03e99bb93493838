"""A decoder of 70 billion weights on paper: its shapes, its weights in bfloat16, and no weight in memory.

    python -m tools.large_decoder [--tokens N] [--layers N] [--objective NAME]

The sizes are those of Llama 2 70B (Touvron et al., 2023): 80 layers of width 8,192, 64 heads that share 8 keys and
values, gated products of width 28,672, 32,000 tokens. Each row of the table is a partition over so many machines of one
size. Nothing is run, so nothing needs the weights: they are constants whose data nobody asks for.
"""

import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NoReturn

from attrs import field, frozen

import ops
from allocator.cuts.problem import OBJECTIVES, TRAFFIC
from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown
from engine.graph.deferred import Deferred
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.partitions.partition import partition
from engine.partitions.result import Partition
from engine.text.errors import BudgetError, UndecidedError
from engine.text.units import format_bytes
from engine.zoo.transformer import attend, join_heads, split_heads
from ops.tensor.spec import BFLOAT16, TensorSpec
from tools.benchmark_tables import markdown

MACHINES = (2, 4, 8, 16, 32, 64)
_HEAD = ("machines", "each", "weights", "arena", "sent in a run", "throughput", "gap", "time")
SIZES = ("24GiB", "40GiB", "80GiB")


@frozen
class Size:
    """The sizes of a decoder; each of `shared` heads of keys and values serves several heads of queries."""

    layers: int = 80
    width: int = 8192
    heads: int = 64
    shared: int = 8
    hidden: int = 28672
    vocabulary: int = 32000
    tokens: int = 8192


def _nobody(name: str) -> NoReturn:
    raise RuntimeError(f"{name} is on paper only")


@frozen(eq=False)
class _Paper:
    """Weights in bfloat16 without data."""

    graph: Graph
    sizes: Size
    numbers: dict[str, int] = field(factory=dict)

    def weight(self, kind: str, *shape: int) -> Var:
        """Adds a weight."""
        number = self.numbers.setdefault(kind, 0)
        self.numbers[kind] += 1
        name, spec = f"{kind}_{number}/weight", TensorSpec(shape, BFLOAT16)
        return self.graph.add_constant(name, spec, Deferred(spec, partial(_nobody, name)))

    def dense(self, x: Var, kind: str, outputs: int) -> Var:
        """Adds a linear layer without a bias."""
        return x @ self.weight(kind, int(x.shape[-1]), outputs)

    def norm(self, x: Var) -> Var:
        """Adds a normalization by the root of the mean square."""
        return ops.rms_norm(x, self.weight("norm", int(x.shape[-1])))

    def attention(self, x: Var, bias: Var) -> Var:
        """Adds attention of each token to those before it."""
        heads, shared, size = self.sizes.heads, self.sizes.shared, self.sizes.width // self.sizes.heads
        q = split_heads(self.dense(x, "query", heads * size), heads)
        k, v = (split_heads(self.dense(x, kind, shared * size), shared) for kind in ("key", "value"))
        q = ops.reshape(q, (1, shared, (heads // shared) * int(x.shape[1]), size))
        scores = attend(q, ops.transpose(k, (0, 1, 3, 2)), v, bias)
        mixed = ops.reshape(scores, (1, heads, int(x.shape[1]), size))
        return self.dense(join_heads(mixed), "attention", self.sizes.width)

    def feed_forward(self, x: Var) -> Var:
        """Adds a gated product and a product back to the width."""
        gate, wide = (self.dense(x, kind, self.sizes.hidden) for kind in ("gate", "wide"))
        return self.dense(ops.swish(gate) * wide, "narrow", self.sizes.width)


def decoder(size: Size = Size()) -> Graph:
    """Returns the graph of one run over `tokens` tokens: ids [1, tokens] to the logits of the last one."""
    graph = Graph("decoder")
    paper = _Paper(graph, size)
    ids = graph.input("ids", (1, size.tokens), "int64")
    x = ops.gather(paper.weight("token", size.vocabulary, size.width), ids)
    bias = graph.input("mask", (1, 1, size.heads // size.shared * size.tokens, size.tokens), BFLOAT16)
    for _ in each("layer", range(size.layers)):
        x = x + paper.attention(paper.norm(x), bias)
        x = x + paper.feed_forward(paper.norm(x))
    graph.output(paper.dense(paper.norm(x[:, -1]), "logits", size.vocabulary), "y")
    return graph


def row(graph: Graph, machines: int, size: str, objective: str) -> tuple[str, ...]:
    """Returns the row of a partition: what the fullest part holds, what is sent, or why there is none."""
    begin, shown = time.process_time(), size.replace("GiB", " GiB")
    try:
        result = partition(graph, [size] * machines, objective, optimise=0, prepack=False)
    except (BudgetError, UndecidedError) as error:
        needed = str(error).partition(": ")[2].partition(", ")[0]
        return (f"{machines}", shown, needed, "", "", "", "", f"{time.process_time() - begin:.1f} s")
    return (f"{machines}", shown, *_told(result), f"{time.process_time() - begin:.1f} s")


def _told(result: Partition) -> Iterator[str]:
    fullest = max(result.parts, key=lambda part: part.fill)
    yield format_bytes(fullest.weights_bytes)
    yield format_bytes(fullest.arena_bytes)
    yield format_bytes(result.traffic_bytes)
    yield f"{result.speedup:.1f} x"
    yield "optimal" if not result.gap else f"{result.gap:.2%}"


def table(size: Size, objective: str) -> str:
    """Returns the table of partitions over all machines."""
    graph = decoder(size)
    machines = [(str(number), size_of_each) for number in MACHINES for size_of_each in SIZES]
    rows = [
        row(graph, int(number), size_of_each, objective)
        for number, size_of_each in each("machines", machines, " x ".join)
    ]
    return markdown([_HEAD, *rows])


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=Size().tokens)
    parser.add_argument("--layers", type=int, default=Size().layers)
    parser.add_argument("--objective", choices=OBJECTIVES, default=TRAFFIC)
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet):
        print(table(Size(layers=arguments.layers, tokens=arguments.tokens), arguments.objective))
    return 0


if __name__ == "__main__":
    sys.exit(main())
