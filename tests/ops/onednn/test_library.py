"""The door to oneDNN: why it refuses a library, and that it destroys all objects that it creates."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from allocator.machine_code import instructions
from engine.lower.backends import backends_of
from ops.convolution.nhwc import NHWC_CONV
from ops.onednn import library as door
from ops.onednn.declarations import ISA
from ops.onednn.library import DISTRIBUTION, LibraryError, RefusedError, check, files, open_library
from ops.schema.backends import EVERY, ONEDNN
from ops.schema.schema import Binding
from ops.tensor.spec import TensorSpec
from tests.helpers.ops.kernel_checks import garbage_for, pack
from tests.helpers.paths import ROOT

THERE = pytest.mark.skipif(bool(door.objection()), reason=door.objection() or "oneDNN is there")


class FakeFfi:
    """A library of some version, which cannot be loaded where an error is given."""

    def __init__(self, major: int = 3, runtime: int = 2, error: str = "") -> None:
        self.major, self.runtime, self.error = major, runtime, error

    def cdef(self, _: str) -> None:
        """Takes declarations."""

    def dlopen(self, _: str) -> Any:
        """Returns the library."""
        if self.error:
            raise OSError(self.error)
        return SimpleNamespace(
            dnnl_version=lambda: SimpleNamespace(major=self.major, minor=7, cpu_runtime=self.runtime)
        )


@pytest.mark.parametrize(
    ("ffi", "message"),
    [
        (FakeFfi(major=2), "it is version 2.7, not 3.x"),
        (FakeFfi(major=4), "it is version 4.7, not 3.x"),
        (FakeFfi(runtime=4), "it was not built for OpenMP"),
        (FakeFfi(error="wrong ELF class: ELFCLASS32"), "it cannot be loaded: wrong ELF class: ELFCLASS32"),
        (
            FakeFfi(error="cannot load library 'x': bad.  Additionally, ctypes.util.find_library() did not manage to"),
            "it cannot be loaded: cannot load library 'x': bad$",
        ),
    ],
)
def test_an_onednn_library_that_cannot_be_used_is_named(ffi: FakeFfi, message: str) -> None:
    with pytest.raises(LibraryError, match=message):
        open_library([Path("lib/libdnnl.so.3")], lambda: ffi)


def test_a_wheel_without_the_library_or_no_wheel_at_all_is_named() -> None:
    with pytest.raises(LibraryError, match=r"has no file libdnnl\.so\.3"):
        open_library([Path("lib/libdnnl.dylib")], FakeFfi)
    with pytest.raises(LibraryError, match=r"it is not installed: pip install -e '\.\[onednn\]'"):
        files("a-distribution-that-nobody-has")


def test_error_codes_of_onednn_are_raised() -> None:
    check(0, "execute")
    with pytest.raises(RefusedError, match="no implementation: convolution"):
        check(3, "convolution")
    with pytest.raises(LibraryError, match="oneDNN's convolution returned status 2"):
        check(2, "convolution")


@THERE
def test_the_onednn_library_is_that_of_the_wheel() -> None:
    assert any(p.name == "libdnnl.so.3" and p.is_file() for p in files(DISTRIBUTION))
    assert backends_of(ONEDNN) == backends_of("auto") == EVERY


def _bound(channels: int) -> None:
    """Binds a convolution and runs it once."""
    rng = np.random.default_rng(0)
    shapes = (1, 9, 9, channels), (8, channels, 1, 1), (8,)
    inputs = tuple(rng.standard_normal(s).astype(np.float32) for s in shapes)
    signature = NHWC_CONV.sign([TensorSpec(a.shape, a.dtype) for a in inputs], {}, frozenset({1, 2}))
    kernel = NHWC_CONV.kernel(signature, (ONEDNN,))
    y = np.empty(signature.y.shape, np.float32)
    packed = pack(kernel, signature, inputs)
    kernel.bind(Binding(signature, inputs, (y,), garbage_for(kernel, signature), packed))()


@THERE
def test_onednn_refuses_a_workspace_that_is_too_small() -> None:
    rng = np.random.default_rng(0)
    inputs = tuple(rng.standard_normal(s).astype(np.float32) for s in ((1, 30, 30, 33), (65, 33, 3, 3), (65,)))
    signed = NHWC_CONV.sign([TensorSpec(a.shape, a.dtype) for a in inputs], {}, frozenset({1, 2}))
    kernel, y = NHWC_CONV.kernel(signed, (ONEDNN,)), np.empty(signed.y.shape, np.float32)
    scratch = [kernel.temporaries(evolve(signed, threads=n))[0].nbytes for n in (1, 4)]
    assert scratch[1] > scratch[0] > 0
    signature = evolve(signed, threads=4)
    packed = pack(kernel, signature, inputs)
    with pytest.raises(LibraryError, match=f"a workspace of {scratch[1]} bytes, and has {scratch[0]}"):
        kernel.bind(Binding(signature, inputs, (y,), (np.empty(scratch[0], np.uint8),), packed))


@THERE
def test_onednn_objects_are_destroyed(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"alive": 0}
    ffi = door.library().ffi

    def counted(_: Any, lib: Any, kind: str, function: str, *arguments: Any) -> Any:
        place = ffi.new(f"dnnl_{kind}_t *")
        check(getattr(lib, f"dnnl_{function}")(place, *arguments), function)
        counts["alive"] += 1

        def destroy(thing: Any) -> None:
            counts["alive"] -= 1
            getattr(lib, f"dnnl_{kind}_destroy")(thing)

        return ffi.gc(place[0], destroy)

    monkeypatch.setattr(door, "make", counted)
    _bound(37)
    kept = counts["alive"]
    assert kept > 0
    for _ in range(100):
        _bound(37)
    assert counts["alive"] == kept


_EFFECTIVE = """
import sys
from cffi import FFI
from engine import limit_instructions
from ops.onednn.declarations import ISA
from ops.onednn.library import DISTRIBUTION, files, library
limit_instructions(sys.argv[1])
library()
ffi = FFI()
ffi.cdef("int dnnl_get_effective_cpu_isa(void);")
(path,) = [str(f.resolve()) for f in files(DISTRIBUTION) if f.name == "libdnnl.so.3"]
print(ffi.dlopen(path).dnnl_get_effective_cpu_isa())
"""


@THERE
@pytest.mark.parametrize("name", ["portable", "avx2"])
def test_the_library_takes_no_more_instructions_than_compiled_code(name: str) -> None:
    if not instructions.instruction_set(name).features <= instructions._processor():
        pytest.skip(f"this processor has no {name}")
    command = [sys.executable, "-c", _EFFECTIVE, name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) == ISA[name]
