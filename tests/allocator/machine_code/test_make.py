"""Objects of LLVM are made, read and linked, for this processor and for aarch64."""

import os
import re
import signal
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.machine_code.elf import read_object
from allocator.machine_code.entry import find_entry
from allocator.machine_code.errors import MachineCodeError, ObjectFormatError, ProcessorError, SymbolError
from allocator.machine_code.instructions import Instructions, instructions
from allocator.machine_code.link import link
from allocator.machine_code.make import emit_object, interrupts_wait, make_image
from tests.helpers.interrupts import python_handles_interrupts

SMALL = "tests.helpers.machine_code.small_code"
X86 = Instructions("portable", frozenset(), "x86-64", triple="x86_64-unknown-linux-gnu")
ARM = Instructions("portable", frozenset(), "generic", "+neon", "aarch64-unknown-linux-gnu")
CODE = """
@numbers = private unnamed_addr constant [5 x double] [double 1.5, double 2.5, double 3.5, double 4.5, double 5.5]
@table = internal constant [2 x ptr] [ptr @cos, ptr @used]
declare double @exp(double)
declare double @cos(double)
define internal double @used(double %x) noinline {
  %y = fmul double %x, 3.25
  ret double %y
}
define internal double @unused(double %x) {
  %y = call double @PyFloat_AsDouble(double %x)
  ret double %y
}
declare double @PyFloat_AsDouble(double)
define double @start(i64 %i, double %x) {
  %place = getelementptr double, ptr @numbers, i64 %i
  %number = load double, ptr %place
  %power = call double @exp(double %number)
  %other = call double @used(double %power)
  %odd = and i64 %i, 1
  %which = getelementptr ptr, ptr @table, i64 %odd
  %function = load ptr, ptr %which
  %last = call double %function(double %other)
  %sum = fadd double %last, %x
  ret double %sum
}
"""


@pytest.mark.parametrize(("chosen", "machine", "page"), [(X86, 62, 1 << 12), (ARM, 183, 1 << 16)])
def test_llvm_code_is_linked_for_both_processors(chosen: Instructions, machine: int, page: int) -> None:
    native = read_object(emit_object(CODE, "start", chosen))
    image = link(native, "start")
    assert (native.machine, image.page) == (machine, page)
    assert {word.name for word in image.words} == {"exp", "cos", ""}
    assert image.entry < len(image.code)


def test_operations_of_another_processor_are_refused() -> None:
    code = (
        "declare void @llvm.x86.sse2.pause()\ndefine void @start() {\n call void @llvm.x86.sse2.pause()\n ret void\n}"
    )
    assert read_object(emit_object(code, "start", X86)).symbols
    with pytest.raises(ProcessorError, match=r"aarch64-unknown-linux-gnu .*llvm\.x86\.sse2\.pause"):
        emit_object(code, "start", ARM)


def test_what_is_not_called_is_dropped() -> None:
    native = read_object(emit_object(CODE, "start", X86))
    assert "PyFloat_AsDouble" not in {symbol.name for symbol in native.symbols}


def test_code_that_wants_the_runtime_of_numba_is_refused() -> None:
    with pytest.raises(SymbolError, match="no function of the C library"):
        make_image(find_entry(SMALL, "allocate"), instructions())


def test_an_undeclared_entry_is_named() -> None:
    with pytest.raises(SymbolError, match="twice"):
        find_entry(SMALL, "nothing")


@given(st.binary(max_size=200))
def test_bytes_that_are_no_object_are_refused(content: bytes) -> None:
    with pytest.raises(ObjectFormatError):
        read_object(content)


@given(st.data())
def test_an_object_that_is_cut_or_changed_raises_no_other_error(data: st.DataObject) -> None:
    content = bytearray(_OBJECT)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        link(read_object(bytes(content[: data.draw(st.integers(0, len(content)))])), "start")
    except MachineCodeError as error:
        assert str(error)


_OBJECT = emit_object(CODE, "start", X86)


@pytest.mark.parametrize("count", [1, 3])
def test_an_interrupt_waits_for_the_end_of_what_is_made(count: int) -> None:
    done = list[int]()
    with python_handles_interrupts():
        with pytest.raises(KeyboardInterrupt), interrupts_wait():
            for number in range(count):
                os.kill(os.getpid(), signal.SIGINT)
                done.append(number)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert done == [*range(count)]


def test_interrupts_that_are_ignored_or_on_another_thread_change_nothing() -> None:
    def make() -> None:
        with interrupts_wait():
            seen.append(signal.getsignal(signal.SIGINT))

    seen = list[object]()
    with python_handles_interrupts():
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with interrupts_wait():
            os.kill(os.getpid(), signal.SIGINT)
    assert seen == [signal.default_int_handler]


def test_the_maker_alone_loads_numba() -> None:
    room = Path(emit_object.__code__.co_filename).parent
    importers = {
        path.name for path in room.glob("*.py") if re.search(r"numba\"|llvmlite|import numba", path.read_text())
    }
    assert importers == {"make.py", "memory.py"}
