"""Export of steered models to ONNX."""

from margrave.export._graph import ExportError
from margrave.export._onnx import to_onnx

__all__ = ["ExportError", "to_onnx"]
