"""The code of tiles: what LLVM makes of it for processors that these tests may not run on."""

import pytest
from llvmlite import binding, ir  # type: ignore[import-untyped]

from ops.native.emit.tile_shapes import AVX2, AVX512, PORTABLE, SHAPES, TileShape, tile_shape
from ops.native.emit.vector_tile import tile_function


def assembly(shape: TileShape, triple: str, processor: str, features: str = "") -> str:
    """Returns the assembly of the largest tile of a shape."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    module = ir.Module()
    module.triple = triple
    tile_function(module, shape, shape.rows, shape.width).linkage = "external"
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=processor, features=features, opt=3)
    text: str = machine.emit_assembly(binding.parse_assembly(str(module)))
    return text


@pytest.mark.parametrize(
    ("shape", "triple", "processor", "product"),
    [
        (AVX512, "x86_64-unknown-linux-gnu", "skylake-avx512", "vfmadd231ps"),
        (AVX2, "x86_64-unknown-linux-gnu", "haswell", "vfmadd231ps"),
        (PORTABLE, "x86_64-unknown-linux-gnu", "x86-64", "mulps"),
        (PORTABLE, "aarch64-unknown-linux-gnu", "generic", "fmla"),
    ],
)
def test_products_are_vector_instructions_of_each_processor(
    shape: TileShape, triple: str, processor: str, product: str
) -> None:
    code = assembly(shape, triple, processor)
    assert code.count(product) >= shape.rows * shape.width
    assert "fmaf" not in code, "a product is a call of the mathematical library"


def test_the_tile_of_this_processor_is_one_that_packing_supports() -> None:
    assert tile_shape() in SHAPES
    assert [len(shape.tag) for shape in SHAPES] == [1, 2, 3]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_panel_is_a_whole_number_of_cache_lines_or_a_part_of_one(shape: TileShape) -> None:
    assert (4 * shape.channels) % 64 == 0 or 64 % (4 * shape.channels) == 0
