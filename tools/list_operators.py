"""Writes docs/operators.md: which ONNX operators are read, and how the single-operator cases of onnx fare.

Run from a checkout: python tools/list_operators.py
"""

import fnmatch
import re
import sys
import warnings
from argparse import ArgumentParser
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from attrs import define, field  # noqa: E402 - the checkout must be on the path first
from onnx.backend.test.loader import load_model_tests  # noqa: E402
from onnx.backend.test.runner import Runner  # noqa: E402

from allocator.progress import each  # noqa: E402
from engine.api import compile_graph  # noqa: E402
from engine.cli.progress import add_quiet, progress_shown  # noqa: E402
from engine.onnx.converters.late import Versions  # noqa: E402
from engine.onnx.converters.onnxruntime import norms  # noqa: E402
from engine.onnx.library import newest_opset, onnx  # noqa: E402
from engine.onnx.table import CONVERTERS, ML, ONNXRUNTIME, RARE  # noqa: E402
from engine.onnx_backend import Backend, as_input, outputs_of  # noqa: E402
from engine.text.errors import UnsupportedError  # noqa: E402
from ops.tensor.spec import COMPUTED, NARROW  # noqa: E402
from tools.entry import run_script  # noqa: E402

PATH = ROOT / "docs" / "operators.md"
_OLDEST = 7
SEVERAL = "several operators"
_ROUNDED = ("test_dft_inverse", "test_dft_inverse_opset19")
_ROUNDING = 1e-6
"""Cases whose expected values are a rounding away from the exact 0, which is more than the cases allow; the difference
that counts as none."""
_DRAWN = ("test_bernoulli*", "test_training_dropout", "test_training_dropout_mask", "test_training_dropout_default*")
_OTHER_NUMBERS = "numbers of another generator are expected; the shape and the type agree"
_REASONS = (
    "element type [a-z0-9]+",
    "(sequence|optional)(?=[)])",
    "operator set ai.onnx version [0-9]+",
    "training",
)


def operator_table() -> list[str]:
    """Returns a row for each ONNX operator that is read: its name, its operator sets, where its form changed."""
    rows = ["| ONNX operator | operator sets | forms that differ from |", "|---|---|---|"]
    for name, versions in sorted({**CONVERTERS, **RARE}.items()):
        rows.append(f"| {name} | {_range(versions)} | {_changes(versions)} |")
    return rows


def function_names() -> list[str]:
    """Returns the operators without a converter that onnx defines by others; those are read in their place."""
    names = set()
    for schema in onnx().defs.get_all_schemas():
        by_others = schema.has_function or schema.has_context_dependent_function
        if schema.domain == "" and by_others and schema.name not in CONVERTERS and schema.name not in RARE:
            names.add(schema.name)
    return sorted(names)


def text_of_operators() -> str:
    """Returns the part of the page that depends only on the importer."""
    head = [
        "# ONNX operators",
        "",
        f"Operator sets {_OLDEST} to {newest_opset()} of the default domain. This page is written by",
        "`tools/list_operators.py`.",
        "",
        *_of_types(),
        "## Read by a converter",
        "",
    ]
    names = ", ".join(function_names())
    rest = ["", "## Read by definition", "", f"{names}: if the operators of their definition in onnx can be read.", ""]
    return "\n".join([*head, *operator_table(), *_of_random_numbers(), *rest, *_of_onnxruntime(), *_of_ml()])


def _of_types() -> list[str]:
    """Returns the section of element types."""
    plain, narrow = (", ".join(sorted(f"`{d.name}`" for d in types)) for types in (COMPUTED, NARROW))
    return [
        "## Element types",
        "",
        f"{plain}.",
        "",
        f"Stored only, each element in a byte of its own: {narrow}. Cast, CastLike, BitCast, QuantizeLinear,",
        "DequantizeLinear and operators that only move elements (Reshape, Transpose, Concat, Slice, Gather and others)",
        "take these types. Operators that compute refuse them: put a Cast before such an operator. In ONNX files,",
        "several elements of less than 8 bits share a byte. They are unpacked when the file is read.",
        "",
        "Tensors of strings, of complex numbers and of `float6` are refused with the name of the tensor.",
        "",
    ]


