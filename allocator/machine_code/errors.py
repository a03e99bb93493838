"""What can be wrong with machine code: an object of the compiler, a stored image, a wanted instruction set."""


class MachineCodeError(Exception):
    """Base of all errors that this room raises."""


class ObjectFormatError(MachineCodeError, ValueError):
    """A file of the compiler that is no relocatable ELF object for a processor that the linker knows."""


class RelocationError(MachineCodeError, ValueError):
    """A relocation that the linker does not know, or whose target is too far away."""


class SectionError(MachineCodeError, ValueError):
    """Code that wants writable data, or data of a thread."""


class SymbolError(MachineCodeError, LookupError):
    """Code that wants a function that the C library lacks."""


class ProcessorError(MachineCodeError, ValueError):
    """Code with an operation that only another kind of processor has."""


class ImageError(MachineCodeError, ValueError):
    """A stored image that is not as it was written, or that was made from other sources."""


class InstructionsError(MachineCodeError, ValueError):
    """An instruction set that has no such name, that this processor lacks, or that is limited too late."""
