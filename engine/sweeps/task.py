"""A task of a sweep: one model that is planned in one way. It is small: it names the model, and carries no weights."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, frozen

from allocator.problem import NO_CAPACITY
from engine.models.named import NamedModel, as_length, with_value
from engine.models.zoo import is_zoo
from engine.planning.options import FIELDS, Options
from engine.workers.serve import own_version

Setting = tuple[str, str]
"""A name that is varied, and its value as a text."""
BATCH, BUDGET = "batch", "budget"
PLAN = "plan"
"""The measure of a sweep without a preset."""
_CHUNK = 2**20
_DIGITS = 16


@frozen(eq=False)
class Task:
    """A model, with what is planned of it and how.

    `settings` are the values of all that is varied, and `lengths` those among them that are of the model: options of a
    network of the zoo, and dimensions. `options` are those of planning. The plan is run `runs` times on `threads`
    threads, after a first time. `measure` names what its row tells (`engine.sweeps.measures`). `operators` are files
    with operators of the user's own. `digest` is the task's identity.
    """

    title: str
    named: NamedModel
    settings: tuple[Setting, ...]
    lengths: tuple[Setting, ...]
    options: Mapping[str, Any]
    budget: int | str = NO_CAPACITY
    recompute: bool = True
    runs: int = 0
    threads: int = 1
    measure: str = PLAN
    operators: tuple[Path, ...] = ()
    digest: str = ""

    @property
    def model(self) -> NamedModel:
        """Returns the model with its lengths. Raises OptionError, ModelError."""
        named = self.named
        for name, value in self.lengths:
            named = with_value(named, name, value)
        return named

    def apart_from(self, name: str) -> tuple[NamedModel, int]:
        """Returns the model with all its lengths but one, and the value of that one. Raises OptionError, ModelError."""
        named = evolve(self.named, lengths=())
        texts = {key: str(value) for key, value in self.named.lengths} | dict(self.lengths)
        length = as_length(name, texts.pop(name))
        for key, text in texts.items():
            named = with_value(named, key, text)
        return named, length

    def identified(self, file: str) -> "Task":
        """Returns the task with its digest: of the model and its `file`, all options, and this project's version."""
        options = Options(**self.options)
        said = {
            "version": own_version(),
            "named": asdict(self.named),
            "file": file,
            "options": {name: repr(getattr(options, name)) for name in FIELDS},
        }
        rest = [self.title, self.settings, self.lengths, self.budget, self.recompute]
        rest += [self.runs, self.threads, self.measure]
        digest = hashlib.sha256(json.dumps([said, rest], default=str).encode()).hexdigest()
        return evolve(self, digest=digest[:_DIGITS])


def is_of_model(name: str) -> bool:
    """Returns whether what is varied is an option of a network of the zoo or a dimension, and no option of planning."""
    return name not in FIELDS and name != BUDGET


def placed(model: Path) -> Path:
    """Returns the path of a model for workers, who may be in another folder."""
    return model if is_zoo(model) else model.absolute()


def file_digest(model: Path) -> str:
    """Returns the digest of a file's bytes; "" where there is none to read, of which a row will tell."""
    if is_zoo(model):
        return ""
    digest = hashlib.sha256()
    try:
        with model.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError:
        return ""
    return digest.hexdigest()
