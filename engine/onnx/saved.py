"""ONNX files with an embedded plan: the model as it was, with the plan in its metadata."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from allocator.io.files import write_whole
from engine import saved as saving
from engine.onnx.annotations import annotate, clear
from engine.onnx.embedded import PREFIX, plan_of, texts_of
from engine.onnx.file import read_model
from engine.onnx.library import ModelProto, encode_error, one_line
from engine.planning.placed import PlacedPlan
from engine.saved.embedded import EmbeddedPlan
from engine.text.errors import ModelError, OptionError, OtherPlanError, PlanRefusedError

_WITH_NOTES = 10
"""The first IR version in which nodes and values have metadata."""


def load_plan(source: str | Path | ModelProto, *, required: bool = False) -> EmbeddedPlan | None:
    """Returns the plan embedded in an ONNX file or an onnx.ModelProto, for `engine.make_plan` and `engine.compile`.

    Returns None where there is none, unless one is `required`. A required plan is followed or refused: no other plan is
    made in its place. Raises ModelError for what is no model, PlanRefusedError for a plan that is damaged.
    """
    proto = read_model(source).proto
    name = os.fspath(source) if isinstance(source, (str, Path)) else "the model"
    what = f"the plan in {name}"
    texts: dict[str, str] = {}
    for entry in proto.metadata_props:
        if entry.key.startswith(PREFIX):
            if entry.key in texts:
                raise PlanRefusedError(f"{what}: metadata {entry.key!r} is there twice")
            texts[entry.key] = entry.value
    if texts:
        return plan_of(texts, what, required)
    if required:
        raise OtherPlanError(f"{name} carries no plan, and one is required; `arenaplan plan -o FILE.onnx` writes one")
    return None


def save_plan(plan: PlacedPlan, source: str | Path, target: str | Path) -> None:
    """Writes the model in the file `source` to `target`, with a plan of its graph in its metadata.

    Nothing else of the model changes, and no weights are read that lie in files of their own. The same plan gives the
    same bytes; `target` may be `source`. Raises ModelError, OptionError where the plan is one of another model, or
    weights would be left behind or written over, OtherPlanError where it cannot be carried, OSError.
    """
    model = read_model(source).proto
    _check_same(plan, model, source)
    _check_reachable(model, Path(source), Path(target))
    embedded = saving.embed(plan)
    clear(model)
    for key, text in texts_of(embedded).items():
        model.metadata_props.add(key=key, value=text)
    if model.ir_version >= _WITH_NOTES:
        annotate(model.graph, plan)
    write_whole(Path(target), _bytes(model))


def _check_same(plan: PlacedPlan, model: ModelProto, source: str | Path) -> None:
    """Checks that the plan has the outputs of the model, and only inputs of the model; each may be several tensors."""
    graph = plan.lowered.graph
    outputs, inputs = _names(model.graph.output, graph.outputs), _names(model.graph.input, graph.inputs)
    wanted = [o.name for o in model.graph.output if o.name in outputs or not _may_be_empty(o)]
    if outputs != wanted or not {i.name for i in model.graph.input}.issuperset(inputs):
        raise OptionError(f"the plan of {graph.name!r} is none of the model in {os.fspath(source)!r}")


def _names(infos: Iterable[Any], tensors: Iterable[str]) -> list[str]:
    """Returns the names of a model's values that these tensors are, or are elements of (`x[0]`), in their order."""
    names = {i.name for i in infos}
    return list(dict.fromkeys(t if t in names else t.rpartition("[")[0] for t in tensors))


def _may_be_empty(info: Any) -> bool:
    """Returns whether a value is no tensor, but a sequence or an optional."""
    return info.type.WhichOneof("value") in ("sequence_type", "optional_type")


def _check_reachable(model: ModelProto, source: Path, target: Path) -> None:
    """Checks that the weight files, which the model names relative to its folder, are also beside the new file.

    Files of equal size count as the same. None of them may be the file that is written.
    """
    here, there = source.resolve().parent, target.resolve().parent
    for name in sorted(set(_external(model))):
        one, other = here / name, there / name
        if _is_one_of(target, (one, other)):
            raise OptionError(f"the weights of {source} lie in {target}: save the plan under another name")
        if here != there and (not other.is_file() or (one.is_file() and one.stat().st_size != other.stat().st_size)):
            raise OptionError(f"weights lie in {name!r} beside {source}: save the plan there, or copy that file first")


def _is_one_of(target: Path, files: Iterable[Path]) -> bool:
    """Returns whether the target is one of the files, by any of its names."""
    return any(
        target.resolve() == f.resolve() or (target.exists() and f.exists() and target.samefile(f)) for f in files
    )


def _external(message: Any) -> Iterator[str]:
    """Yields the locations of data in other files, for all tensors in a message."""
    if message.DESCRIPTOR.name == "TensorProto":
        yield from (e.value for e in message.external_data if e.key == "location")
        return
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in (value,) if hasattr(value, "ListFields") else value:
                yield from _external(part)


def _bytes(model: ModelProto) -> bytes:
    try:
        content: bytes = model.SerializeToString(deterministic=True)
    except (ValueError, encode_error()) as error:
        raise ModelError(f"the model is too large for one file: {one_line(error)}") from error
    return content
