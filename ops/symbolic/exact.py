"""What an operator gives whatever the lengths are, proved by following its inference along every path.

Inference is run on dimensions. Where it compares two of them and nothing is proved, both answers are tried. What all
paths that raise no error give alike holds for all lengths.
"""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import define, field, fields_dict, frozen

from ops.schema.schema import Attrs, OpSchema, Specs
from ops.symbolic.normal_form import Form, NormalForms, combined
from ops.tensor.dims import Dim, Samples
from ops.tensor.errors import OpError, ShapeError

_MOST_PATHS = 64
"""Paths of one inference. A larger number proves more and takes longer; a convolution has up to four."""


class UnknownLengthError(ShapeError, TypeError):
    """A question about lengths that has one answer for some of them and another one for others."""


@define(eq=False)
class _Path:
    """One path of an inference: the first answers, and all answers by question."""

    firsts: tuple[bool, ...]
    answers: dict[Hashable, bool] = field(factory=dict)
    equal: list[Form] = field(factory=list)
    """Forms that are 0 on this path."""

    def answer(self, relation: str, difference: Form) -> bool:
        """Returns whether `difference relation 0` holds on this path."""
        question = (relation, difference)
        if question not in self.answers:
            number = len(self.answers)
            self.answers[question] = answer = number >= len(self.firsts) or self.firsts[number]
            if relation == "==" and answer:
                self.equal.append(difference)
        return self.answers[question]

    def others(self) -> Iterator[tuple[bool, ...]]:
        """Yields the first answers of the paths that branch off behind them."""
        answers = tuple(self.answers.values())
        for i in range(len(self.firsts), len(answers)):
            yield *answers[:i], not answers[i]


@frozen(eq=False)
class Proved:
    """The lengths of all outputs of an operator that are right for all lengths, None for each that is not proved.

    No output has an entry where nothing is proved. The operator `always_fits` if no lengths are refused.
    """

    lengths: tuple[tuple[Dim | int | None, ...], ...] = ()
    always_fits: bool = False

    @property
    def is_complete(self) -> bool:
        """True if all lengths are proved, and none are refused."""
        return self.always_fits and not any(n is None for shape in self.lengths for n in shape)


NOTHING = Proved()


@define(eq=False)
class ExactSamples(Samples):
    """Samples whose dimensions are compared by their forms first: what is proved needs no guard.

    Inside `undecided`, nothing is decided: dimensions that are not proved to be equal count as different, and which of
    two is less raises UnknownLengthError.
    """

    forms: NormalForms = field(factory=lambda: NormalForms(lambda dim: dim), kw_only=True)
    _is_undecided: bool = field(default=False, kw_only=True)
    _path: _Path | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, samples: Samples, forms: NormalForms) -> "ExactSamples":
        """Returns a table of the same samples, without guards. Its dimensions are to be added to `named`."""
        fields = {name: getattr(samples, name) for name in fields_dict(Samples)}
        fields |= {"alive": list(samples.alive), "guards": {}, "named": [], "guessed": set(samples.guessed)}
        return cls(**fields, forms=forms)

    @contextmanager
    def undecided(self) -> Iterator[None]:
        """Decides nothing inside the block."""
        before, self._is_undecided = self._is_undecided, True
        try:
            yield
        finally:
            self._is_undecided = before

    def decide(self, left: Dim, relation: str, right: Any) -> bool:
        """Returns what is proved, or goes on as `Samples.decide` where the table may decide."""
        right = right.item() if hasattr(right, "item") else right
        if isinstance(right, float):
            if relation == "==" and not right.is_integer():
                return False
            right = int(right) if right.is_integer() else int(right // 1) + (relation == "<")
        answer = self.forms.proved(left, relation, right)
        if answer is not None:
            return answer
        if self._path is not None:
            return self._path.answer(relation, combined(self.forms.form(left), self.forms.form(right), -1))
        if not self._is_undecided:
            return super().decide(left, relation, right)
        if relation == "==":
            return False
        raise UnknownLengthError(f"whether {left} {relation} {right} depends on lengths that are not known yet")

    def no_number(self, message: str) -> TypeError:
        """Returns the error of a dimension that is used as a number: a pass passes by."""
        return UnknownLengthError(message) if self._is_undecided else TypeError(message)

    def infer(self, schema: OpSchema, inputs: Specs, attrs: Attrs) -> "Proved":
        """Returns what is proved of the outputs. `attrs` are complete, and may have dimensions in them."""
        try:
            every = list(self._paths(schema, inputs, attrs))
        except UnknownLengthError:
            return NOTHING
        paths = [(path, outputs) for path, outputs in every if outputs]
        if not paths or len({tuple((s.ndim, s.dtype) for s in outputs) for _, outputs in paths}) > 1:
            return NOTHING
        zeros = [path.equal for path, _ in paths]
        columns = zip(*(specs for _, specs in paths), strict=True)
        lengths = tuple(
            tuple(self._common(lengths, zeros) for lengths in zip(*(s.shape for s in specs), strict=True))
            for specs in columns
        )
        return Proved(lengths, always_fits=len(paths) == len(every))

    def _paths(self, schema: OpSchema, inputs: Specs, attrs: Attrs) -> Iterator[tuple[_Path, Specs]]:
        """Yields all paths and what they give: () for an error. Raises UnknownLengthError where that is not known."""
        left, count = [tuple[bool, ...]()], 0
        while left:
            path, count = _Path(left.pop()), count + 1
            if count > _MOST_PATHS:
                raise UnknownLengthError(f"{schema.name} has too many paths")
            self._path = path
            try:
                outputs = schema.infer(inputs, attrs)
            except UnknownLengthError:
                raise
            except OpError:
                outputs = ()
            except Exception as error:  # inference that needs numbers
                raise UnknownLengthError(f"{schema.name} needs numbers") from error
            finally:
                self._path = None
            left += path.others()
            yield path, outputs

    def _common(self, lengths: Sequence[Dim | int], zeros: Sequence[Sequence[Form]]) -> Dim | int | None:
        """Returns a length that is right on each path, where `zeros` are 0; None where there is none."""
        for length in lengths:
            form = self.forms.form(length)
            if all(
                self._is_same(form, self.forms.form(other), equal) for other, equal in zip(lengths, zeros, strict=True)
            ):
                return self.forms.of_form(form)
        return None

    def _is_same(self, one: Form, other: Form, zeros: Sequence[Form]) -> bool:
        if one == other:
            return True
        numbers = dict(solved for zero in zeros for solved in self.forms.solved(zero))
        return bool(numbers) and self.forms.substituted(one, numbers) == self.forms.substituted(other, numbers)
