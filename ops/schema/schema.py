"""What an operator declares of itself: inference, kernels, workspace, forwards, cost. The planner decides the rest."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import field, frozen

from ops.schema.attributes import REQUIRED, Attribute
from ops.schema.backends import NOBODY, NUMPY, PLAIN
from ops.schema.workspace import dense_bytes
from ops.tensor.errors import ArityError, AttributeValueError, GradientError, OpError, SchemaError, ShapeError
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec, new_arrays

Attrs = Mapping[str, Any]
Specs = tuple[TensorSpec, ...]


@frozen
class Signature:
    """One operator with everything but the data: specs of its inputs and outputs, its attributes.

    `constants` are the positions of inputs whose data never changes, so that a kernel may have packed them. `threads`
    is on how many a kernel of a library runs that plans its workspace, and packs, for a number of them.
    """

    inputs: Specs
    outputs: Specs
    attrs: Attrs
    constants: frozenset[int] = frozenset()
    threads: int = 1

    @property
    def x(self) -> TensorSpec:
        """Returns the first input."""
        return self.inputs[0]

    @property
    def y(self) -> TensorSpec:
        """Returns the first output."""
        return self.outputs[0]

    @property
    def nbytes(self) -> int:
        """Returns the bytes of all inputs and outputs."""
        return sum(s.nbytes for s in self.inputs + self.outputs)


@frozen
class Overwrite:
    """Permission: `output` may be written into the bytes of the dense `input`, `offset` bytes behind its first one.

    A schema that declares it promises that its kernels are right when the two start at that very distance. Where one
    tensor is given for several inputs, it is overwritten only if each of them allows it.
    """

    output: int
    input: int
    offset: int = 0


@frozen
class Cost:
    """Work of one run: floating-point (or integer) operations, and bytes read plus written."""

    flops: int
    bytes: int


@frozen(eq=False)
class Binding:
    """The arrays of one call. Outputs are dense, or lie as the kernel `writes`.

    `temporaries` are dense arrays of the specs that the kernel declared; they hold anything, and lie anywhere.
    """

    signature: Signature
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    temporaries: tuple[Array, ...] = ()
    packed: tuple[Array, ...] = ()

    @property
    def attrs(self) -> Attrs:
        """Returns the attributes."""
        return self.signature.attrs

    @property
    def x(self) -> Array:
        """Returns the first input."""
        return self.inputs[0]

    @property
    def y(self) -> Array:
        """Returns the first output."""
        return self.outputs[0]


Thunk = Callable[[], object]
"""A call bound to its arrays: runs the kernel once, each time it is called. Its result is ignored."""


def no_temporaries(_: Signature) -> Specs:
    """Returns no specs, for kernels that need nothing but their inputs and outputs."""
    return ()


def no_packing(_: Signature, __: Mapping[int, Array]) -> tuple[Array, ...]:
    """Packs nothing, for kernels that read constants as they are."""
    return ()


def packs_nothing(_: Signature) -> Specs:
    """Returns no specs, for kernels that read constants as they are."""
    return ()


def always(_: Signature) -> str:
    """Returns no reason, for kernels that take every signature."""
    return ""


def unless(accepts: Callable[[Signature], bool], reason: str) -> Callable[[Signature], str]:
    """Returns a function that gives the reason why a kernel is not taken, nothing where `accepts` holds."""

    def unsupported(signature: Signature) -> str:
        return "" if accepts(signature) else reason

    return unsupported


def no_overwrites(_: Signature) -> tuple[Overwrite, ...]:
    """Permits no overwrite, for operators whose outputs never take their inputs' bytes."""
    return ()


def overwrites_first(_: Signature) -> tuple[Overwrite, ...]:
    """Permits the first output to take the bytes of the first input, from the first byte on."""
    return (Overwrite(0, 0),)


def overwrites_either(_: Signature) -> tuple[Overwrite, ...]:
    """Permits the first output to take the bytes of the first input, or of the second."""
    return (Overwrite(0, 0), Overwrite(0, 1))


def overwrites_from(first: int) -> Callable[[Signature], tuple[Overwrite, ...]]:
    """Returns a schema's `overwrites`: the output may take the bytes of inputs from `first` on that have its spec."""

    def overwrites(signature: Signature) -> tuple[Overwrite, ...]:
        inputs = enumerate(signature.inputs[first:], first)
        return tuple(Overwrite(0, i) for i, spec in inputs if spec == signature.y)

    return overwrites


