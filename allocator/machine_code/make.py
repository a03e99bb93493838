"""Makes machine code of Python functions. Only this module loads numba and LLVM for the room, on first use.

numba writes LLVM code, optimised for an instruction set. What is never called is dropped, LLVM writes an object, and
the linker makes an image of it.
"""

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from allocator.machine_code.elf import read_object
from allocator.machine_code.entry import ARRAYS, CALL, Entry
from allocator.machine_code.errors import ProcessorError
from allocator.machine_code.image import Image
from allocator.machine_code.instructions import Instructions
from allocator.machine_code.link import link

_NO_ERRORS = """
declare void @abort() noreturn
define void @numba_gil_ensure(ptr %state) alwaysinline noreturn {
  call void @abort()
  unreachable
}
"""
"""What a function does that raises an error of Python: kernels never do, and LLVM drops what would follow."""
_ARRAYS = "allocator.machine_code.arrays_code"
_ALIVE: list[Any] = []


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Holds back SIGINT until the block ends: an interrupt would leave numba and LLVM half-changed.

    Python handles signals on its main thread alone, so there is nothing to do on others.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    came = list[int]()
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        for number in came[:1]:
            signal.raise_signal(number)


def make_image(entry: Entry, chosen: Instructions) -> Image:
    """Returns the image of a function for an instruction set. Raises MachineCodeError where it cannot be linked."""
    compiled = _compiled(entry, chosen)
    native = emit_object(compiled.inspect_llvm(), compiled.native_name, chosen)
    return link(read_object(native), compiled.native_name)


def numba_address(entry: Entry, chosen: Instructions) -> int:
    """Returns the address of a function that numba has loaded, for this process only."""
    compiled = _compiled(entry, chosen)
    _ALIVE.append(compiled)
    return int(compiled.address)


def emit_object(code: str, entry: str, chosen: Instructions) -> bytes:
    """Returns an object of LLVM code with one visible function, for the set's kind of processor.

    Raises ProcessorError for code that only another kind has.
    """
    binding, machine = import_module("llvmlite.binding"), _target_machine(chosen)
    module = binding.parse_assembly(code)
    module.link_in(binding.parse_assembly(_NO_ERRORS))
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != entry:
            value.linkage = "internal"
    passes = binding.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_ipsccp_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options()))
    _check_processor(module, machine.triple)
    native: bytes = machine.emit_object(module)
    return native


def _check_processor(module: Any, triple: str) -> None:
    """Raises ProcessorError for operations of x86 elsewhere, for which LLVM would end the process."""
    foreign = sorted(f.name for f in module.functions if f.name.startswith("llvm.x86."))
    if foreign and not triple.startswith("x86_64"):
        raise ProcessorError(f"code for {triple} has operations that only x86 has: {', '.join(foreign)}")


def host_features() -> list[str]:
    """Returns the features of this processor in LLVM's words."""
    try:
        features: dict[str, bool] = import_module("llvmlite.binding").get_host_cpu_features()
    except RuntimeError:  # LLVM does not know
        return []
    return [name for name, there in features.items() if there]


def _compiled(entry: Entry, chosen: Instructions) -> Any:
    """Returns numba's function. It optimises for the instruction set, unless numba was in use before."""
    numba = import_module("numba")
    numba.config.CPU_NAME, numba.config.CPU_FEATURES = chosen.cpu, chosen.settings
    with warnings.catch_warnings():
        # numba's doubts about its own inlining, which nobody who runs a network can do anything about
        warnings.simplefilter("ignore", numba.errors.NumbaIRAssumptionWarning)
        options = {"fastmath": set(entry.fastmath), "error_model": "numpy"}
        if entry.signature == ARRAYS:
            function = import_module(_ARRAYS).of_words(entry.function)
            return numba.cfunc(CALL, **options)(function)
        return numba.cfunc(entry.signature, **options)(entry.function)


@cache
def _target_machine(chosen: Instructions) -> Any:
    binding = import_module("llvmlite.binding")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = binding.Target.from_triple(chosen.triple or binding.get_process_triple())
    return target.create_target_machine(cpu=chosen.cpu, features=chosen.settings, opt=3, reloc="pic", codemodel="small")
