"""The real BFC arena of onnxruntime, in a process of its own: as a program, it serves events and reports addresses.

Python cannot read its statistics, but can see its addresses. A model whose output has as many bytes as its input says
runs with outputs bound to the CPU. Each run is one allocation from the session's arena, at the address of the output,
and dropping the output frees it. The arena's log lists its regions.
"""

import json
import re
import subprocess
import sys
from typing import Any

import numpy as np
import onnxruntime
from attrs import frozen
from onnx import TensorProto, helper

from allocator.heaps.events import ALLOC, Events
from tests.helpers.paths import ROOT

_REGION = re.compile(r"Allocated memory at (0x[0-9a-f]+) to (0x[0-9a-f]+)")
_NEVER = -1


@frozen
class Served:
    """Addresses of each id, (base, bytes) of the regions in the order of their creation, and the event that failed."""

    address: dict[int, int]
    regions: list[tuple[int, int]]
    failed: int


def serve(events: Events, config: dict[str, int]) -> Served:
    """Runs events on an arena with these entries of OrtArenaCfg; without entries, on that which a session creates."""
    asked = {"config": config, "id": events.id.tolist(), "sign": events.sign.tolist(), "size": events.size.tolist()}
    command = [sys.executable, "-m", __name__]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True, cwd=ROOT)
    record = json.loads(done.stdout)
    regions = [(int(low, 16), int(high, 16) - int(low, 16)) for low, high in _REGION.findall(done.stderr)]
    return Served({int(one): at for one, at in record["address"].items()}, regions, record["failed"])


def _model() -> bytes:
    byte = helper.make_tensor("value", TensorProto.UINT8, [1], [1])
    node = helper.make_node("ConstantOfShape", ["bytes"], ["block"], value=byte)
    count = helper.make_tensor_value_info("bytes", TensorProto.INT64, [1])
    block = helper.make_tensor_value_info("block", TensorProto.UINT8, ["any"])
    graph = helper.make_graph([node], "allocate", [count], [block])
    content: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()
    return content


def _session(config: dict[str, int]) -> Any:
    options = onnxruntime.SessionOptions()
    options.enable_mem_pattern = False
    if config:
        kind, use = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, onnxruntime.OrtMemType.DEFAULT
        memory = onnxruntime.OrtMemoryInfo("Cpu", kind, 0, use)
        onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg(config))
        options.add_session_config_entry("session.use_env_allocators", "1")
    onnxruntime.set_default_logger_severity(1)  # the arena logs here, not in the session's log
    return onnxruntime.InferenceSession(_model(), options, providers=["CPUExecutionProvider"])


def _allocate(session: Any, size: int) -> Any:
    binding = session.io_binding()
    binding.bind_cpu_input("bytes", np.array([size], np.int64))
    binding.bind_output("block", "cpu")
    session.run_with_iobinding(binding)
    return binding.get_outputs()[0]


def _main() -> None:
    asked = json.load(sys.stdin)
    session, held, address, failed = _session(asked["config"]), dict[int, Any](), dict[int, int](), _NEVER
    for row, (one, sign) in enumerate(zip(asked["id"], asked["sign"], strict=True)):
        if sign != ALLOC:
            del held[one]
            continue
        try:
            held[one] = _allocate(session, asked["size"][one])
        except Exception:  # onnxruntime has a class of its own for each kind of failure
            failed = row
            break
        address[one] = held[one].data_ptr()
    json.dump({"address": address, "failed": failed}, sys.stdout)


if __name__ == "__main__":
    _main()