def no_views(_: Layout, signature: Signature) -> tuple[Layout | None, ...]:
    """Declares no view, for operators whose outputs have bytes of their own."""
    return (None,) * len(signature.outputs)


def no_places(_: Layout, signature: Signature) -> tuple[Layout | None, ...]:
    """Declares no place, for operators that compute their first output, or whose inputs need not lie in it."""
    return (None,) * len(signature.inputs)


Index = tuple[slice, ...]


@frozen(eq=False)
class Stripe:
    """A part of a call that is a call itself: what it reads of each input, what it writes of the output, attributes."""

    inputs: tuple[Index, ...]
    output: Index
    attrs: Attrs


@frozen(eq=False)
class Stripes:
    """The calls that a call is cut into: `at` makes them one by one, as there may be very many.

    `kinds` are positions of stripes that stand for all: any other one is alike, in specs and attributes, to the one of
    them that precedes it.
    """

    count: int
    at: Callable[[int], Stripe]
    kinds: tuple[int, ...] = (0,)

    def __iter__(self) -> Iterator[Stripe]:
        return map(self.at, range(self.count))

    def kind(self, position: int) -> int:
        """Returns the position among `kinds` of the stripe that stands for this one."""
        return bisect_right(self.kinds, position) - 1


def one_stripe(signature: Signature, _: int) -> Stripes:
    """Declares one stripe, for operators that are not cut."""
    stripe = Stripe(((),) * len(signature.inputs), (), signature.attrs)
    return Stripes(1, lambda _: stripe)


Rows = Callable[[Signature, int, int, int], Stripe | None]
"""Returns a call that computes [first, last) along an axis of the output, and perhaps some more; None where there is
none. The axis is 1, that of the rows of images with channels last, or 2, that of their columns, and never the last one.

Axis 0 has the images of a batch. The attributes of the call are those for one image, and each is computed alone.
Parts of inputs that begin with `slice(None)` are those of the same image.
"""


def no_rows(_: Signature, __: int, ___: int, ____: int) -> Stripe | None:
    """Computes no rows and no columns alone, for operators that need whole images."""
    return None


def no_contiguity(_: Signature) -> tuple[int, ...]:
    """Declares no input as dense, for kernels that read any strides."""
    return ()


def every_input_read(_: Signature) -> tuple[int, ...]:
    """Declares all inputs as read after packing."""
    return ()


def first_weights(_: Signature) -> tuple[int, ...]:
    """Declares input 1 as unread after packing: the kernel reads only what it packed of it."""
    return (1,)


def any_strides(_: Layout) -> bool:
    """Accepts every layout."""
    return True


def dense_only(layout: Layout) -> bool:
    """Accepts dense layouts only."""
    return layout.is_dense


def all_contiguous(signature: Signature) -> tuple[int, ...]:
    """Declares all inputs as dense."""
    return tuple(range(len(signature.inputs)))


def contiguous_at(*positions: int) -> Callable[[Signature], tuple[int, ...]]:
    """Returns a kernel's `contiguous` for the inputs at these positions; some may be missing."""
    return lambda _: positions


def contiguous_from(first: int) -> Callable[[Signature], tuple[int, ...]]:
    """Returns a kernel's `contiguous` for the inputs from position `first` on."""
    return lambda signature: tuple(range(first, len(signature.inputs)))


