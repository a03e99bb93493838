"""Options of networks: what a builder does not take is an error that names the option, before anything is built."""

from collections.abc import Callable
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.graph.graph import Graph
from engine.text.errors import OptionError
from engine.zoo import IMAGE_NETWORKS, NETWORKS, gpt2, lstm_classifier, minilm, resnet18, unet
from engine.zoo.network import Batch, Least, Size, checked, network


@checked
def toy(batch: Batch = 1, size: Annotated[int, Least(3)] = 5, *, width: Size = 2, training: bool = False) -> Graph:
    return Graph(f"{batch} {size} {width} {training}")


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9))
def test_zoo_networks_are_built_with_options_that_are_large_enough(batch: int, size: int, width: int) -> None:
    if batch >= 0 and size >= 3 and width >= 1:
        assert toy(batch, size=size, width=width).name == f"{batch} {size} {width} False"
    else:
        with pytest.raises(OptionError, match=r"toy: (batch|size|width) is an integer of at least \d"):
            toy(batch, size=size, width=width)


def test_options_tell_types_defaults_and_least_numbers() -> None:
    options = {name: (option.types, option.default, option.least) for name, option in network(toy).options.items()}
    assert options == {
        "batch": ((int, str), 1, 0),
        "size": ((int,), 5, 3),
        "width": ((int,), 2, 1),
        "training": ((bool,), False, 0),
    }


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", [n for n in IMAGE_NETWORKS if n != "unet"])
def test_the_least_image_is_the_least_that_can_be_built(name: str) -> None:
    build = NETWORKS[name]
    least = build.options["image"].least
    assert build(1, least).outputs["y"].shape == (1, 1000)
    with pytest.raises(OptionError, match=f"{name}: image is an integer of at least {least}, not {least - 1}"):
        build(1, least - 1)
    assert least == 1 or not_built(build.build, least - 1)


def not_built(build: Callable[..., Graph], image: int) -> bool:
    """Returns whether the network itself, unchecked, has a window that is larger than what it slides over."""
    with pytest.raises(Exception, match="does not fit into"):
        build.__wrapped__(1, image)  # type: ignore[attr-defined]
    return True


@pytest.mark.parametrize("name", NETWORKS)
def test_no_option_that_counts_something_takes_a_truth(name: str) -> None:
    for option in ("batch", "image", "sequence", "seed"):
        if option in NETWORKS[name].options:
            with pytest.raises(OptionError, match=f"{name}: {option} is an integer"):
                NETWORKS[name](**{option: True})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: unet(image=33), r"unet: image is a multiple of 2 \*\* depth \(depth is 4\), not 33"),
        (lambda: minilm(sequence=513), "minilm: sequence is at most 512, not 513"),
        (lambda: gpt2(tokens=200), "tokens is 200, and capacity 128"),
        (lambda: gpt2(capacity=1025), "that at most 1024; tokens is 1, and capacity 1025"),
        (lambda: lstm_classifier(sequence=0), "sequence is an integer of at least 1, or a name, not 0"),
        (lambda: resnet18(batch=1.5), "resnet18: batch is an integer of at least 0, or a name, not 1.5"),  # type: ignore[arg-type]
        (lambda: resnet18(training=2), "resnet18: training is true or false, not 2"),  # type: ignore[arg-type]
        (lambda: resnet18(image="many"), "image is an integer of at least 1, not 'many'"),  # type: ignore[arg-type]
    ],
)
def test_zoo_builders_raise_the_same_errors_in_python(build: Callable[[], Graph], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build()
