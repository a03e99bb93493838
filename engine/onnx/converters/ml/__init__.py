"""Converters of the domain `ai.onnx.ml`: what scikit-learn and libraries of boosted trees export."""
