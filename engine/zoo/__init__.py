"""Well-known networks, written with the public API.

Each is a function that returns a graph with seeded weights; graphs of one seed share them as long as one of them
exists. `batch` may be a name. With `training` the weights are parameters, normalizations take the statistics of the
batch, and the network has an input "label" (int64: a class for each row) and the output "loss" (the mean softmax cross
entropy).
"""

from collections.abc import Mapping
from types import MappingProxyType

from engine.zoo.alexnet import alexnet
from engine.zoo.bert import bert_base, minilm
from engine.zoo.densenet import densenet121
from engine.zoo.encoder import encoder
from engine.zoo.gpt2 import gpt2
from engine.zoo.inception_bn import inception_bn
from engine.zoo.inception_v3 import inception_v3
from engine.zoo.lstm import lstm_classifier
from engine.zoo.mobilenet import mobilenet_v1, mobilenet_v2
from engine.zoo.network import Network, network
from engine.zoo.random_wired import random_wired
from engine.zoo.resnet import resnet18, resnet50, resnet152
from engine.zoo.squeezenet import squeezenet
from engine.zoo.unet import unet
from engine.zoo.vgg import vgg16, vgg19

__all__ = [
    "IMAGE_NETWORKS",
    "NETWORKS",
    "TEXT_NETWORKS",
    "Network",
    "alexnet",
    "bert_base",
    "densenet121",
    "encoder",
    "gpt2",
    "inception_bn",
    "inception_v3",
    "lstm_classifier",
    "minilm",
    "mobilenet_v1",
    "mobilenet_v2",
    "random_wired",
    "resnet18",
    "resnet50",
    "resnet152",
    "squeezenet",
    "unet",
    "vgg16",
    "vgg19",
]

_IMAGES = (
    alexnet,
    vgg16,
    vgg19,
    resnet18,
    resnet50,
    resnet152,
    inception_bn,
    inception_v3,
    mobilenet_v1,
    mobilenet_v2,
    densenet121,
    squeezenet,
    unet,
    random_wired,
)
_TEXTS = (lstm_classifier, minilm, bert_base, gpt2)

IMAGE_NETWORKS: Mapping[str, Network] = MappingProxyType({build.__name__: network(build) for build in _IMAGES})
"""From "x" [batch, 3, image, image]; all but the U-Net to "y" [batch, 1000]."""
TEXT_NETWORKS: Mapping[str, Network] = MappingProxyType({build.__name__: network(build) for build in _TEXTS})
"""From token ids, "ids" [batch, ...]."""
NETWORKS: Mapping[str, Network] = MappingProxyType({**IMAGE_NETWORKS, **TEXT_NETWORKS})
"""All networks by name, in the order in which they are listed."""