def _of_random_numbers() -> list[str]:
    """Returns the section of operators that draw random numbers."""
    return [
        "",
        "## Random numbers",
        "",
        "Each run of a model draws the same numbers. They are a function (Philox4x32-10) of the attribute `seed`, of",
        "the names of the node and of its outputs, and of the place of an element. So two nodes with one seed draw",
        "different numbers.",
        "A loop that draws numbers is unrolled, so its length must be constant. A Scan that draws numbers is refused.",
        "The input of Bernoulli is the probability of 1, as ONNX says. In onnxruntime (1.31) it is that of 0.",
    ]


def _of_onnxruntime() -> list[str]:
    """Returns the section of the operators that onnxruntime adds."""
    names = {domain: ", ".join(sorted(table)) for domain, table in (("own", ONNXRUNTIME), ("", norms.DEFAULT_DOMAIN))}
    return [
        "## Operators of onnxruntime",
        "",
        "Files that onnxruntime has optimised or quantised have operators of its domain `com.microsoft`. Each becomes",
        f"operators of this project, which passes fuse again: {names['own']}.",
        "",
        f"It writes without a domain, in models of any operator set: {names['']}.",
        "",
        "- `MatMulNBits`: weights are kept in 8 bits each and dequantised when the network runs. The left matrix is",
        "  not quantised, whatever `accuracy_level` says.",
        "- `DynamicQuantizeLSTM`: weights are dequantised when the model is read. Inputs and states are not quantised.",
        "- `GroupQueryAttention`: rows of `present_key` and `present_value` after the last token have no meaning.",
        "- Quantised files: on processors without 8-bit dot products (VNNI), kernels need larger workspaces than those",
        "  of onnxruntime. The arena of a small encoder of the dynamic quantiser is 23 kB with AVX2; in onnxruntime it",
        "  is 7 kB.",
        "- `QLinear...`: real numbers are divided by the scale and rounded, half to even. If a last bit decides where",
        "  a number is rounded to, onnxruntime may give the next quantised value.",
        "",
        "If an input, an output or an attribute is not supported, the model is refused with the operator's name. Files",
        "that onnxruntime saved at a level above the extended one are refused: their operators are for one processor",
        "(domain `com.microsoft.nchwc`).",
        "",
    ]


def _of_ml() -> list[str]:
    """Returns the section of the operators that exporters of scikit-learn and of boosted trees write."""
    return [
        "## Models of scikit-learn",
        "",
        f"Exporters such as skl2onnx write these operators of the domain `ai.onnx.ml`: {', '.join(sorted(ML))}.",
        "",
        "- Trees are checked when the file is read: a cycle, or a node that does not exist, is an error. They run as",
        "  one operator, `tree_ensemble`.",
        "- If the labels of a classifier are texts, it gives the position of the label (int64) and not the text. In",
        "  scikit-learn, the text is `model.classes_[label]`. Texts as input, or as values of an encoder, are refused.",
        "- `ZipMap` gives its input: the matrix of probabilities, with a column for each class in the order of labels.",
        "- `OneHotEncoder` without `zeros` raises an error in the run if an element is no category.",
        "- If there is only one score, PROBIT is the only transform that is applied to it, as in onnxruntime.",
        "",
        "Where onnxruntime does not do what ONNX says, these operators do what ONNX says:",
        "",
        "- `TreeEnsembleClassifier` with votes for both of two classes gives the class with the greater score. With a",
        "  single class it gives its label. In both cases, onnxruntime gives 0 or 1.",
        "- `TreeEnsembleRegressor` adds `base_values` to each of several targets, even to one without a vote.",
        "- `TreeEnsemble` takes `post_transform` 1 as SOFTMAX and 2 as LOGISTIC; onnxruntime takes each for the other.",
        "- `Binarizer` makes 0 of NaN; onnxruntime refuses it.",
        "",
    ]


def _range(versions: Versions) -> str:
    first = max(versions[0][0], _OLDEST)
    last = versions[-1][0] - 1 if versions[-1][1] is None else None
    return f"{first} to {last}" if last else f"from {first}"


def _changes(versions: Versions) -> str:
    return ", ".join(str(since) for since, convert in versions[1:] if convert and since > _OLDEST)


@define
class Tally:
    """The results of the cases of one ONNX operator."""

    schemas: set[str] = field(factory=set)
    passed: int = 0
    refused: Counter[str] = field(factory=Counter)