@frozen(eq=False)
class Kernel:
    """One way to compute an operator, of one of `ops.schema.backends.BACKENDS`.

    `bind` does everything that can be done before the data is there (views, reshapes, partial application) and returns
    the thunk that does the work; the thunk allocates no array. `temporaries` are the specs of the arrays that it needs
    besides; together they are the workspace.
    `contiguous` names the inputs that must be dense; `reads` refuses layouts of any input that the kernel would have to
    copy; both are then given dense copies. `unsupported` gives the reason why a signature is not taken, an empty text
    where it is. `pack` turns constant inputs into arrays that the binding carries, copies always; `packed_specs` tells
    their specs before anything is packed.
    `unread_after_pack` has the positions of constant inputs that only `pack` reads: the engine may drop their data, and
    `bind` then gets arrays of their shape without data. `reads_packed_at_bind`: elements of packed arrays decide what
    `bind` returns, so they must be there before; else they may come later, before the thunk runs.
    `writes` tells into which layouts, besides dense ones, the kernel can write its outputs; where an overwrite with no
    offset is declared, also over an input of that layout and type.
    """

    name: str
    bind: Callable[[Binding], Thunk]
    temporaries: Callable[[Signature], Specs] = no_temporaries
    contiguous: Callable[[Signature], tuple[int, ...]] = no_contiguity
    reads: Callable[[Layout], bool] = any_strides
    pack: Callable[[Signature, Mapping[int, Array]], tuple[Array, ...]] = no_packing
    unsupported: Callable[[Signature], str] = always
    writes: Callable[[Layout], bool] = dense_only
    backend: str = NUMPY
    unread_after_pack: Callable[[Signature], tuple[int, ...]] = every_input_read
    packed_specs: Callable[[Signature], Specs] = packs_nothing
    reads_packed_at_bind: bool = False

    def supports(self, signature: Signature) -> bool:
        """Returns whether the kernel takes the signature."""
        return not self.unsupported(signature)

    def workspace(self, signature: Signature) -> int:
        """Returns the bytes of all temporaries, each at a multiple of `ops.schema.workspace.STEP`."""
        return dense_bytes(*self.temporaries(signature))

    def accepts(self, signature: Signature, position: int, layout: Layout) -> bool:
        """Returns whether the kernel reads that input where it lies; if not, it is given a dense copy."""
        return layout.is_dense or (position not in self.contiguous(signature) and self.reads(layout))


GradientRule = Callable[[Any], tuple[Any, ...]]
"""Maps a `Backward` (ops/schema/backward.py) to the gradient of each input; None where unwanted or always zero."""


def no_gradient(_: Any) -> tuple[Any, ...]:
    """Raises GradientError, for operators that cannot be differentiated, or that have no rule."""
    raise GradientError("has no rule for its gradient")


def zero_gradient(backward: Any) -> tuple[Any, ...]:
    """Returns no gradient, for operators that are constant almost everywhere."""
    return (None,) * len(backward.inputs)


def elementwise_cost(signature: Signature) -> Cost:
    """Counts one operation an output element; every operand is touched once."""
    return Cost(sum(s.size for s in signature.outputs), signature.nbytes)


