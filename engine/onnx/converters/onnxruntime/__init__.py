"""Converters of the operators that onnxruntime adds to ONNX, which its optimised and quantised files have.

`contract` checks what a node has; the other modules are families. Each operator becomes operators that the passes know.
"""
