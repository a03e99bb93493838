"""How the words of an elementwise program lie, and how much of a stack it uses: what both of its sides agree on.

Words: operands (inputs and the output, which is the last), dimensions outside the blocks, rows, width, rows and width
of a block, product of the outer dimensions, number of other values, number of instructions; then the lengths of the
outer dimensions; a record for each operand: address, whether it is bool, whether it is read where it lies, its byte in
the room, bytes from row to row, from element to element, along each outer dimension; the byte of each other value in
the room; instructions: opcode, value written, three values read, two numbers.
"""

HEAD, RECORD, INSTRUCTION = 9, 6, 7
VALUES = 96
"""Most values of a program, inputs and output included."""
ROOM_BYTES = 32 << 10
"""The room for blocks of all values: most of a cache of the first level."""