@frozen(eq=False)
class OpSchema:
    """An operator: `infer` maps input specs and attributes to output specs, and raises OpError where they do not fit.

    `views` gives the layout of each output as a view of input 0, given the layout of that input, or None for an output
    that needs bytes of its own (READ_ONLY forwards). `overwrites` lists which outputs may take which input's bytes.
    `gradient` writes the backward pass of one use, in operators. `input_places` is for operators that only put their
    inputs together: it maps the layout of output 0 to the layout of each input inside it, or None. Where every input
    has such a layout and lies there, nothing is left to run.
    `elementwise` says that each element of the one output depends on the elements of the inputs at its place alone,
    inputs being broadcast to it; then kernels run on any part of it, and take an input of one element with no axes.
    `bit_copies` says that elements of input 0 (and of others of its type) are copied bit by bit, whatever their value
    is. `stripes` cuts a call into calls of parts of its tensors, each with at most so many elements, where it can.
    `rows` gives a call that computes rows [first, last) of the one output, or columns, with what it reads of each
    input; rows are axis 1, and columns axis 2, those of images with channels last. The call may write some rows more,
    where it can only write several at once; its `output` has them all. None: whole images are needed. Elementwise
    operators need not declare it.
    """

    name: str
    infer: Callable[[Specs, Attrs], Specs]
    kernels: tuple[Kernel, ...]
    arity: tuple[int, int] = (1, 1)
    attributes: tuple[Attribute, ...] = ()
    views: Callable[[Layout, Signature], tuple[Layout | None, ...]] = no_views
    overwrites: Callable[[Signature], tuple[Overwrite, ...]] = no_overwrites
    cost: Callable[[Signature], Cost] = elementwise_cost
    summary: str = field(default="", kw_only=True)
    gradient: GradientRule = field(default=no_gradient, kw_only=True)
    input_places: Callable[[Layout, Signature], tuple[Layout | None, ...]] = field(default=no_places, kw_only=True)
    elementwise: bool = field(default=False, kw_only=True)
    bit_copies: bool = field(default=False, kw_only=True)
    stripes: Callable[[Signature, int], Stripes] = field(default=one_stripe, kw_only=True)
    rows: Rows = field(default=no_rows, kw_only=True)

    def __repr__(self) -> str:
        """Returns one line; kernels and functions fill a screen."""
        return f"<operator schema {self.name!r}: {self.summary}>"

    def sign(self, inputs: Sequence[TensorSpec], attrs: Attrs, constants: frozenset[int] = frozenset()) -> Signature:
        """Checks arity and attributes, infers outputs. Raises OpError, with the operator's name in front."""
        specs = tuple(inputs)
        try:
            self._check_arity(specs)
            full = self._complete(attrs)
            outputs = self.infer(specs, full)
            if not isinstance(outputs, tuple) or not all(isinstance(s, TensorSpec) for s in outputs):
                raise SchemaError(f"infer must return a tuple of TensorSpec, not {outputs!r}")
            return Signature(specs, outputs, full, constants)
        except OpError as error:
            raise self._named(error, specs) from error

    def infer_again(self, inputs: Specs, attrs: Attrs, constants: frozenset[int] = frozenset()) -> Signature:
        """Returns the signature of inputs of other shapes; `attrs` are complete, as `sign` leaves them.

        For one operator in many sizes: nothing that shapes do not decide is looked at again. Raises OpError as `sign`.
        """
        try:
            return Signature(inputs, self.infer(inputs, attrs), attrs, constants)
        except OpError as error:
            raise self._named(error, inputs) from error

    def forwards(self, signature: Signature) -> tuple[Overwrite, ...]:
        """Returns the declared overwrites. Raises SchemaError for one of an input or output that does not exist."""
        overwrites = self.overwrites(signature)
        for forward in overwrites:
            exists = forward.output in range(len(signature.outputs)) and forward.input in range(len(signature.inputs))
            if not exists or forward.offset < 0:
                raise SchemaError(f"{self.name}: {forward} names bytes that are not there")
        return overwrites

    def kernel(self, signature: Signature, backends: Sequence[str] = PLAIN) -> Kernel:
        """Returns the first kernel that takes the signature, of the first of the back-ends that has one.

        Raises ShapeError where none does.
        """
        for backend in (*backends, NOBODY):
            for kernel in self.kernels:
                if kernel.backend == backend and kernel.supports(signature):
                    return kernel
        shown = ", ".join(map(str, signature.inputs))
        raise ShapeError(f"{self.name}({shown}): no kernel takes these inputs")

    def refusals(self, signature: Signature, backends: Sequence[str], chosen: Kernel) -> tuple[tuple[Kernel, str], ...]:
        """Returns the kernels that are asked before the chosen one, each with the reason why it is not taken.

        The reason is empty where the kernel would take the signature, and something else decided against it.
        """
        asked = [k for backend in backends for k in self.kernels if k.backend == backend]
        return tuple((k, k.unsupported(signature)) for k in asked[: asked.index(chosen)])

    def _named(self, error: OpError, inputs: Specs) -> OpError:
        """Returns the same error with the operator in front."""
        return type(error)(f"{self.name}({', '.join(map(str, inputs))}): {error}")

    def _check_arity(self, inputs: Specs) -> None:
        low, high = self.arity
        if not low <= len(inputs) <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            raise ArityError(f"takes {wanted} inputs, not {len(inputs)}")

    @cached_property
    def _declared(self) -> dict[str, Attribute]:
        """Returns the attributes by name."""
        return {a.name: a for a in self.attributes}

    def _complete(self, attrs: Attrs) -> Attrs:
        declared = self._declared
        unknown = [name for name in attrs if name not in declared]
        if unknown:
            raise AttributeValueError(f"has no attribute {min(unknown)!r}; it has: {', '.join(declared) or 'none'}")
        missing = [name for name, a in declared.items() if a.default is REQUIRED and name not in attrs]
        if missing:
            raise AttributeValueError(f"attribute {min(missing)!r} is missing")
        return MappingProxyType({n: a.read(attrs.get(n, a.default)) for n, a in declared.items()})


def evaluate(schema: OpSchema, *arrays: Array, **attrs: Any) -> tuple[Array, ...]:
    """Runs one operator on arrays, with no graph and no plan. Outputs are new arrays."""
    inputs = tuple(np.asarray(a) for a in arrays)
    signature = schema.sign([TensorSpec(a.shape, a.dtype) for a in inputs], attrs)
    kernel = schema.kernel(signature)
    operands = tuple(
        a if kernel.accepts(signature, i, Layout.of(a)) else np.ascontiguousarray(a) for i, a in enumerate(inputs)
    )
    outputs = new_arrays(signature.outputs)
    kernel.bind(Binding(signature, operands, outputs, new_arrays(kernel.temporaries(signature))))()
    return outputs
