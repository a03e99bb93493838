"""The networks that runs are timed on: ONNX files with seeded weights, made once and kept in out/networks."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from attrs import frozen

from allocator.io.files import write_whole
from allocator.progress import Activity
from engine import zoo
from engine.cli.options.models import light_model, random_feeds
from engine.graph.graph import Graph
from engine.onnx.file import read_model
from engine.onnx.library import ModelProto
from engine.onnx.load import load_onnx
from engine.onnx.seeded import seed_weights
from ops.tensor.spec import Array
from tools.networks.convnext import convnext_atto
from tools.networks.crnn import crnn
from tools.networks.detector import detector
from tools.networks.inverted_residuals import efficientnet_b0, mobilenet_v2
from tools.networks.tiny import keyword_spotter, person_detector
from tools.networks.transformers import encoder, vit_tiny
from tools.networks.unet import unet
from tools.networks.yolo import yolo_nano

FOLDER = Path("out/networks")


@frozen
class Network:
    """A network as the tables call it, and what makes its model; unless it has weights, they come from a seed."""

    title: str
    model: Callable[[], ModelProto]
    has_weights: bool = False


def _light(name: str) -> ModelProto:
    return read_model(light_model(name)).proto


def _quantised(network: Callable[[], Graph | ModelProto]) -> ModelProto:
    """Quantises a network by onnxruntime: codes and pairs of Q and DQ, a scale for each output channel."""
    with TemporaryDirectory() as folder:
        path = import_module("tests.helpers.onnx.quantised_models").quantised_model(network(), Path(folder))
        return read_model(path).proto


def _quantised_as(title: str, model: Callable[[], ModelProto]) -> Network:
    return Network(title, lambda: _quantised(lambda: seed_weights(model())), has_weights=True)


def _from_onnx(name: str, title: str) -> Network:
    return Network(title, partial(_light, name))


NETWORKS: Mapping[str, Network] = MappingProxyType(
    {
        "resnet50": _from_onnx("resnet50", "ResNet-50"),
        "vgg19": _from_onnx("vgg19", "VGG19"),
        "inception_v1": _from_onnx("inception_v1", "Inception v1"),
        "mobilenet_v2": Network("MobileNet v2", mobilenet_v2),
        "squeezenet": _from_onnx("squeezenet", "SqueezeNet"),
        "densenet121": _from_onnx("densenet121", "DenseNet121"),
        "shufflenet": _from_onnx("shufflenet", "ShuffleNet"),
        "efficientnet_b0": Network("EfficientNet-B0", efficientnet_b0),
        "crnn": Network("CRNN, a text recogniser", crnn),
        "unet": Network("U-Net, 256 x 256", unet),
        "yolo_nano": Network("YOLOv8n, 320 x 320", yolo_nano),
        "detector": Network("Tiny YOLOv3 with NonMaxSuppression", detector, has_weights=True),
        "encoder": Network("encoder, 6 x 384, sequence 128", encoder),
        "vit_tiny": Network("ViT-tiny", vit_tiny),
        "convnext_atto": Network("ConvNeXt-atto", convnext_atto),
        "resnet18_int8": Network("ResNet-18 in int8 (QDQ)", partial(_quantised, zoo.resnet18), has_weights=True),
        "mobilenet_v2_int8": Network(
            "MobileNet v2 in int8 (QDQ)", partial(_quantised, zoo.mobilenet_v2), has_weights=True
        ),
        "keyword_spotter_int8": _quantised_as("DS-CNN, a keyword spotter, in int8 (QDQ)", keyword_spotter),
        "person_detector_int8": _quantised_as("MobileNet v1 0.25, 96 x 96, in int8 (QDQ)", person_detector),
        "yolo_nano_int8": _quantised_as("YOLOv8n, 320 x 320, in int8 (QDQ)", yolo_nano),
    }
)


def network_file(name: str) -> Path:
    """Returns the file of a network. Its activations keep a deviation of about 1: no denormals, no infinities."""
    path = FOLDER / f"{name}.onnx"
    if not path.exists():
        with Activity("making", str(path)):
            FOLDER.mkdir(parents=True, exist_ok=True)
            network = NETWORKS[name]
            proto = network.model() if network.has_weights else seed_weights(network.model())
            write_whole(path, proto.SerializeToString())
    return path


def loaded(path: Path) -> tuple[Graph, dict[str, Array]]:
    """Returns the graph of a file, and seeded inputs."""
    graph = load_onnx(path)
    return graph, random_feeds(graph, 0, {})