def case_table(tallies: Mapping[str, Tally]) -> list[str]:
    """Returns a row for each ONNX operator: our operators that run it, cases that pass, refused cases by reason."""
    rows = ["| cases of | run by | pass | out of scope |", "|---|---|---|---|"]
    for name, tally in sorted(tallies.items()):
        refused = "; ".join(f"{n}: {reason}" for reason, n in sorted(tally.refused.items()))
        folded = "nothing: known when the model is read" if tally.passed and name != SEVERAL else ""
        shown = ", ".join(sorted(tally.schemas)) or folded
        rows.append(f"| {name} | {shown} | {tally.passed} | {refused} |")
    return rows


def run_cases(cases: Iterable[Any]) -> dict[str, Tally]:
    """Runs all cases. Raises AssertionError for one that neither passes nor is refused."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for case in cases:
        kinds = {node.op_type for node in case.model.graph.node}
        tally = tallies[kinds.pop() if len(kinds) == 1 else SEVERAL]
        try:
            schemas = _run(case)
        except UnsupportedError as error:
            tally.refused[_reason(str(error))] += 1
        else:
            if draws(case):
                tally.refused[_OTHER_NUMBERS] += 1
                continue
            tally.passed += 1
            tally.schemas |= schemas if tally is not tallies[SEVERAL] else set()
    return tallies


def _run(case: Any) -> set[str]:
    """Runs a case, compares as onnx's runner does, and gives the names of the operators that ran."""
    names: set[str] = set()
    for inputs, outputs in case.data_sets:
        graph, feeds = Backend.prepare(case.model).graph_for(inputs)
        check_outputs(case, outputs, outputs_of(case.model, compile_graph(graph, optimise=0).run(feeds)))
        names |= {operator.schema.name for operator in graph.operators}
    return names


def check_outputs(case: Any, wanted: Sequence[Any], ours: Sequence[Any]) -> None:
    """Compares outputs with those of a case as onnx's runner does, those of sequences one by one.

    Of random numbers, only shapes and types. Raises AssertionError.
    """
    expected, results = _by_place([as_input(o) for o in wanted]), _by_place(ours)
    assert list(expected) == list(results), f"{case.name}: outputs {list(expected)} are wanted, not {list(results)}"
    if draws(case):
        assert [(a.shape, a.dtype) for a in expected.values()] == [(a.shape, a.dtype) for a in results.values()]
        return
    tolerance = _ROUNDING if case.name in _ROUNDED else float(case.atol)
    Runner.assert_similar_outputs(list(expected.values()), list(results.values()), case.rtol, tolerance)


def draws(case: Any) -> bool:
    """Returns whether the outputs that a case expects are random numbers of onnx's own generator."""
    return any(fnmatch.fnmatch(case.name, pattern) for pattern in _DRAWN)


def _by_place(outputs: Sequence[Any]) -> dict[str, Any]:
    """Returns the tensors of outputs by the number of the output, and the place in its sequence."""
    places: dict[str, Any] = {}
    for i, output in enumerate(outputs):
        if isinstance(output, list):
            places |= {f"{i}[{j}]": array for j, array in enumerate([*output, np.zeros(0)])}
        elif output is not None:
            places[str(i)] = output
    return places


def _reason(message: str) -> str:
    """Returns the reason of an error, without the names of nodes and tensors."""
    match = re.search("|".join(_REASONS), message)
    return match.group() if match else "the operator is not there"


def _cases() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from load_model_tests(kind="node")


def main() -> None:
    """Runs all cases and writes the page."""
    parser = ArgumentParser(description=__doc__)
    add_quiet(parser)
    with progress_shown(parser.parse_args().quiet), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = run_cases(each("case", list(_cases()), lambda case: case.name))
    passed = sum(t.passed for t in results.values())
    total = passed + sum(t.refused.total() for t in results.values())
    cases = ["## Cases of the onnx package", "", f"{passed} of {total} pass; the others have a reason."]
    rounded = f"The expected values of {' and '.join(_ROUNDED)} are a rounding away from the exact 0: there,"
    cases += [f"{rounded} differences up to {_ROUNDING:g} count as none.", ""]
    PATH.write_text("\n".join([text_of_operators(), *cases, *case_table(results), ""]), encoding="utf-8")
    print(f"{PATH}: {passed} of {total} cases pass")


if __name__ == "__main__":
    run_script(main)
