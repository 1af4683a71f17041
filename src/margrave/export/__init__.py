"""Export of trained models to other formats: ONNX."""

from margrave.export._graph import ExportError
from margrave.export._onnx import to_onnx

__all__ = ["ExportError", "to_onnx"]
