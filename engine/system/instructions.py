"""The instruction set of compiled code, for a whole process."""

from allocator.machine_code import instructions
from allocator.machine_code.errors import InstructionsError
from engine.text.errors import OptionError


def limit_instructions(name: str) -> None:
    """Limits compiled code to an instruction set: "portable", "avx2", "avx512" or "avx512vnni", the smallest first.

    By default it is the largest that the processor has. Call this before a network is compiled. Raises OptionError
    where there is no such set, where this processor lacks it, or where another one is in use.
    """
    try:
        instructions.limit_instructions(name)
    except InstructionsError as error:
        raise OptionError(str(error)) from error
