"""Formats that hold offsets alone: TensorFlow Lite Micro's offline plan, and C headers."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.errors import FormatError, UnsupportedProblemError
from allocator.io import c_header, tflm
from allocator.io.instance import Instance
from allocator.problem import FREE, Problem
from tests.helpers.allocator.file_instances import gapped

PLACED = Instance(Problem([0, 1], [2, 3], [10, 20], [1, 64], [-1, -1]), ("conv/1", "x"), [0, 64])


@given(gapped(), st.data())
@settings(max_examples=20)
def test_offsets_are_read_back_from_the_metadata_buffer(instance: Instance, data: st.DataObject) -> None:
    count = len(instance.problem)
    offset = data.draw(st.lists(st.integers(0, 2**31 - 1), min_size=count, max_size=count))
    assert tflm.parse_metadata(tflm.render_metadata(evolve(instance, offset=offset))).tolist() == offset


def test_the_tflm_metadata_buffer_to_the_byte() -> None:
    assert tflm.render_metadata(PLACED) == struct.pack("<5i", 0, 1, 2, 0, 64)


def test_tensors_may_be_left_to_the_runtime() -> None:
    assert tflm.parse_metadata(struct.pack("<5i", 0, 1, 2, -1, 64)).tolist() == [FREE, 64]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has 0 bytes"),
        (b"\0" * 13, "has 13 bytes"),
        (struct.pack("<4i", 0, 1, 2, 0), "word 2: 2 offsets are announced, 1 follow"),
        (struct.pack("<5i", 0, 1, 2, 0, -2), "word 4: the offset -2 of tensor 1 is negative"),
    ],
)
def test_a_bad_metadata_buffer_is_refused_by_word(content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        tflm.parse_metadata(content)


def test_offsets_beyond_32_bits_and_buffers_that_lie_nowhere_are_refused() -> None:
    for render in (tflm.render_metadata, tflm.render_struct):
        with pytest.raises(UnsupportedProblemError, match="buffer 'x' lies at 2147483648"):
            render(evolve(PLACED, offset=[0, 2**31]))
    for render in (tflm.render_metadata, tflm.render_struct, c_header.render):
        with pytest.raises(UnsupportedProblemError, match="buffer 'x' has none"):
            render(evolve(PLACED, offset=[0, FREE]))


def test_the_c_struct_lists_the_offsets() -> None:
    text = tflm.render_struct(PLACED).decode()
    assert ".buffer_count = 2," in text and "[0] = { .offset = 0 }," in text and "[1] = { .offset = 64 }," in text
    assert text.startswith("// 84 bytes of arena.")


def test_the_c_header_to_the_letter() -> None:
    assert c_header.render(PLACED).decode() == (
        "/* Sizes and offsets are bytes, lifetimes are ticks [first, end). */\n"
        "#ifndef ARENA_PLAN_H\n#define ARENA_PLAN_H\n\n#define ARENA_BYTES 84u\n#define ARENA_ALIGNMENT 64u\n\n"
        "enum arena_tensor {\n  ARENA_TENSOR_conv_1, /* conv/1: ticks [0, 2) */\n"
        "  ARENA_TENSOR_x, /* ticks [1, 3) */\n  ARENA_TENSORS\n};\n\n"
        "#define ARENA_OFFSET_conv_1 0u\n#define ARENA_SIZE_conv_1 10u\n"
        "#define ARENA_OFFSET_x 64u\n#define ARENA_SIZE_x 20u\n\n"
        "/* X(name, offset, size) of each tensor, in the order of the enum. */\n"
        "#define ARENA_EACH_TENSOR(X) \\\n  X(conv_1, 0u, 10u) \\\n  X(x, 64u, 20u)\n\n#endif\n"
    )


@given(st.lists(st.text("ab_./é1", max_size=4), unique=True, max_size=12))
@settings(max_examples=40)
def test_c_identifiers_are_valid_and_different(ids: list[str]) -> None:
    names = c_header.identifiers(ids)
    assert len(set(names)) == len(ids)
    for name, given_ in zip(names, ids, strict=True):
        assert f"a{name}".isidentifier() and name.isascii() and name
        assert name == given_ or not given_.isascii() or not given_ or set(given_) & set("./")


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (("a.b", "a_b"), ["a_b_2", "a_b"]),
        (("a.b", "a/b", "a_b_2"), ["a_b", "a_b_3", "a_b_2"]),
        (("", "é"), ["_", "__2"]),
        (("1",), ["1"]),
        (("a", "a", "a_2"), ["a", "a_3", "a_2"]),
    ],
)
def test_c_identifiers_that_would_clash_get_a_number(ids: tuple[str, ...], names: list[str]) -> None:
    assert c_header.identifiers(ids) == names


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_compiler_takes_headers_and_structs(tmp_path: Path) -> None:
    folder = tmp_path / "tensorflow" / "lite" / "micro" / "memory_planner"
    folder.mkdir(parents=True)
    (folder / "memory_plan_struct.h").write_text(
        "struct BufferDescriptor { int offset; };\n"
        "struct BufferPlan { int buffer_count; struct BufferDescriptor buffer_plan_entries[]; };\n"
    )
    odd = evolve(PLACED, ids=("*/ int x; /*\\", "\n#error"), offset=[0, 2**33])
    (tmp_path / "plan.h").write_bytes(c_header.render(odd))
    (tmp_path / "struct.c").write_bytes(tflm.render_struct(PLACED))
    (tmp_path / "main.c").write_text(
        '#include "plan.h"\n#include "struct.c"\n'
        '_Static_assert(ARENA_BYTES == 8589934612ull && ARENA_OFFSET___error == 8589934592ull, "offsets");\n'
    )
    command = ["cc", "-std=c11", "-Wall", "-Wno-comment", "-Werror", "-I.", "-fsyntax-only", "main.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
